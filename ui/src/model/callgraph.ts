// SPDX-License-Identifier: Apache-2.0
/** A call graph made of a flame graph: all frames of a function are one node. */
import { type Flame, Kind } from "./flame.ts";

/** A function; values in the unit of the profile, a recursion counted once. */
export interface CallNode {
	name: string;
	binary: string;
	kernel: boolean;
	self: number;
	total: number;
}

/** A call, with the numbers of its nodes. */
export interface Call {
	from: number;
	to: number;
	total: number;
}

export interface CallGraph {
	nodes: CallNode[];
	calls: Call[];
	/** How many functions and calls are left out. */
	less: number;
}

/** The most functions that are shown: more could not be read. */
export const NODES_MAX = 60;
/** Calls below this share of the whole are left out, except the largest of each function. */
const SHARE_MIN = 0.005;

interface Sums {
	nodes: Map<number, CallNode>;
	calls: Map<number, Call>;
}

/** Sums up everything below `root`. In a graph of callers the nodes below are the callers. */
function sumUp(f: Flame, root: number, callers: boolean): Sums {
	const nodes = new Map<number, CallNode>();
	const calls = new Map<number, Call>();
	const numbers = new Map<number, number>();
	const key = new Int32Array(f.count);
	/** By function, or call: end of the outermost subtree that is being walked. */
	const covered = new Map<number, number>();
	const isFunction = (i: number) => i > 0 && f.kind[i] !== Kind.marker && f.strings[f.name[i]!] !== "";
	for (let i = root; i < f.end[root]!; i++) {
		if (!isFunction(i)) {
			key[i] = -1;
			continue;
		}
		const id = f.name[i]! * f.strings.length + f.binary[i]!;
		const number = numbers.get(id) ?? numbers.size;
		numbers.set(id, number);
		key[i] = number;
		let node = nodes.get(number);
		if (!node) {
			const [name, binary] = [f.strings[f.name[i]!] ?? "", f.strings[f.binary[i]!] ?? ""];
			node = { name, binary, kernel: f.kind[i] === Kind.kernel, self: 0, total: 0 };
			nodes.set(number, node);
		}
		node.self += !callers ? f.self[i]! : f.depth[i] === 1 ? f.value[i]! : 0;
		if (i >= (covered.get(number) ?? 0)) {
			node.total += f.value[i]!;
			covered.set(number, f.end[i]!);
		}
		const above = i > root ? key[f.parent[i]!]! : -1;
		if (above < 0 || above === number) {
			continue;
		}
		const [from, to] = callers ? [number, above] : [above, number];
		const edge = -1 - (from * f.count + to);
		const call = calls.get(edge) ?? { from, to, total: 0 };
		calls.set(edge, call);
		if (i >= (covered.get(edge) ?? 0)) {
			call.total += f.value[i]!;
			covered.set(edge, f.end[i]!);
		}
	}
	return { nodes, calls };
}

/** The functions that cost most, with the calls between them. */
export function callGraph(f: Flame, root: number, callers: boolean, most = NODES_MAX): CallGraph {
	const sums = sumUp(f, root, callers);
	const kept = [...sums.nodes].sort((a, b) => b[1].total - a[1].total || a[0] - b[0]).slice(0, most);
	const place = new Map(kept.map(([number], i) => [number, i]));
	const inside = [...sums.calls.values()]
		.filter((c) => place.has(c.from) && place.has(c.to))
		.sort((a, b) => b.total - a.total);
	const reached = new Set<number>();
	const calls = inside.filter((c) => {
		const keep = c.total >= f.value[root]! * SHARE_MIN || !reached.has(c.to);
		reached.add(c.to);
		return keep;
	});
	return {
		nodes: kept.map(([, node]) => node),
		calls: calls.map((c) => ({ from: place.get(c.from)!, to: place.get(c.to)!, total: c.total })),
		less: sums.nodes.size - kept.length + inside.length - calls.length,
	};
}
