// SPDX-License-Identifier: Apache-2.0
/**
 * Filters choose the part of a graph that all views show. A test is written as in the search box
 * (text, "whole name", /expression/). Groups join frames of the same binary, file or runtime.
 */
import { buildFlame, type Flame, Kind } from "./flame.ts";
import { kindName } from "./kinds.ts";
import { compileSearch, type Matcher } from "./search.ts";

/** What happens to stacks or frames that match. */
export const OPS = ["only", "drop", "hide"] as const;
export type Op = (typeof OPS)[number];
/** The property of a frame that is tested. */
export const FIELDS = ["name", "binary", "file", "runtime"] as const;
export type FilterField = (typeof FIELDS)[number];

/** `only`: stacks through such a frame; `drop`: all other stacks; `hide`: the frames themselves. */
export interface Filter {
	op: Op;
	field: FilterField;
	text: string;
}

/**
 * What a bar of the graph stands for; "label": a function, below the values of the chart's label.
 */
export const GROUPS = ["function", "binary", "file", "runtime", "label"] as const;
export type Group = (typeof GROUPS)[number];

/** The most filters. */
export const FILTERS_MAX = 16;

/** Parses a filter of the URL, like "only:name:malloc"; null: it is malformed. */
export function parseFilter(text: string): Filter | null {
	const [, op, field, rest] = /^(\w+):(\w+):(.+)$/s.exec(text) ?? [];
	const known = OPS.includes(op as Op) && FIELDS.includes(field as FilterField);
	return known ? { op: op as Op, field: field as FilterField, text: rest! } : null;
}

/** The filter's text in the URL. */
export function formatFilter(f: Filter): string {
	return `${f.op}:${f.field}:${f.text}`;
}

/** The error in the text of a filter, or "". */
export function filterProblem(text: string): string {
	return text.trim() === "" ? "empty" : compileSearch(text).error;
}

/** A test whether a node matches a filter; null: the filter's text is not valid. */
export function hitsOf(f: Flame, filter: Filter): ((node: number) => boolean) | null {
	// a prefix like "binary:" is only for the search box
	const matcher: Matcher | null = compileSearch(filter.text).matcher;
	if (!matcher) {
		return null;
	}
	if (filter.field === "runtime") {
		const kinds = Array.from({ length: 256 }, (_, kind) => matcher(kindName(kind)));
		return (node) => kinds[f.kind[node]!]!;
	}
	const column = f[filter.field];
	const texts = Uint8Array.from(f.strings, (s) => (matcher(s) ? 1 : 0));
	return (node) => texts[column[node]!] === 1;
}

/** The word of a frame's group; "": none, the frame is not grouped. */
function wordsOf(f: Flame, group: Group): (node: number) => string {
	if (group === "runtime") {
		return (node) => kindName(f.kind[node]!);
	}
	const column = group === "file" ? f.file : f.binary;
	return (node) => {
		if (f.kind[node] === Kind.kernel) {
			return "kernel";
		}
		return f.strings[column[node]!] || f.strings[f.binary[node]!] || "(unknown)";
	};
}

/** The nodes of the new graph while it grows, in the order of discovery. */
interface Grown {
	parent: number[];
	like: number[];
	name: number[];
	self: number[];
	rest: number[];
}

/** Gives each node the number of its identity and of its text. */
export function identities(f: Flame, group: Group) {
	const strings = [...f.strings];
	const numbers = new Map<string | number, number>();
	const numberOf = (key: string | number) => {
		const found = numbers.get(key);
		if (found !== undefined) {
			return found;
		}
		numbers.set(key, numbers.size);
		return numbers.size - 1;
	};
	const id = new Int32Array(f.count);
	const name = Int32Array.from(f.name);
	if (group === "function") {
		for (let i = 1; i < f.count; i++) {
			id[i] = numberOf((f.name[i]! * strings.length + f.binary[i]!) * 2 + f.inlined[i]!);
		}
		return { id, name, strings, count: numbers.size + 1 };
	}
	const word = wordsOf(f, group);
	const texts = new Map<string, number>();
	for (let i = 1; i < f.count; i++) {
		const isMarker = f.kind[i] === Kind.marker;
		const text = isMarker ? f.strings[f.name[i]!]! : word(i);
		id[i] = numberOf(text);
		let at = texts.get(text);
		if (at === undefined) {
			at = strings.push(text) - 1;
			texts.set(text, at);
		}
		name[i] = at;
	}
	return { id, name, strings, count: numbers.size + 1 };
}

