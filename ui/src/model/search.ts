// SPDX-License-Identifier: Apache-2.0
/**
 * Search in names. Plain text is a substring without regard to case, "quoted" is the whole name,
 * /slashes/ contain a regular expression. If no function matches, binaries are searched, then
 * source files; the prefixes "binary:" and "file:" choose one of these.
 */
import type { Flame } from "./flame.ts";
import { compilePattern } from "./pattern.ts";

/** Says whether a name matches. */
export type Matcher = (name: string) => boolean;

/** The property of a frame that is searched. */
export type Field = "name" | "binary" | "file";

/** A compiled search: no matcher for an empty text, an error for a broken expression. */
export interface Search {
	matcher: Matcher | null;
	/** The field that the text names; null: any, functions first. */
	field: Field | null;
	error: string;
}

/** The longest search text, in characters. */
export const SEARCH_MAX = 500;

/** Compiles the text of the search box. */
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
	// an expression that ignores case needs no lower-case copy of each name
	const plain = new RegExp(s.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "i");
	return { matcher: (name) => plain.test(name), field, error: "" };
}

/** The result of a search in a graph. */
export class Found {
	/** 1 for each node that matches. */
	readonly hit: Uint8Array;
	/** Number of all matching nodes. */
	readonly count: number;
	/** The field that matched. */
	readonly field: Field;
	/** Value under the root of the search in stacks with a match; nothing is counted twice. */
	readonly value: number;
	private readonly f: Flame;
	/** Matching nodes without a matching ancestor, in the order of the graph. */
	private readonly tops: number[] = [];
	private byValue: number[] | null = null;

	/** Takes over `hit`, of which `count` elements are set. */
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

	/** Value below a node in stacks with a match, which may be above that node. */
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
 * Finds the nodes whose function matches; if none does, those whose binary or file matches. `value`
 * is measured below `root`. If a node above `root` matches, every stack below `root` does.
 */
export function searchFlame(
	f: Flame,
	matcher: Matcher,
	root: number,
	field: Field | null = null,
): Found {
	// each name is tested once, however many frames have it
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
