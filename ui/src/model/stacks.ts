// SPDX-License-Identifier: Apache-2.0
/** Makes graphs of stacks, for files that are opened in the page. */
import { buildFlame, type Flame, Kind } from "./flame.ts";

/** A frame of a file. */
export interface Frame {
	name: string;
	binary: string;
	file: string;
	line: number;
	kind: number;
	inlined: boolean;
}

/** The most nodes of one graph, and frames of one file. */
export const NODES_MAX = 4_000_000;
export const FRAMES_MAX = 4_000_000;

/** Frames by number; equal frames have one number. */
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
	private readonly children = new Map<number, number>();
	private readonly frames: readonly Frame[];
	samples = 0;

	constructor(frames: readonly Frame[]) {
		this.frames = frames;
	}

	/** The node below `at` that has the frame; made when missing. */
	child(at: number, frame: number): number {
		const key = at * FRAMES_MAX + frame;
		let node = this.children.get(key);
		if (node === undefined) {
			if (this.parent.length >= NODES_MAX) {
				throw new Error(`a graph of more than ${NODES_MAX} frames`);
			}
			node = this.parent.push(at) - 1;
			this.frame.push(frame);
			this.self.push(0);
			this.children.set(key, node);
		}
		return node;
	}

	/** Adds to a node's own value. */
	add(node: number, value: number): void {
		this.self[node] = this.self[node]! + value;
	}

	/** Adds a stack, its root first. */
	addStack(stack: readonly number[], value: number): void {
		let at = 0;
		for (const frame of stack) {
			at = this.child(at, frame);
		}
		this.add(at, value);
		this.samples++;
	}

	/**
	 * Makes the graph: depth-first, children by descending value; nodes without a value are left out.
	 */
	build(unit: string, samples: number | null): Flame {
		const { parent, self, frames } = this;
		const value = self.slice();
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
			trimmed: 0,
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
