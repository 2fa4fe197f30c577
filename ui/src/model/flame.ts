// SPDX-License-Identifier: Apache-2.0
/**
 * A flame graph as columns of typed arrays, in depth-first order: a node's first child comes
 * directly after it, and `end` is one past its subtree. Other columns are derived from that order.
 */

/** The API's numbers of frame kinds. */
export const Kind = { unknown: 0, native: 1, kernel: 2, python: 3, marker: 15 } as const;

/** A flame graph. Values are integers in `unit`; node 0 is the root. */
export interface Flame {
	unit: string;
	/** Value of the root. */
	total: number;
	/** Value of the frames that were too small to be sent. */
	trimmed: number;
	/** Number of samples of the shown values; null: it cannot be computed. */
	samples: number | null;
	/** Locations whose symbols are still being read. */
	pending: number;
	strings: string[];
	count: number;
	parent: Int32Array;
	/** Indexes of `strings`, like `file` and `binary`. */
	name: Int32Array;
	file: Int32Array;
	line: Int32Array;
	binary: Int32Array;
	kind: Uint8Array;
	inlined: Uint8Array;
	self: Float64Array;
	value: Float64Array;
	/** Root: 0. */
	depth: Int32Array;
	/** One past the last node of the subtree. */
	end: Int32Array;
	/** Where the node begins on the value axis; the root begins at 0. */
	start: Float64Array;
	/** Sum of the children's values. */
	inner: Float64Array;
	/** The largest depth. */
	deepest: number;
}

/** The columns a flame graph is made from; all of one length. */
export type FlameColumns = Pick<
	Flame,
	| "unit"
	| "total"
	| "trimmed"
	| "samples"
	| "pending"
	| "strings"
	| "parent"
	| "name"
	| "file"
	| "line"
	| "binary"
	| "kind"
	| "inlined"
	| "self"
	| "value"
>;

/** Derives depth, subtree ends and positions. The columns must be in depth-first order. */
export function buildFlame(columns: FlameColumns): Flame {
	const { parent, value } = columns;
	const count = parent.length;
	const depth = new Int32Array(count);
	const end = new Int32Array(count);
	const start = new Float64Array(count);
	const inner = new Float64Array(count);
	let deepest = 0;
	for (let i = 1; i < count; i++) {
		const p = parent[i]!;
		depth[i] = depth[p]! + 1;
		start[i] = start[p]! + inner[p]!;
		inner[p] = inner[p]! + value[i]!;
		if (depth[i]! > deepest) {
			deepest = depth[i]!;
		}
	}
	for (let i = count - 1; i >= 0; i--) {
		if (end[i] === 0) {
			end[i] = i + 1;
		}
		const p = parent[i]!;
		if (i > 0 && end[p]! < end[i]!) {
			end[p] = end[i]!;
		}
	}
	return { ...columns, count, depth, end, start, inner, deepest };
}

/** An empty graph: a root of value 0. */
export function emptyFlame(unit: string): Flame {
	const one = () => new Int32Array(1);
	return buildFlame({
		unit,
		total: 0,
		trimmed: 0,
		samples: 0,
		pending: 0,
		strings: [""],
		parent: one(),
		name: one(),
		file: one(),
		line: one(),
		binary: one(),
		kind: new Uint8Array(1),
		inlined: new Uint8Array(1),
		self: new Float64Array(1),
		value: new Float64Array(1),
	});
}

/** The shown name of a node; the root is "all". */
export function nodeName(f: Flame, node: number): string {
	return f.strings[f.name[node]!] || (node === 0 ? "all" : "(no name)");
}

/** Base name of the node's binary, or "". */
export function nodeBinary(f: Flame, node: number): string {
	return f.strings[f.binary[node]!] ?? "";
}

/** "file:line", "file", or "". */
export function nodeSource(f: Flame, node: number): string {
	const file = f.strings[f.file[node]!] ?? "";
	const line = f.line[node]!;
	return file && line > 0 ? `${file}:${line}` : file;
}

/** The nodes from the root to `node`, both included. */
export function pathTo(f: Flame, node: number): number[] {
	const path: number[] = [];
	for (let i = node; i > 0; i = f.parent[i]!) {
		path.push(i);
	}
	path.push(0);
	return path.reverse();
}

/** First child, or -1. */
export function firstChild(f: Flame, node: number): number {
	return f.end[node]! > node + 1 ? node + 1 : -1;
}

/** The node at value `x` and depth `depth` below `from`, or -1. */
export function nodeAt(f: Flame, x: number, depth: number): number {
	let node = 0;
	if (x < 0 || x >= f.value[0]!) {
		return -1;
	}
	while (f.depth[node]! < depth) {
		let child = node + 1;
		const end = f.end[node]!;
		while (child < end && x >= f.start[child]! + f.value[child]!) {
			child = f.end[child]!;
		}
		if (child >= end || x < f.start[child]!) {
			return -1;
		}
		node = child;
	}
	return node;
}

/** FNV-1a of a string, continued from `seed`: 32 bits. */
export function hashString(s: string, seed = 0x811c9dc5): number {
	let h = seed;
	for (let i = 0; i < s.length; i++) {
		h = Math.imul(h ^ s.charCodeAt(i), 0x01000193);
	}
	return h >>> 0;
}

function pathHashes(f: Flame, seed: number): Uint32Array {
	const names = f.strings.map((s) => hashString(s, seed));
	const hashes = new Uint32Array(f.count);
	for (let i = 1; i < f.count; i++) {
		const mixed = Math.imul(hashes[f.parent[i]!]! ^ names[f.name[i]!]!, 0x9e3779b1);
		hashes[i] = Math.imul(mixed ^ (mixed >>> 15) ^ names[f.binary[i]!]!, 0x85ebca77) >>> 0;
	}
	return hashes;
}

const keys = new WeakMap<Flame, [Uint32Array, Uint32Array]>();

function keysOf(f: Flame): [Uint32Array, Uint32Array] {
	let pair = keys.get(f);
	if (!pair) {
		pair = [pathHashes(f, 0x811c9dc5), pathHashes(f, 0x2f0b4a27)];
		keys.set(f, pair);
	}
	return pair;
}

/**
 * A short key for the path from the root to `node`, for the URL. It is the same in every graph with
 * this path; "" for the root.
 */
export function nodeKey(f: Flame, node: number): string {
	if (node <= 0) {
		return "";
	}
	const [a, b] = keysOf(f);
	return `${a[node]!.toString(36)}-${b[node]!.toString(36)}`;
}

/** The node with this key; -1: the graph has no such path. */
export function findKey(f: Flame, key: string): number {
	if (key === "") {
		return 0;
	}
	const [first, second] = key.split("-").map((part) => Number.parseInt(part, 36));
	const [a, b] = keysOf(f);
	for (let i = 1; i < f.count; i++) {
		if (a[i] === first && b[i] === second) {
			return i;
		}
	}
	return -1;
}

/** The node of another graph with the same path, or -1. */
export function relocate(from: Flame, node: number, to: Flame): number {
	if (node <= 0 || from === to) {
		return node;
	}
	return findKey(to, nodeKey(from, node));
}

/** The same, or the nearest caller that the other graph has. */
export function relocateNear(from: Flame, node: number, to: Flame): number {
	for (let i = node; i > 0; i = from.parent[i]!) {
		const found = relocate(from, i, to);
		if (found >= 0) {
			return found;
		}
	}
	return 0;
}
