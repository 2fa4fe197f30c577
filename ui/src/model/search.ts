// SPDX-License-Identifier: Apache-2.0
/**
 * Search in names. Plain text is a substring without regard to case, "quoted" is the whole name,
 * /slashes/ hold a regular expression. What no function is called is looked for among binaries, then
 * among source files; "binary:" and "file:" in front say where.
 */
import type { Flame } from "./flame.ts";
import { compilePattern } from "./pattern.ts";

/** Says whether a name matches. */
export type Matcher = (name: string) => boolean;

/** What of a frame is looked at. */
export type Field = "name" | "binary" | "file";

/** A compiled search: no matcher for an empty text, an error for a broken expression. */
export interface Search {
	matcher: Matcher | null;
	/** Where the text says; null: anywhere, functions first. */
	field: Field | null;
	error: string;
}

/** Longest search text that is looked at, in characters. */
export const SEARCH_MAX = 500;

/** Compiles what stands in the search box. */
export function compileSearch(text: string): Search {
	const [, where, rest] = /^(?:(binary|file):)?\s*(.*)$/s.exec(text.trim().slice(0, SEARCH_MAX))!;
	const field = (where ?? null) as Field | null;
	const s = rest!;
	if (s === "") {
		return { matcher: null, field, error: "" };
	}
	if (s.length > 2 && s.startsWith("/") && s.endsWith("/")) {
		const { test, error } = compilePattern(s.slice(1, -1));
		return { matcher: test, field, error };
	}
	if (s.length > 2 && s.startsWith('"') && s.endsWith('"')) {
		const exact = s.slice(1, -1);
		return { matcher: (name) => name === exact, field, error: "" };
	}
	const lower = s.toLowerCase();
	return { matcher: (name) => name.toLowerCase().includes(lower), field, error: "" };
}

/** What a search found in a graph. */
export interface Found {
	/** 1 for each node that matches. */
	hit: Uint8Array;
	/** Nodes that match, all of them. */
	count: number;
	/** Matching nodes without a matching ancestor, by descending value: places to go to. */
	outer: number[];
	/** Value under `root` in stacks with a match; nothing is counted twice. */
	value: number;
	/** What matched. */
	field: Field;
}

function namesThatMatch(f: Flame, matcher: Matcher): Uint8Array {
	return Uint8Array.from(f.strings, (s) => (s !== "" && matcher(s) ? 1 : 0));
}

/**
 * Finds the nodes whose function matches, or where none does, binary or file; `value` is measured
 * below `root`. A match above `root` makes every stack below it one with a match.
 */
export function searchFlame(
	f: Flame,
	matcher: Matcher,
	root: number,
	field: Field | null = null,
): Found {
	const names = namesThatMatch(f, matcher);
	let first: Found | null = null;
	for (const one of field ? [field] : (["name", "binary", "file"] as const)) {
		const found = { ...markFlame(f, root, (node) => names[f[one][node]!]!), field: one };
		if (found.count > 0) {
			return found;
		}
		first ??= found;
	}
	return first!;
}

/** The same for any property of a node: `test` answers 1 or 0. */
export function markFlame(f: Flame, root: number, test: (node: number) => number): Found {
	const hit = new Uint8Array(f.count);
	const outer: number[] = [];
	let count = 0;
	let value = 0;
	let covered = 0;
	const rootEnd = f.end[root]!;
	for (let i = 0; i < f.count; i++) {
		if (!test(i)) {
			continue;
		}
		hit[i] = 1;
		count++;
		if (i < covered) {
			continue;
		}
		covered = f.end[i]!;
		outer.push(i);
		if (i >= root && i < rootEnd) {
			value += f.value[i]!;
		} else if (i < root && f.end[i]! > root) {
			value = f.value[root]!;
		}
	}
	outer.sort((a, b) => f.value[b]! - f.value[a]! || a - b);
	return { hit, count, outer, value, field: "name" };
}
