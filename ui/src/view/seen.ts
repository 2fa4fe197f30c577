// SPDX-License-Identifier: Apache-2.0
import type { Seen } from "../app/save.ts";
import type { Paint } from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";
import { readColours } from "./use_renderer.ts";

/** The current graph and table, for saving; the title is that of the window. */
export function seenOf(
	flame: Flame,
	paint: Paint,
	hit: Uint8Array | null,
	zoom: number,
	table: Seen["table"],
): Seen {
	const colours = readColours();
	const scene = { flame, paint, colours, hit, zoom, flip: false };
	const title = document.title.replace(/ · firn$/, "");
	return { scene, picture: { flame, paint, hit, zoom, title, back: colours.back, text: colours.text }, table };
}
