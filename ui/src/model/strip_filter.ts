// SPDX-License-Identifier: Apache-2.0
/**
 * Filters and groups of a flame chart over time. As in the other views, `hide` moves the callees of
 * a frame up, and a group is one bar for calls within the group. Times do not change: nothing is
 * shown where stacks were dropped, so their callers are cut into the remaining pieces.
 */
import { type Filter, FILTERS_MAX, type Group, hitsOf, identities } from "./filter.ts";
import { buildFlame, type Flame } from "./flame.ts";
import { busiestOf, type Strip, type Strips } from "./strips.ts";

/** Shorter times come from rounding, in milliseconds. */
const ROUNDING_MS = 1e-6;
/** Pieces of a group whose distance is below this share of their length are joined. */
const NEAR = 0.1;

/** The filters' result for each node. */
interface Marks {
	/** 1: its own time is kept. */
	own: Uint8Array;
	/** 1: its callees are shown in its place. */
	hidden: Uint8Array;
}

function marksOf(s: Strips, filters: readonly Filter[], group: Group, id: Int32Array): Marks {
	const f = s.flame;
	const tests = filters
		.slice(0, FILTERS_MAX)
		.map((filter) => ({ op: filter.op, hits: hitsOf(f, filter) }))
		.filter((test) => test.hits !== null);
	const onlies = tests.filter((t) => t.op === "only");
	const all = (1 << onlies.length) - 1;
	/** By node: a bit for each `only` that the stack has matched; -1: the stack is dropped. */
	const met = new Int32Array(f.count);
	const own = new Uint8Array(f.count);
	const hidden = new Uint8Array(f.count);
	for (const i of s.order) {
		const isTop = s.level[i] === 0;
		const p = f.parent[i]!;
		met[i] = isTop ? 0 : met[p]!;
		hidden[i] = group !== "function" && !isTop && id[i] === id[p] ? 1 : 0;
		for (const { op, hits } of tests) {
			if (op === "drop" && hits!(i)) {
				met[i] = -1;
			} else if (op === "hide" && hits!(i)) {
				hidden[i] = 1;
			}
		}
		onlies.forEach(({ hits }, k) => {
			met[i] = met[i]! >= 0 && hits!(i) ? met[i]! | (1 << k) : met[i]!;
		});
		own[i] = met[i] === all ? 1 : 0;
	}
	return { own, hidden };
}

/** The remaining pieces of each call: from, to, from, to … in milliseconds, ascending. */
function piecesOf({ flame, order, start, length }: Strips, own: Uint8Array): number[][] {
	const pieces: number[][] = [];
	for (let k = order.length - 1; k >= 0; k--) {
		const i = order[k]!;
		const left: number[] = [];
		const add = (from: number, to: number) => {
			if (to - from <= ROUNDING_MS) {
				return;
			}
			if (left.length > 0 && from - left.at(-1)! <= ROUNDING_MS) {
				left[left.length - 1] = to;
			} else {
				left.push(from, to);
			}
		};
		let at = start[i]!;
		for (let c = i + 1; c < flame.end[i]!; c = flame.end[c]!) {
			if (own[i]) {
				add(at, start[c]!);
			}
			const below = pieces[c]!;
			for (let n = 0; n < below.length; n += 2) {
				add(below[n]!, below[n + 1]!);
			}
			at = start[c]! + length[c]!;
		}
		if (own[i]) {
			add(at, start[i]! + length[i]!);
		}
		pieces[i] = left;
	}
	return pieces;
}

/** The nodes of the new chart, depth first. */
class Grown {
	like = [0];
	parent = [0];
	value = [0];
	self = [0];
	start = [0];
	length = [0];
	level = [-1];
	/** The last child of each node so far. */
	private last = [0];
	private nextChild: Int32Array;
	private nextPiece: Int32Array;

	constructor(
		private s: Strips,
		private pieces: number[][],
		private hidden: Uint8Array,
		private id: Int32Array,
	) {
		this.nextChild = Int32Array.from({ length: s.flame.count }, (_, i) => i + 1);
		this.nextPiece = new Int32Array(s.flame.count);
	}

	/** Adds all pieces of a call of which more than half is before a time. */
	addUntil(i: number, to: number, parent: number): boolean {
		const left = this.pieces[i]!;
		for (; this.nextPiece[i]! < left.length; ) {
			const at = this.nextPiece[i]!;
			if ((left[at]! + left[at + 1]!) / 2 >= to) {
				return false;
			}
			this.nextPiece[i] = at + 2;
			this.add(i, left[at]!, left[at + 1]!, parent);
		}
		return true;
	}

