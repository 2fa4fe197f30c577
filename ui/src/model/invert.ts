// SPDX-License-Identifier: Apache-2.0
/**
 * Inverts a graph. No node is looked up by its name: the stacks of a node are consecutive, and a
 * node is expanded by sorting its stacks by their next caller. So each stack is visited once for
 * each caller, and the value of a node is known when it is made.
 */
import { buildFlame, type Flame } from "./flame.ts";
import { NODES_MAX } from "./stacks.ts";

/** Numbers the functions of a graph; for each, the first node that has it. */
function functionsOf(f: Flame): { of: Int32Array; like: number[] } {
	const named = new Map<number, number>();
	const found = new Map<number, number>();
	const of = new Int32Array(f.count);
	const like: number[] = [];
	const texts = f.strings.length;
	for (let i = 0; i < f.count; i++) {
		const name = f.name[i]! * texts + f.binary[i]!;
		let part = named.get(name);
		if (part === undefined) {
			part = named.size;
			named.set(name, part);
		}
		const key = (part * texts + f.file[i]!) * 2 + f.inlined[i]!;
		let at = found.get(key);
		if (at === undefined) {
			at = like.push(i) - 1;
			found.set(key, at);
		}
		of[i] = at;
	}
	return { of, like };
}

/** The nodes of the new graph, and the stacks that are still to be expanded. */
class Inverted {
	count = 1;
	readonly parent: Int32Array;
	readonly fn: Int32Array;
	readonly value: Float64Array;
	readonly self: Float64Array;
	/** By node: its child of largest value, and its next sibling. 0: none. */
	readonly first: Int32Array;
	readonly next: Int32Array;
	trimmed = 0;
	/** By node: its stacks, a range of `stacks`. */
	private readonly low: Int32Array;
	private readonly high: Int32Array;
	/** Nodes of the old graph with values of their own, and the next caller of each; 0: no further one. */
	private readonly stacks: Int32Array;
	private readonly caller: Int32Array;
	private readonly moved: Int32Array;
	/** By function: the child of the current node, or 0. */
	private readonly child: Int32Array;
	private readonly f: Flame;
	private readonly of: Int32Array;
	private readonly nodesMax: number;

	constructor(f: Flame, of: Int32Array, functions: number, nodesMax: number) {
		this.f = f;
		this.of = of;
		this.nodesMax = nodesMax;
		let bound = 1;
		let leaves = 0;
		for (let i = 1; i < f.count; i++) {
			if (f.self[i]! > 0) {
				leaves++;
				bound += f.depth[i]!;
			}
		}
		const room = Math.max(1, Math.min(bound, nodesMax));
		this.parent = new Int32Array(room);
		this.fn = new Int32Array(room);
		this.value = new Float64Array(room);
		this.self = new Float64Array(room);
		this.first = new Int32Array(room);
		this.next = new Int32Array(room);
		this.low = new Int32Array(room);
		this.high = new Int32Array(room);
		this.stacks = new Int32Array(leaves);
		this.caller = new Int32Array(f.count);
		this.moved = new Int32Array(leaves);
		this.child = new Int32Array(functions);
		for (let i = 1, at = 0; i < f.count; i++) {
			if (f.self[i]! > 0) {
				this.stacks[at++] = i;
				this.caller[i] = i;
				this.value[0] = this.value[0]! + f.self[i]!;
			}
		}
		this.high[0] = leaves;
		if (bound <= nodesMax) {
			this.expandAll();
		} else {
			this.expandDearest();
		}
	}

	private expandAll(): void {
		const waiting = [0];
		const push = (child: number) => {
			if (this.high[child]! - this.low[child]! === 1) {
				this.chain(child);
			} else {
				waiting.push(child);
			}
		};
		while (waiting.length > 0) {
			this.expand(waiting.pop()!, push);
		}
	}

	/** Expands the only stack of a node to its end: most nodes have only one. */
	private chain(node: number): void {
		const { parent } = this.f;
		const stack = this.stacks[this.low[node]!]!;
		const value = this.f.self[stack]!;
		for (let at = this.caller[stack]!; at !== 0; at = parent[at]!) {
			const child = this.count++;
			this.parent[child] = node;
			this.fn[child] = this.of[at]!;
			this.value[child] = value;
			this.first[node] = child;
			node = child;
		}
		this.self[node] = value;
	}

	/** If there is no room for all nodes: expands the node of the largest value next, by a heap. */
	private expandDearest(): void {
		const { value } = this;
		const heap: number[] = [];
		const push = (node: number) => {
			let at = heap.push(node) - 1;
			for (; at > 0 && value[heap[(at - 1) >> 1]!]! < value[node]!; at = (at - 1) >> 1) {
				heap[at] = heap[(at - 1) >> 1]!;
			}
			heap[at] = node;
		};
		const pop = (): number => {
			const top = heap[0]!;
			const last = heap.pop()!;
			let at = 0;
			for (let below = 1; below < heap.length; below = 2 * at + 1) {
				if (below + 1 < heap.length && value[heap[below + 1]!]! > value[heap[below]!]!) {
					below++;
				}
				if (value[heap[below]!]! <= value[last]!) {
					break;
				}
				heap[at] = heap[below]!;
				at = below;
			}
			if (heap.length > 0) {
				heap[at] = last;
			}
			return top;
		};
		push(0);
		while (heap.length > 0) {
			this.expand(pop(), push);
		}
	}

