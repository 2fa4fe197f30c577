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
	// an expression without case needs no copy of each name in small letters
	const plain = new RegExp(s.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "i");
	return { matcher: (name) => plain.test(name), field, error: "" };
}

/** What a search found in a graph. */
export class Found {
	/** 1 for each node that matches. */
	readonly hit: Uint8Array;
	/** Nodes that match, all of them. */
	readonly count: number;
	/** What matched. */
	readonly field: Field;
	/** Value under the root of the search in stacks with a match; nothing is counted twice. */
	readonly value: number;
	private readonly f: Flame;
	/** Matching nodes without a matching ancestor, in the order of the graph. */
	private readonly tops: number[] = [];
	private byValue: number[] | null = null;

	/** `hit` becomes the search's own, and `count` is how many of it are set. */
	constructor(f: Flame, hit: Uint8Array, count: number, root: number, field: Field) {
		this.f = f;
		this.hit = hit;
		this.count = count;
		this.field = field;
		for (let i = hit.indexOf(1); i >= 0; i = hit.indexOf(1, f.end[i]!)) {
			this.tops.push(i);
		}
		this.value = this.valueBelow(root);
	}

	/** Matching nodes without a matching ancestor, by descending value: places to go to. */
	get outer(): readonly number[] {
		const { value } = this.f;
		this.byValue ??= [...this.tops].sort((a, b) => value[b]! - value[a]! || a - b);
		return this.byValue;
	}

	/** How many places there are. */
	get places(): number {
		return this.tops.length;
	}

	/** Value below a node in stacks with a match, be it above that node. */
	valueBelow(root: number): number {
		const { end, value } = this.f;
		let sum = 0;
		for (const i of this.tops) {
			if (i >= end[root]!) {
				break;
			}
			if (i >= root) {
				sum += value[i]!;
			} else if (end[i]! > root) {
				return value[root]!;
			}
		}
		return sum;
	}
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
	// each name is looked at once, however many frames have it
	const names = Uint8Array.from(f.strings, (s) => (s !== "" && matcher(s) ? 1 : 0));
	let first: Found | null = null;
	for (const one of field ? [field] : (["name", "binary", "file"] as const)) {
		const found = searchColumn(f, f[one], names, root, one);
		if (found.count > 0) {
			return found;
		}
		first ??= found;
	}
	return first!;
}

function searchColumn(f: Flame, column: Int32Array, names: Uint8Array, root: number, field: Field): Found {
	const hit = new Uint8Array(f.count);
	let count = 0;
	for (let i = 0; i < hit.length; i++) {
		const one = names[column[i]!]!;
		hit[i] = one;
		count += one;
	}
	return new Found(f, hit, count, root, field);
}

/** The same for any property of a node: `test` answers 1 or 0. */
export function markFlame(f: Flame, root: number, test: (node: number) => number): Found {
	const hit = new Uint8Array(f.count);
	let count = 0;
	for (let i = 0; i < hit.length; i++) {
		const one = test(i);
		hit[i] = one;
		count += one;
	}
	return new Found(f, hit, count, root, "name");
}
