// SPDX-License-Identifier: Apache-2.0
/** One word, one colour, on the whole page and as long as it is open. */
import { useRef } from "preact/hooks";
import type { Slots } from "../model/colour.ts";
import { hashString } from "../model/flame.ts";
import { assignSlots, SLOTS } from "../model/series.ts";

/** The slot that a word got when it was first met. */
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
