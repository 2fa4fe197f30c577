// SPDX-License-Identifier: Apache-2.0
import { fitName, shortName } from "../model/names.ts";

/** A name with its short form, and the forms for the rooms it was drawn in. */
export interface Label {
	name: string;
	short: string;
	fits: Map<number, string>;
}

/** A label that was not drawn yet. */
export function newLabel(name: string, short = shortName(name)): Label {
	return { name, short, fits: new Map() };
}

/** The label in at most `room` characters. */
export function labelIn(label: Label, room: number): string {
	let text = label.fits.get(room);
	if (text === undefined) {
		text = fitName(label.name, room, label.short);
		label.fits.set(room, text);
	}
	return text;
}
