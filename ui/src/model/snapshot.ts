// SPDX-License-Identifier: Apache-2.0
/**
 * Properties of a snapshot: the note that the server wrote into its file, and the time in its id
 * (src/server/parca/share.c).
 */
import type { Span } from "./time.ts";
import { splitQuery } from "./url.ts";

/** What a snapshot shows. */
export interface Note {
	type: string;
	matchers: string;
	span: Span;
}

/** A selector, whose quoted values may contain anything, and the two times after it. */
const NOTE =
	/^firn: ((?:[^"'`]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)*?) from (\S+Z) to (\S+Z)/s;

/** Reads the comment "firn: SELECTOR from TIME to TIME" of a profile; null: there is none. */
export function readNote(comments: readonly string[]): Note | null {
	for (const comment of comments) {
		const [, query, from, to] = NOTE.exec(comment) ?? [];
		const span = { fromMs: Date.parse(from ?? ""), toMs: Date.parse(to ?? "") };
		if (query !== undefined && span.fromMs <= span.toMs) {
			return { ...splitQuery(query), span };
		}
	}
	return null;
}

/** When the snapshot with that id expires, in milliseconds since 1970; null: the id has no time. */
export function endOfSnapshot(id: string): number | null {
	const letters = "abcdefghijklmnopqrstuvwxyz234567";
	let minutes = 0;
	for (const letter of id.slice(22)) {
		minutes = minutes * 32 + letters.indexOf(letter);
	}
	return id.length > 22 ? minutes * 60_000 : null;
}
