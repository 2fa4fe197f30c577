// SPDX-License-Identifier: Apache-2.0
/** The input for drawing a flame graph. */
import type { Paint } from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";

/** Height of a row in CSS pixels, the gap below it included. */
export const ROW_PX = 20;
export const GAP_PX = 1;

/** Colours from the style sheet, as CSS texts; `back` as a pixel too. */
export interface Colours {
	back: string;
	backPixel: number;
	text: string;
	textDim: string;
	line: string;
	hatch: string;
	rest: number;
	/** Of narrow matching frames, as a pixel. */
	hit: number;
	focus: string;
	hover: string;
	font: string;
}

/** The graph to draw. */
export interface Scene {
	flame: Flame;
	paint: Paint;
	colours: Colours;
	/** 1 for frames that keep their colour while others are dimmed; null: all do. */
	hit: Uint8Array | null;
	/** The node that fills the width; its ancestors are drawn as wide. */
	zoom: number;
	/** The root is the lowest row, and callees are above it. */
	flip: boolean;
}

/** A window on the value axis. */
export interface Extent {
	x0: number;
	x1: number;
}
