// SPDX-License-Identifier: Apache-2.0
/** A word has the same colour on the whole page, for as long as the page is open. */
import { useRef } from "preact/hooks";
import type { Slots } from "../model/colour.ts";
import { hashString } from "../model/flame.ts";
import { assignSlots, SLOTS } from "../model/series.ts";

/** By word: the slot that it got at its first use. */
const book = new Map<string, number>();

/** Slots for the commonest words, the commonest first: no two have the same. */
export function useSlots(words: readonly string[]): Slots {
	const last = useRef<{ key: string; slots: Slots }>({ key: "", slots: new Map() });
	const shown = [...new Set(words)].slice(0, SLOTS);
	const key = [...shown].sort().join("\n");
	if (key !== last.current.key) {
		const slots = assignSlots(book, shown, hashString);
		for (const [word, slot] of slots) {
			if (!book.has(word)) {
				book.set(word, slot);
			}
		}
		last.current = { key, slots };
	}
	return last.current.slots;
}
