// SPDX-License-Identifier: Apache-2.0
/** Graphs for tests. */
import { decodeFlame } from "../src/api/decode.ts";
import type { FlameAnswer } from "../src/api/types.ts";
import type { Flame } from "../src/model/flame.ts";

interface Node {
	name: string;
	self: number;
	total: number;
	children: Map<string, Node>;
}

const node = (name: string): Node => ({ name, self: 0, total: 0, children: new Map() });

/** The answer for a list of stacks; each weighs 1, or its own weight. */
export function answerOf(stacks: readonly string[][], weights?: readonly number[]): FlameAnswer {
	const root = node("");
	stacks.forEach((stack, i) => {
		const weight = weights?.[i] ?? 1;
		let at = root;
		at.total += weight;
		for (const name of stack) {
			const child = at.children.get(name) ?? node(name);
			at.children.set(name, child);
			child.total += weight;
			at = child;
		}
		at.self += weight;
	});
	const strings = ["", "bin"];
	const nodes: FlameAnswer["nodes"] = {
		parent: [],
		name: [],
		file: [],
		line: [],
		binary: [],
		kind: [],
		inlined: [],
		self: [],
		total: [],
	};
	const walk = (n: Node, parent: number) => {
		const id = nodes.parent.length;
		let name = strings.indexOf(n.name);
		if (name < 0) {
			name = strings.push(n.name) - 1;
		}
		nodes.parent.push(parent);
		nodes.name.push(name);
		nodes.file.push(0);
		nodes.line.push(0);
		nodes.binary.push(id === 0 ? 0 : 1);
		nodes.kind.push(1);
		nodes.inlined.push(0);
		nodes.self.push(n.self);
		nodes.total.push(n.total);
		for (const child of [...n.children.values()].sort((a, b) => b.total - a.total)) {
			walk(child, id);
		}
	};
	walk(root, 0);
	const total = root.total;
	return {
		unit: "nanoseconds",
		total,
		trimmed: 0,
		samples: stacks.length,
		pending: 0,
		strings,
		nodes,
	};
}

/** The graph for a list of stacks. */
export function grow(stacks: readonly string[][], weights?: readonly number[]): Flame {
	return decodeFlame(answerOf(stacks, weights));
}

/** all 100 > main 70 (self 5) > [parse 50 > read 40] [write 15]; idle 30 > wait 30 */
export function sample(): Flame {
	return grow(
		[["main"], ["main", "parse"], ["main", "parse", "read"], ["main", "write"], ["idle", "wait"]],
		[5, 10, 40, 15, 30],
	);
}

/** A recursion of `depth` frames of one name. */
export function chain(depth: number): Flame {
	return grow([Array.from({ length: depth }, () => "f")]);
}

/** The first node with this name. */
export function nodeNamed(f: Flame, name: string): number {
	const id = f.strings.indexOf(name);
	return f.name.indexOf(id);
}