/** Makes a graph: depth-first, children by descending value; nodes without a value are left out. */
function arrange(f: Flame, grown: Grown, strings: string[], group: Group, exact: boolean): Flame {
	const { parent, like, self, rest } = grown;
	const value = self.map((v, i) => v + rest[i]!);
	for (let i = value.length - 1; i > 0; i--) {
		value[parent[i]!] = value[parent[i]!]! + value[i]!;
	}
	const children: number[][] = parent.map(() => []);
	for (let i = 1; i < parent.length; i++) {
		if (value[i]! > 0) {
			children[parent[i]!]!.push(i);
		}
	}
	const order: number[] = [];
	const stack = [0];
	while (stack.length > 0) {
		const id = stack.pop()!;
		order.push(id);
		children[id]!.sort((a, b) => value[a]! - value[b]! || b - a);
		for (const child of children[id]!) {
			stack.push(child);
		}
	}
	const place = new Int32Array(parent.length);
	order.forEach((id, i) => {
		place[id] = i;
	});
	const isFunction = group === "function";
	const pick = (column: ArrayLike<number>, keep = isFunction) =>
		Int32Array.from(order, (id) => (keep ? column[like[id]!]! : 0));
	const total = value[0]!;
	return buildFlame({
		unit: f.unit,
		total,
		trimmed: exact ? 0 : rest.reduce((a, b) => a + b, 0),
		samples: f.samples === null || f.total <= 0 ? f.samples : Math.round((f.samples * total) / f.total),
		pending: f.pending,
		strings,
		parent: Int32Array.from(order, (id) => place[parent[id]!]!),
		name: Int32Array.from(order, (id) => grown.name[id]!),
		file: pick(f.file, isFunction || group === "file"),
		line: pick(f.line),
		binary: pick(f.binary, isFunction || group === "binary"),
		kind: Uint8Array.from(order, (id) => f.kind[like[id]!]!),
		inlined: Uint8Array.from(pick(f.inlined)),
		self: Float64Array.from(order, (id) => self[id]!),
		value: Float64Array.from(order, (id) => value[id]!),
	});
}

/** The graph after filters, with its frames grouped; the same graph if there is nothing to do. */
export function transform(f: Flame, filters: readonly Filter[], wanted: Group): Flame {
	// values of a label are nodes in the server's graph
	const group = wanted === "label" ? "function" : wanted;
	const tests = filters
		.slice(0, FILTERS_MAX)
		.map((filter) => ({ op: filter.op, hits: hitsOf(f, filter) }))
		.filter((test) => test.hits !== null);
	if (tests.length === 0 && group === "function") {
		return f;
	}
	const { id, name, strings, count } = identities(f, group);
	const grown: Grown = { parent: [0], like: [0], name: [f.name[0]!], self: [0], rest: [0] };
	const found = new Map<number, number>();
	const place = new Int32Array(f.count);
	/** By node: a bit for each `only` that the stack has matched so far; -1: the stack is dropped. */
	const met = new Int32Array(f.count);
	const onlies = tests.filter((t) => t.op === "only");
	const all = (1 << onlies.length) - 1;
	for (let i = 0; i < f.count; i++) {
		const p = f.parent[i]!;
		if (i > 0) {
			met[i] = met[p]!;
			let hidden = group !== "function" && p > 0 && id[i] === id[p];
			for (const { op, hits } of tests) {
				if (op !== "only" && hits!(i)) {
					met[i] = op === "drop" ? -1 : met[i]!;
					hidden ||= op === "hide";
				}
			}
			onlies.forEach(({ hits }, k) => {
				met[i] = met[i]! >= 0 && hits!(i) ? met[i]! | (1 << k) : met[i]!;
			});
			place[i] = hidden ? place[p]! : childOf(grown, found, place[p]!, i, id[i]!, name[i]!, count);
		}
		if (met[i] === all) {
			const at = place[i]!;
			grown.self[at] = grown.self[at]! + f.self[i]!;
			grown.rest[at] = grown.rest[at]! + Math.max(0, f.value[i]! - f.inner[i]! - f.self[i]!);
		}
	}
	return arrange(f, grown, strings, group, f.trimmed === 0);
}

/** The child of a new node that stands for a function or a group; made when missing. */
function childOf(
	grown: Grown,
	found: Map<number, number>,
	parent: number,
	like: number,
	id: number,
	name: number,
	count: number,
): number {
	const key = parent * count + id;
	let child = found.get(key);
	if (child === undefined) {
		child = grown.parent.push(parent) - 1;
		grown.like.push(like);
		grown.name.push(name);
		grown.self.push(0);
		grown.rest.push(0);
		found.set(key, child);
	}
	return child;
}