	private add(i: number, from: number, to: number, parent: number): void {
		const { end } = this.s.flame;
		const node = this.hidden[i] ? parent : this.node(i, from, to, parent);
		while (this.nextChild[i]! < end[i]! && this.addUntil(this.nextChild[i]!, to, node)) {
			this.nextChild[i] = end[this.nextChild[i]!]!;
		}
	}

	private node(i: number, from: number, to: number, parent: number): number {
		const value = (this.s.flame.value[i]! / this.s.length[i]!) * (to - from);
		this.self[parent] = this.self[parent]! - value;
		const before = this.last[parent]!;
		const gap = from - (this.start[before]! + this.length[before]!);
		if (before > 0 && this.id[this.like[before]!] === this.id[i] && gap <= NEAR * Math.min(to - from, this.length[before]!)) {
			this.value[before] = this.value[before]! + value;
			this.self[before] = this.self[before]! + value;
			this.length[before] = to - this.start[before]!;
			return before;
		}
		const made = this.parent.push(parent) - 1;
		this.last[parent] = made;
		this.last.push(0);
		this.like.push(i);
		this.value.push(value);
		this.self.push(value);
		this.start.push(from);
		this.length.push(to - from);
		this.level.push(this.level[parent]! + 1);
		return made;
	}

	/** Begins the next row: what comes is not joined to the one before. */
	nextRow(): void {
		this.last[0] = 0;
	}
}

function flameOf(f: Flame, g: Grown, group: Group, names: Int32Array, strings: string[]): Flame {
	const isFunction = group === "function";
	const pick = (column: ArrayLike<number>, has = isFunction) => Int32Array.from(g.like, (i) => (has ? column[i]! : 0));
	const total = -g.self[0]!;
	g.value[0] = total;
	g.self[0] = 0;
	return buildFlame({
		unit: f.unit,
		total,
		trimmed: f.trimmed,
		samples: null,
		pending: f.pending,
		strings,
		parent: Int32Array.from(g.parent),
		name: pick(names, true),
		file: pick(f.file, isFunction || group === "file"),
		line: pick(f.line),
		binary: pick(f.binary, isFunction || group === "binary"),
		kind: Uint8Array.from(g.like, (i) => f.kind[i]!),
		inlined: Uint8Array.from(pick(f.inlined)),
		self: Float64Array.from(g.self, (v) => Math.max(0, v)),
		value: Float64Array.from(g.value),
	});
}

/** The chart after filters, with its calls grouped; the same chart if there is nothing to do. */
export function filterStrips(s: Strips, filters: readonly Filter[], wanted: Group): Strips {
	const group = wanted === "label" ? "function" : wanted;
	if (filters.length === 0 && group === "function") {
		return s;
	}
	const { id, name, strings } = identities(s.flame, group);
	const { own, hidden } = marksOf(s, filters, group, id);
	const g = new Grown(s, piecesOf(s, own), hidden, id);
	const ends = s.rows.map((row) => {
		g.nextRow();
		for (let k = row.from; k < row.to; ) {
			const top = s.order[k]!;
			g.addUntil(top, Number.POSITIVE_INFINITY, 0);
			k += s.flame.end[top]! - top;
		}
		return g.parent.length - 1;
	});
	const flame = flameOf(s.flame, g, group, name, strings);
	const order = Int32Array.from({ length: flame.count - 1 }, (_, k) => k + 1);
	const rows = s.rows.map((row, r): Strip => {
		const from = r === 0 ? 0 : ends[r - 1]!;
		const nodes = order.subarray(from, ends[r]!);
		const tops = nodes.filter((i) => g.level[i] === 0);
		const last = tops[tops.length - 1] ?? 0;
		return {
			value: row.value,
			total: tops.reduce((sum, i) => sum + g.value[i]!, 0),
			from,
			to: ends[r]!,
			depth: nodes.reduce((most, i) => Math.max(most, g.level[i]! + 1), 0),
			busiest: busiestOf(flame, nodes),
			merged: row.merged,
			fromMs: g.start[tops[0] ?? 0]!,
			toMs: g.start[last]! + g.length[last]!,
		};
	});
	return {
		flame,
		rows: rows.filter((row) => row.to > row.from).sort((a, b) => b.total - a.total),
		order,
		start: Float64Array.from(g.start),
		length: Float64Array.from(g.length),
		level: Int32Array.from(g.level),
	};
}
