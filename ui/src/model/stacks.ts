// SPDX-License-Identifier: Apache-2.0
/** Graphs out of stacks: for files that are opened in the page, and for graphs turned around. */
import { buildFlame, type Flame, Kind } from "./flame.ts";

/** A frame as a file tells it. */
export interface Frame {
	name: string;
	binary: string;
	file: string;
	line: number;
	kind: number;
	inlined: boolean;
}

/** Nodes of one graph, and frames of one file. */
export const NODES_MAX = 4_000_000;
export const FRAMES_MAX = 4_000_000;

/** Frames by number, the same frame once. */
export class Frames {
	readonly all: Frame[] = [];
	private readonly found = new Map<string, number>();

	number(frame: Partial<Frame> & { name: string }): number {
		const { name, binary = "", file = "", line = 0, kind = Kind.unknown, inlined = false } = frame;
		const key = `${name}\n${binary}\n${file}\n${inlined}`;
		let at = this.found.get(key);
		if (at === undefined) {
			if (this.all.length >= FRAMES_MAX) {
				throw new Error(`more than ${FRAMES_MAX} functions`);
			}
			at = this.all.push({ name, binary, file, line, kind, inlined }) - 1;
			this.found.set(key, at);
		}
		return at;
	}
}

/** A graph while it grows. */
export class Tree {
	private readonly parent = [0];
	private readonly frame = [-1];
	private readonly self = [0];
	/** Values of callers that have no node. */
	private readonly rest = [0];
	private readonly children = new Map<number, number>();
	private readonly frames: readonly Frame[];
	samples = 0;

	private readonly nodesMax: number;

	constructor(frames: readonly Frame[], nodesMax = NODES_MAX) {
		this.frames = frames;
		this.nodesMax = nodesMax;
	}

	/** The node below `at` that has the frame; made when missing. */
	child(at: number, frame: number): number {
		const key = at * FRAMES_MAX + frame;
		let node = this.children.get(key);
		if (node === undefined) {
			if (this.parent.length >= this.nodesMax) {
				throw new Error(`a graph of more than ${this.nodesMax} frames`);
			}
			node = this.parent.push(at) - 1;
			this.frame.push(frame);
			this.self.push(0);
			this.rest.push(0);
			this.children.set(key, node);
		}
		return node;
	}

	/** A value for a node itself. */
	add(node: number, value: number): void {
		this.self[node] = this.self[node]! + value;
	}

	/** Whether a node may still be made, or is there. */
	hasRoom(at: number, frame: number): boolean {
		return this.parent.length < this.nodesMax || this.children.has(at * FRAMES_MAX + frame);
	}

	/** A value of frames below a node that do not get one. */
	addRest(node: number, value: number): void {
		this.rest[node] = this.rest[node]! + value;
	}

	/** A stack, its root first. */
	addStack(stack: readonly number[], value: number): void {
		let at = 0;
		for (const frame of stack) {
			at = this.child(at, frame);
		}
		this.add(at, value);
		this.samples++;
	}

	/** Depth-first, children by descending value; what has none is left out. */
	build(unit: string, samples: number | null): Flame {
		const { parent, self, frames, rest } = this;
		const value = self.map((own, i) => own + rest[i]!);
		for (let i = value.length - 1; i > 0; i--) {
			value[parent[i]!] = value[parent[i]!]! + value[i]!;
		}
		const below: number[][] = parent.map(() => []);
		for (let i = 1; i < parent.length; i++) {
			if (value[i]! > 0) {
				below[parent[i]!]!.push(i);
			}
		}
		const order: number[] = [];
		const stack = [0];
		while (stack.length > 0) {
			const id = stack.pop()!;
			order.push(id);
			below[id]!.sort((a, b) => value[a]! - value[b]! || b - a);
			for (const child of below[id]!) {
				stack.push(child);
			}
		}
		const place = new Int32Array(parent.length);
		order.forEach((id, i) => {
			place[id] = i;
		});
		const strings = [""];
		const ids = new Map([["", 0]]);
		const text = (s: string) => {
			let at = ids.get(s);
			if (at === undefined) {
				at = strings.push(s) - 1;
				ids.set(s, at);
			}
			return at;
		};
		const none: Frame = { name: "", binary: "", file: "", line: 0, kind: 0, inlined: false };
		const of = (id: number) => frames[this.frame[id]!] ?? none;
		return buildFlame({
			unit,
			total: value[0]!,
			trimmed: rest.reduce((sum, one) => sum + one, 0),
			samples,
			pending: 0,
			strings,
			parent: Int32Array.from(order, (id) => place[parent[id]!]!),
			name: Int32Array.from(order, (id) => text(of(id).name)),
			file: Int32Array.from(order, (id) => text(of(id).file)),
			binary: Int32Array.from(order, (id) => text(of(id).binary)),
			line: Int32Array.from(order, (id) => of(id).line),
			kind: Uint8Array.from(order, (id) => of(id).kind),
			inlined: Uint8Array.from(order, (id) => (of(id).inlined ? 1 : 0)),
			self: Float64Array.from(order, (id) => self[id]!),
			value: Float64Array.from(order, (id) => value[id]!),
		});
	}
}

/** The nodes that have a value of their own; by value, where all their callers may be too many. */
function leavesOf(f: Flame, nodesMax: number): Int32Array {
	let nodes = 0;
	let count = 0;
	for (let i = 1; i < f.count; i++) {
		if (f.self[i]! > 0) {
			count++;
			nodes += f.depth[i]!;
		}
	}
	const leaves = new Int32Array(count);
	for (let i = 1, at = 0; i < f.count; i++) {
		if (f.self[i]! > 0) {
			leaves[at++] = i;
		}
	}
	return nodes < nodesMax ? leaves : leaves.sort((a, b) => f.self[b]! - f.self[a]! || a - b);
}

/**
 * The graph turned around: each function that ran, and below it its callers. Beyond `nodesMax` nodes callers
 * of what costs least are left out, and their value is `trimmed`.
 */
export function invertFlame(f: Flame, nodesMax = NODES_MAX): Flame {
	const frames = new Frames();
	const number = Int32Array.from(f.name, (_, i) =>
		frames.number({
			name: f.strings[f.name[i]!]!,
			binary: f.strings[f.binary[i]!]!,
			file: f.strings[f.file[i]!]!,
			line: f.line[i]!,
			kind: f.kind[i]!,
			inlined: f.inlined[i] === 1,
		}),
	);
	const tree = new Tree(frames.all, nodesMax);
	for (const i of leavesOf(f, nodesMax)) {
		let at = 0;
		let k = i;
		for (; k > 0 && tree.hasRoom(at, number[k]!); k = f.parent[k]!) {
			at = tree.child(at, number[k]!);
		}
		if (k > 0) {
			tree.addRest(at, f.self[i]!);
		} else {
			tree.add(at, f.self[i]!);
		}
	}
	return tree.build(f.unit, f.samples);
}
