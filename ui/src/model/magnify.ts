// SPDX-License-Identifier: Apache-2.0
/** Magnifies a part of the width of a graph by the wheel. */

/** Shares of the width, 0..1. */
export interface Part {
	from: number;
	to: number;
}

/** All of the width. */
export const WHOLE: Part = { from: 0, to: 1 };

/** The narrowest part. */
const LEAST = 1e-7;

/** A part of this width that begins at `from`, moved into the whole. */
function within(from: number, width: number): Part {
	const begin = Math.min(Math.max(from, 0), 1 - width);
	return { from: begin, to: begin + width };
}

/**
 * The visible part after a turn of the wheel at `x` (0..1 of the visible width); null: the turn is
 * not for the graph. With Ctrl (a pinch on a touchpad) it magnifies at the pointer; sideways or
 * with Shift it moves.
 */
export function magnify(
	part: Part,
	x: number,
	e: { deltaX: number; deltaY: number; ctrlKey: boolean; metaKey: boolean; shiftKey: boolean },
	widthPx: number,
): Part | null {
	const width = part.to - part.from;
	if (e.ctrlKey || e.metaKey) {
		const factor = Math.exp(Math.min(Math.max(e.deltaY, -240), 240) * 0.004);
		const next = Math.min(1, Math.max(LEAST, width * factor));
		return within(part.from + x * (width - next), next);
	}
	const by = e.shiftKey ? e.deltaX || e.deltaY : e.deltaX;
	if (width >= 1 || by === 0 || (!e.shiftKey && Math.abs(e.deltaX) < Math.abs(e.deltaY))) {
		return null;
	}
	return within(part.from + (by / widthPx) * width, width);
}