	/** Makes a node's children, the largest value first; `trimmed`: the value of those without room. */
	private expand(node: number, made: (child: number) => void): void {
		const { f, of, stacks, caller, child, value, low, high } = this;
		const from = low[node]!;
		const to = high[node]!;
		const kids: number[] = [];
		let left = 0;
		for (let i = from; i < to; i++) {
			const stack = stacks[i]!;
			const at = caller[stack]!;
			if (at === 0) {
				this.self[node] = this.self[node]! + f.self[stack]!;
				continue;
			}
			let kid = child[of[at]!]!;
			if (kid === 0 && this.count < this.nodesMax) {
				kid = this.count++;
				child[of[at]!] = kid;
				this.parent[kid] = node;
				this.fn[kid] = of[at]!;
				kids.push(kid);
			}
			if (kid === 0) {
				left += f.self[stack]!;
			} else {
				value[kid] = value[kid]! + f.self[stack]!;
				high[kid] = high[kid]! + 1;
			}
		}
		this.trimmed += left;
		if (kids.length === 0) {
			return;
		}
		kids.sort((a, b) => value[b]! - value[a]! || a - b);
		this.share(node, kids);
		for (let i = kids.length - 1; i >= 0; i--) {
			made(kids[i]!);
		}
	}

	/** Gives each child its stacks, as a consecutive range. */
	private share(node: number, kids: readonly number[]): void {
		const { of, stacks, caller, child, moved, low, high } = this;
		const from = low[node]!;
		const to = high[node]!;
		let end = from;
		let before = 0;
		for (const kid of kids) {
			const size = high[kid]!;
			low[kid] = end;
			high[kid] = end;
			end += size;
			if (before === 0) {
				this.first[node] = kid;
			} else {
				this.next[before] = kid;
			}
			before = kid;
		}
		for (let i = from; i < to; i++) {
			const stack = stacks[i]!;
			const at = caller[stack]!;
			const kid = at === 0 ? 0 : child[of[at]!]!;
			if (kid !== 0) {
				moved[high[kid]!] = stack;
				high[kid] = high[kid]! + 1;
				caller[stack] = this.f.parent[at]!;
			}
		}
		stacks.set(moved.subarray(from, end), from);
		for (const kid of kids) {
			child[this.fn[kid]!] = 0;
		}
	}

	/** The nodes depth-first. */
	order(): Int32Array {
		const { parent, first, next } = this;
		const order = new Int32Array(this.count);
		let node = 0;
		for (let at = 1; at < this.count; at++) {
			if (first[node]! !== 0) {
				node = first[node]!;
			} else {
				while (next[node]! === 0) {
					node = parent[node]!;
				}
				node = next[node]!;
			}
			order[at] = node;
		}
		return order;
	}
}

/**
 * The inverted graph: each function that ran, and below it its callers. Beyond `nodesMax` nodes,
 * callers of the smallest nodes are left out; `trimmed` has their value.
 */
export function invertFlame(f: Flame, nodesMax = NODES_MAX): Flame {
	const { of, like } = functionsOf(f);
	const made = new Inverted(f, of, like.length, nodesMax);
	const order = made.order();
	const count = order.length;
	const place = new Int32Array(count);
	const numbers = () => new Int32Array(count);
	const columns = {
		parent: numbers(),
		name: numbers(),
		file: numbers(),
		binary: numbers(),
		line: numbers(),
		kind: new Uint8Array(count),
		inlined: new Uint8Array(count),
		self: new Float64Array(count),
		value: new Float64Array(count),
	};
	columns.self[0] = made.self[0]!;
	columns.value[0] = made.value[0]!;
	for (let at = 1; at < count; at++) {
		const id = order[at]!;
		const source = like[made.fn[id]!]!;
		place[id] = at;
		columns.parent[at] = place[made.parent[id]!]!;
		columns.name[at] = f.name[source]!;
		columns.file[at] = f.file[source]!;
		columns.binary[at] = f.binary[source]!;
		columns.line[at] = f.line[source]!;
		columns.kind[at] = f.kind[source]!;
		columns.inlined[at] = f.inlined[source]!;
		columns.self[at] = made.self[id]!;
		columns.value[at] = made.value[id]!;
	}
	const { unit, samples, strings } = f;
	return buildFlame({ ...columns, unit, total: made.value[0]!, trimmed: made.trimmed, samples, pending: 0, strings });
}
