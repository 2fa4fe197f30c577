// SPDX-License-Identifier: Apache-2.0
/**
 * Paints a row of a flame chart. It visits only calls inside the window, and of calls narrower than a pixel one
 * for each pixel and level, so the time depends on the width of the canvas.
 */
import type { Paint } from "../../model/colour.ts";
import { nodeName } from "../../model/flame.ts";
import { NAMED_PX } from "../../model/layout.ts";
import type { Strip, Strips } from "../../model/strips.ts";
import type { Span } from "../../model/time.ts";
import { type Label, labelIn, newLabel } from "../frame_label.ts";

/** Least height of a closed row, and that of a level of an open one, in CSS pixels. */
export const CLOSED_PX = 30;
export const LEVEL_PX = 18;
const PAD_PX = 4;

/** The row to draw. */
export interface StripScene {
	strips: Strips;
	row: Strip;
	win: Span;
	open: boolean;
	/** Height of a closed row, in CSS pixels. */
	closedPx: number;
	paint: Paint;
	/** 1: the call matches the search; null: there is no search. */
	hit: Uint8Array | null;
	text: string;
	textDim: string;
	font: string;
}

/** The height of a row; closed, it is never higher than open. */
export function heightOf({ row, open, closedPx }: StripScene): number {
	const whole = Math.max(row.depth * LEVEL_PX, CLOSED_PX);
	return open ? whole : Math.min(closedPx, whole);
}

/** The visible calls, with their edges in device pixels. */
function* seen(s: StripScene, width: number): Generator<[node: number, left: number, right: number]> {
	const { strips, row, win } = s;
	const scale = width / (win.toMs - win.fromMs);
	/** By level: the first pixel that is free. */
	const free = new Float64Array(row.depth);
	for (let k = row.from; k < row.to; ) {
		const node = strips.order[k]!;
		const begin = strips.start[node]!;
		const left = (begin - win.fromMs) * scale;
		const right = left + strips.length[node]! * scale;
		const level = strips.level[node]!;
		const isNarrow = right - left < 1 && right <= free[level]!;
		if (left >= width || right <= 0 || isNarrow) {
			if (left >= width && level === 0) {
				return;
			}
			k += strips.flame.end[node]! - node;
			continue;
		}
		free[level] = Math.max(Math.ceil(right), Math.floor(left) + 1);
		yield [node, Math.max(0, left), Math.min(width, right)];
		k++;
	}
}

/** Paints the row into its canvas. */
export function drawStrip(canvas: HTMLCanvasElement, s: StripScene, widthPx: number, ratio: number, labels: Map<number, Label>): void {
	const heightPx = heightOf(s);
	const width = Math.max(1, Math.round(widthPx * ratio));
	const height = Math.max(1, Math.round(heightPx * ratio));
	if (canvas.width !== width || canvas.height !== height) {
		canvas.width = width;
		canvas.height = height;
		canvas.style.height = `${heightPx}px`;
	}
	const ctx = canvas.getContext("2d")!;
	const image = ctx.createImageData(width, height);
	const pixels = new Uint32Array(image.data.buffer);
	const level = s.open ? LEVEL_PX * ratio : height / Math.max(1, s.row.depth);
	const gap = s.open ? Math.round(ratio) : 0;
	const texts: [node: number, left: number, right: number][] = [];
	for (const [node, left, right] of seen(s, width)) {
		const depth = s.strips.level[node]!;
		const pixel = (s.hit && !s.hit[node] ? s.paint.dim : s.paint.full)[node]!;
		const from = Math.floor(left);
		const to = Math.max(from + 1, Math.round(right) - (right - left > 4 * gap ? gap : 0));
		const bottom = Math.max(Math.round(depth * level) + 1, Math.round((depth + 1) * level) - gap);
		for (let y = Math.round(depth * level); y < bottom && y < height; y++) {
			pixels.fill(pixel, y * width + from, y * width + to);
		}
		if (s.open && right - left >= NAMED_PX * ratio) {
			texts.push([node, left, right]);
		}
	}
	ctx.putImageData(image, 0, 0);
	ctx.font = `${11 * ratio}px ${s.font}`;
	ctx.textBaseline = "middle";
	const charPx = ctx.measureText("0123456789").width / 10;
	const { flame } = s.strips;
	for (const [node, left, right] of texts) {
		const id = flame.name[node]!;
		const label = labels.get(id) ?? newLabel(nodeName(flame, node));
		labels.set(id, label);
		ctx.fillStyle = s.hit && !s.hit[node] ? s.textDim : s.text;
		const room = Math.floor((right - left - 2 * PAD_PX * ratio) / charPx);
		ctx.fillText(labelIn(label, room), Math.round(left + PAD_PX * ratio), Math.round((s.strips.level[node]! + 0.5) * level));
	}
}
