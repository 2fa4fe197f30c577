// SPDX-License-Identifier: Apache-2.0
/** The ranges of a chart: the selected one, and that of the base. */
import type { Mark } from "../model/marks.ts";
import type { Span } from "../model/time.ts";

interface Ranges {
	select: Span | null;
	base: Span | null;
	/** Times with a name. */
	marks: readonly Mark[];
	shade: string;
	accent: string;
	baseColour: string;
}

function drawEdges(
	ctx: CanvasRenderingContext2D,
	from: number,
	to: number,
	height: number,
	colour: string,
): void {
	ctx.fillStyle = colour;
	ctx.fillRect(from - 1, 0, 1.5, height);
	ctx.fillRect(to - 0.5, 0, 1.5, height);
}

function drawName(ctx: CanvasRenderingContext2D, text: string, x: number, colour: string): void {
	ctx.font = "600 11px system-ui, sans-serif";
	ctx.textAlign = "left";
	const { width } = ctx.measureText(text);
	ctx.fillStyle = colour;
	ctx.fillRect(x, 0, width + 8, 15);
	ctx.fillStyle = "#ffffff";
	ctx.fillText(text, x + 4, 11);
}

/** Draws a dashed line at each time, and its text if there is room before the next. */
function drawMarks(
	ctx: CanvasRenderingContext2D,
	marks: readonly Mark[],
	x: (ms: number) => number,
	left: number,
	width: number,
	height: number,
	colour: string,
): void {
	const seen = marks.map(({ ms, text }) => ({ at: x(ms), text })).filter(({ at }) => at >= left && at <= width);
	seen.sort((a, b) => a.at - b.at);
	let free = left;
	for (const { at, text } of seen) {
		ctx.fillStyle = colour;
		for (let y = 16; y < height; y += 6) {
			ctx.fillRect(at - 0.75, y, 1.5, 3.5);
		}
		const short = text.length > 18 ? `${text.slice(0, 17)}…` : text;
		ctx.font = "600 11px system-ui, sans-serif";
		const wide = ctx.measureText(short).width + 8;
		const begin = Math.min(at - 4, width - wide);
		if (begin >= free) {
			drawName(ctx, short, begin, colour);
			free = begin + wide + 2;
		}
	}
}

/** Shades the parts outside of the selected range, and shows the base's range. */
export function drawRanges(
	ctx: CanvasRenderingContext2D,
	{ select, base, marks, shade, accent, baseColour }: Ranges,
	x: (ms: number) => number,
	left: number,
	width: number,
	height: number,
): void {
	if (select) {
		const [from, to] = [x(select.fromMs), x(select.toMs)];
		ctx.fillStyle = shade;
		ctx.fillRect(0, 0, from, height);
		ctx.fillRect(to, 0, width - to, height);
		drawEdges(ctx, from, to, height, accent);
	}
	drawMarks(ctx, marks, x, left, width, height, baseColour);
	if (!base) {
		return;
	}
	const [from, to] = [x(base.fromMs), x(base.toMs)];
	ctx.globalAlpha = 0.14;
	ctx.fillStyle = baseColour;
	ctx.fillRect(from, 0, to - from, height);
	ctx.globalAlpha = 1;
	drawEdges(ctx, from, to, height, baseColour);
	if (to - Math.max(from, left) > 36) {
		drawName(ctx, "base", Math.max(from, left), baseColour);
	}
	if (select) {
		drawName(ctx, "this", x(select.fromMs), "#1f5fc4");
	}
}
