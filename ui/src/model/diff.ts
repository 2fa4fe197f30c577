// SPDX-License-Identifier: Apache-2.0
/**
 * Two flame graphs as one: each node has its values on this side and in the base. The width of a
 * node is the mean of both, so that new and vanished nodes are both visible.
 */
import { buildFlame, type Flame, type FlameColumns } from "./flame.ts";

/** One side: its graph, which may be a part, and the values of the whole. */
export interface Side {
	flame: Flame;
	total: number;
	/** Number of samples; null: it cannot be computed. */
	samples: number | null;
}

/** A graph of two sides; columns by node. Pairs are [this side, base]. */
export interface Diff {
	/** Its values are widths without a unit. */
	flame: Flame;
	value: readonly [Float64Array, Float64Array];
	self: readonly [Float64Array, Float64Array];
	total: readonly [number, number];
	samples: readonly [number | null, number | null];
	/** Factor for values of the base: 1, or the one that makes both totals equal. */
	scale: number;
	absolute: boolean;
}

/** Gives functions of two graphs common numbers, by name, binary, and whether they were inlined. */
function numberBoth(a: Flame, b: Flame) {
	const strings = [...a.strings];
	const ids = new Map(strings.map((s, i) => [s, i]));
	const idsOfB = Int32Array.from(b.strings, (s) => {
		let id = ids.get(s);
		if (id === undefined) {
			id = strings.push(s) - 1;
			ids.set(s, id);
		}
		return id;
	});
	const idsOfA = Int32Array.from(a.strings, (_, i) => i);
	const numbers = new Map<number, number>();
	const functionsOf = (f: Flame, own: Int32Array) =>
		Int32Array.from(f.name, (name, i) => {
			const key = (own[name]! * strings.length + own[f.binary[i]!]!) * 2 + f.inlined[i]!;
			let number = numbers.get(key);
			if (number === undefined) {
				number = numbers.size;
				numbers.set(key, number);
			}
			return number;
		});
	const functions = [functionsOf(a, idsOfA), functionsOf(b, idsOfB)] as const;
	return { strings, ids: [idsOfA, idsOfB] as const, functions, count: numbers.size };
}

/** Joins the nodes of both into one tree, in the order of discovery. */
function joinTrees(sides: readonly [Flame, Flame], names: ReturnType<typeof numberBoth>) {
	const parent = [0];
	const side = [0];
	const like = [0];
	const found = new Map<number, number>();
	const places = sides.map((f, k) => {
		const place = new Int32Array(f.count);
		for (let i = 1; i < f.count; i++) {
			const above = place[f.parent[i]!]!;
			const key = above * names.count + names.functions[k]![i]!;
			let id = found.get(key);
			if (id === undefined) {
				id = parent.push(above) - 1;
				side.push(k);
				like.push(i);
				found.set(key, id);
			}
			place[i] = id;
		}
		return place;
	});
	return { parent, side, like, places };
}

/** Depth-first, children by descending width. */
function depthFirst(parent: readonly number[], width: Float64Array): number[] {
	const children: number[][] = parent.map(() => []);
	for (let id = 1; id < parent.length; id++) {
		children[parent[id]!]!.push(id);
	}
	const order: number[] = [];
	const stack = [0];
	while (stack.length > 0) {
		const id = stack.pop()!;
		order.push(id);
		children[id]!.sort((x, y) => width[x]! - width[y]! || y - x);
		for (const child of children[id]!) {
			stack.push(child);
		}
	}
	return order;
}

/** Joins two graphs. */
export function diffFlames(a: Side, b: Side, absolute: boolean): Diff {
	const sides = [a.flame, b.flame] as const;
	const names = numberBoth(...sides);
	const { parent, side, like, places } = joinTrees(sides, names);
	const count = parent.length;
	const sum = (k: 0 | 1, column: "value" | "self") => {
		const out = new Float64Array(count);
		const from = sides[k][column];
		places[k]!.forEach((id, i) => {
			out[id] = out[id]! + from[i]!;
		});
		return out;
	};
	const value = [sum(0, "value"), sum(1, "value")] as const;
	const self = [sum(0, "self"), sum(1, "self")] as const;
	const scale = absolute || b.total <= 0 || a.total <= 0 ? 1 : a.total / b.total;
	const mean = (pair: readonly [Float64Array, Float64Array]) =>
		pair[0].map((v, i) => (v + scale * pair[1][i]!) / 2);
	const [width, own] = [mean(value), mean(self)];
	const order = depthFirst(parent, width);
	const place = new Int32Array(count);
	order.forEach((id, i) => {
		place[id] = i;
	});
	const pick = (from: (f: Flame) => ArrayLike<number>) => (id: number) =>
		from(sides[side[id]!]!)[like[id]!]!;
	const text = (key: "name" | "file" | "binary") =>
		Int32Array.from(order, (id) => names.ids[side[id]!]![pick((f) => f[key])(id)]!);
	const put = (column: Float64Array) => Float64Array.from(order, (id) => column[id]!);
	const columns: FlameColumns = {
		unit: a.flame.unit || b.flame.unit,
		total: width[0]!,
		trimmed: a.flame.trimmed + b.flame.trimmed,
		samples: null,
		pending: a.flame.pending + b.flame.pending,
		strings: names.strings,
		parent: Int32Array.from(order, (id) => place[parent[id]!]!),
		name: text("name"),
		file: text("file"),
		binary: text("binary"),
		line: Int32Array.from(order, pick((f) => f.line)),
		kind: Uint8Array.from(order, pick((f) => f.kind)),
		inlined: Uint8Array.from(order, pick((f) => f.inlined)),
		self: put(own),
		value: put(width),
	};
	return {
		flame: buildFlame(columns),
		value: [put(value[0]), put(value[1])],
		self: [put(self[0]), put(self[1])],
		total: [a.total, b.total],
		samples: [a.samples, b.samples],
		scale,
		absolute,
	};
}
