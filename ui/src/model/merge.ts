// SPDX-License-Identifier: Apache-2.0
/** Makes new graphs of a graph: everything that a function calls, and everything that calls it. */
import { buildFlame, type Flame, type FlameColumns } from "./flame.ts";

/** Gives each node the number of its function: name, binary, and whether it was inlined. */
function numberFunctions(f: Flame): Int32Array {
	const numbers = new Map<number, number>();
	const labels = new Int32Array(f.count);
	for (let i = 0; i < f.count; i++) {
		const key = (f.name[i]! * f.strings.length + f.binary[i]!) * 2 + f.inlined[i]!;
		let number = numbers.get(key);
		if (number === undefined) {
			number = numbers.size;
			numbers.set(key, number);
		}
		labels[i] = number;
	}
	return labels;
}

/** A graph while it grows: nodes in the order of discovery. */
class Trie {
	parent: number[] = [0];
	/** By node: the source node from which it was made. */
	like: number[];
	self: number[] = [0];
	value: number[] = [0];
	private readonly found = new Map<number, number>();
	private readonly f: Flame;
	/** Number of the function of each source node. */
	private readonly labels: Int32Array;

	constructor(f: Flame, root: number) {
		this.f = f;
		this.like = [root];
		this.labels = numberFunctions(f);
	}

	/** The child of `parent` that has the function of the source node; made when missing. */
	child(parent: number, source: number): number {
		const key = parent * this.f.count + this.labels[source]!;
		const found = this.found.get(key);
		if (found !== undefined) {
			return found;
		}
		const id = this.parent.length;
		this.parent.push(parent);
		this.like.push(source);
		this.self.push(0);
		this.value.push(0);
		this.found.set(key, id);
		return id;
	}

	add(node: number, value: number, self: number): void {
		this.value[node] = this.value[node]! + value;
		this.self[node] = this.self[node]! + self;
	}

	/** In depth-first order, children by descending value. */
	build(): Flame {
		const order = this.order();
		const place = new Int32Array(order.length);
		order.forEach((id, i) => {
			place[id] = i;
		});
		const f = this.f;
		const pick = (column: ArrayLike<number>) =>
			Int32Array.from(order, (id) => column[this.like[id]!]!);
		const columns: FlameColumns = {
			unit: f.unit,
			total: this.value[0]!,
			trimmed: 0,
			samples: f.samples,
			pending: f.pending,
			strings: f.strings,
			parent: Int32Array.from(order, (id) => place[this.parent[id]!]!),
			name: pick(f.name),
			file: pick(f.file),
			line: pick(f.line),
			binary: pick(f.binary),
			kind: Uint8Array.from(order, (id) => f.kind[this.like[id]!]!),
			inlined: Uint8Array.from(order, (id) => f.inlined[this.like[id]!]!),
			self: Float64Array.from(order, (id) => this.self[id]!),
			value: Float64Array.from(order, (id) => this.value[id]!),
		};
		return buildFlame(columns);
	}

	private order(): number[] {
		const children: number[][] = this.parent.map(() => []);
		for (let id = 1; id < this.parent.length; id++) {
			children[this.parent[id]!]!.push(id);
		}
		const order: number[] = [];
		const stack = [0];
		while (stack.length > 0) {
			const id = stack.pop()!;
			order.push(id);
			children[id]!.sort((a, b) => this.value[a]! - this.value[b]! || b - a);
			for (const child of children[id]!) {
				stack.push(child);
			}
		}
		return order;
	}
}

/** The outermost nodes of a function. */
export function outermost(f: Flame, name: string): number[] {
	const id = f.strings.indexOf(name);
	const nodes: number[] = [];
	if (id < 0) {
		return nodes;
	}
	for (let i = 1; i < f.count; ) {
		if (f.name[i] === id) {
			nodes.push(i);
			i = f.end[i]!;
		} else {
			i++;
		}
	}
	return nodes;
}

/** Everything that the function calls, whoever calls it; null: it does not occur. */
export function calleesOf(f: Flame, name: string): Flame | null {
	const nodes = outermost(f, name);
	if (nodes.length === 0) {
		return null;
	}
	const trie = new Trie(f, nodes[0]!);
	const place = new Int32Array(f.count);
	for (const root of nodes) {
		place[root] = 0;
		trie.add(0, f.value[root]!, f.self[root]!);
		for (let i = root + 1; i < f.end[root]!; i++) {
			place[i] = trie.child(place[f.parent[i]!]!, i);
			trie.add(place[i]!, f.value[i]!, f.self[i]!);
		}
	}
	return trie.build();
}

/** Everything that calls the function, with callers below; null: it does not occur. */
export function callersOf(f: Flame, name: string): Flame | null {
	const nodes = outermost(f, name);
	if (nodes.length === 0) {
		return null;
	}
	const trie = new Trie(f, nodes[0]!);
	for (const node of nodes) {
		const value = f.value[node]!;
		let at = 0;
		trie.add(0, value, 0);
		for (let i = f.parent[node]!; i > 0; i = f.parent[i]!) {
			at = trie.child(at, i);
			trie.add(at, value, 0);
		}
		trie.add(at, 0, value);
	}
	return trie.build();
}
