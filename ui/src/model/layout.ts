// SPDX-License-Identifier: Apache-2.0
/**
 * Finds the frames of a flame graph that are visible in a window, and their positions. The cost
 * depends only on the visible frames: siblings come by descending value, so the first one that is
 * too narrow ends its row, and subtrees are skipped.
 */
import type { Flame } from "./flame.ts";

/** A window on a graph. Positions on the value axis; width in device pixels. */
export interface Window {
	x0: number;
	x1: number;
	width: number;
	/** Depths that are drawn, both included. */
	top: number;
	bottom: number;
}

/** Frames narrower than this are not drawn one by one, in device pixels. */
export const NARROWEST_PX = 0.5;

/** Frames narrower than this have no name in them, in CSS pixels: in the graph, the chart over time and the picture. */
export const NAMED_PX = 26;

/** Visible rectangles; the first `count` entries are valid. It is reused for each call. */
export interface Layout {
	count: number;
	/** Node, or -1 - parent for a run of frames that are too narrow to be drawn. */
	node: Int32Array;
	depth: Int32Array;
	/** Edges in device pixels, cut to the window. */
	left: Float32Array;
	right: Float32Array;
}

/** An empty layout with room for some thousand rectangles. */
export function newLayout(room = 4096): Layout {
	return {
		count: 0,
		node: new Int32Array(room),
		depth: new Int32Array(room),
		left: new Float32Array(room),
		right: new Float32Array(room),
	};
}

function grow(l: Layout): void {
	const wider = newLayout(l.node.length * 2);
	wider.node.set(l.node);
	wider.depth.set(l.depth);
	wider.left.set(l.left);
	wider.right.set(l.right);
	Object.assign(l, { ...wider, count: l.count });
}

function put(l: Layout, node: number, depth: number, left: number, right: number): void {
	if (l.count === l.node.length) {
		grow(l);
	}
	const i = l.count++;
	l.node[i] = node;
	l.depth[i] = depth;
	l.left[i] = left;
	l.right[i] = right;
}

/** Fills `out` with the rectangles of `f` that are visible in `w`. */
export function layoutFrames(f: Flame, w: Window, out: Layout): void {
	out.count = 0;
	const span = w.x1 - w.x0;
	if (!(span > 0) || w.width <= 0) {
		return;
	}
	const scale = w.width / span;
	const cut = (px: number) => Math.min(Math.max(px, 0), w.width);
	const rest = (parent: number, from: number, to: number) => {
		const left = cut((from - w.x0) * scale);
		const right = cut((to - w.x0) * scale);
		if (right - left >= 1 && f.depth[parent]! + 1 >= w.top) {
			put(out, -1 - parent, f.depth[parent]! + 1, left, right);
		}
	};
	let i = 0;
	while (i < f.count) {
		const left = (f.start[i]! - w.x0) * scale;
		const right = left + f.value[i]! * scale;
		if (right <= 0) {
			i = f.end[i]!;
			continue;
		}
		if (left >= w.width || right - left < NARROWEST_PX) {
			if (i === 0) {
				return;
			}
			const parent = f.parent[i]!;
			if (left < w.width) {
				rest(parent, f.start[i]!, f.start[parent]! + f.inner[parent]!);
			}
			i = f.end[parent]!;
			continue;
		}
		const depth = f.depth[i]!;
		if (depth >= w.top) {
			put(out, i, depth, cut(left), cut(right));
		}
		if (depth >= w.bottom) {
			i = f.end[i]!;
			continue;
		}
		rest(i, f.start[i]! + f.inner[i]!, f.start[i]! + f.value[i]! - f.self[i]!);
		i++;
	}
}
