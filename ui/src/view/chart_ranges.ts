// SPDX-License-Identifier: Apache-2.0
/** The ranges of a chart: the one in force, and the one it is compared with. */
import type { Span } from "../model/time.ts";

interface Ranges {
	select: Span | null;
	base: Span | null;
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

/** Shades what lies outside the range in force, and shows what it is compared with. */
export function drawRanges(
	ctx: CanvasRenderingContext2D,
	{ select, base, shade, accent, baseColour }: Ranges,
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
