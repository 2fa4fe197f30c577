// SPDX-License-Identifier: Apache-2.0
// Flame graphs and tables of made samples, in the form of docs/api.md.
import { randomOf, stackOf } from "./data.mjs";

class Node {
	constructor(frame) {
		this.frame = frame;
		this.children = new Map();
		this.self = 0;
		this.total = 0;
	}

	add(stack, value) {
		let node = this;
		node.total += value;
		for (const frame of stack) {
			const key = `${frame.name}\n${frame.binary}\n${frame.inlined}`;
			let child = node.children.get(key);
			if (!child) {
				child = new Node(frame);
				node.children.set(key, child);
			}
			child.total += value;
			node = child;
		}
		node.self += value;
	}
}

const ROOT = { name: "", binary: "", kind: 0, file: "", line: 0, inlined: 0 };

/** Stacks with weights for `[process, value]` pairs; at most `stacks` of them. */
export function makeStacks(parts, stacks, depth, seed) {
	const whole = parts.reduce((sum, [, value]) => sum + value, 0);
	const out = [];
	for (const [process, value] of parts) {
		const random = randomOf(seed + process.labels.comm.length * 131);
		const count = Math.max(1, Math.round((stacks * value) / (whole || 1)));
		const weights = Array.from({ length: count }, () => random() ** 3 + 0.02);
		const sum = weights.reduce((a, b) => a + b, 0);
		for (const weight of weights) {
			const stack = stackOf(process, random, depth);
			out.push([stack, Math.round((value * weight) / sum), process]);
		}
	}
	return out;
}

/** By process: the value of a label that stands above its stacks, the `limit` largest and the rest; null: none does. */
export function groupsOf(stacks, by, limit) {
	if (!by) {
		return null;
	}
	const nameOf = (process) => process.labels[by] || `no ${by}`;
	const sums = new Map();
	for (const [, value, process] of stacks) {
		sums.set(nameOf(process), (sums.get(nameOf(process)) ?? 0) + value);
	}
	const known = new Set([...sums].sort((a, b) => b[1] - a[1]).slice(0, limit).map(([name]) => name));
	return (process) => (known.has(nameOf(process)) ? nameOf(process) : "everything else");
}

/** /api/flamegraph */
export function flameOf(stacks, { invert = false, trim = 0, pending = 0, groups = null } = {}) {
	const root = new Node(ROOT);
	for (const [stack, value, process] of stacks) {
		const turned = invert ? [...stack].reverse() : stack;
		root.add(groups ? [{ ...ROOT, name: groups(process) }, ...turned] : turned, value);
	}
	const strings = [""];
	const ids = new Map([["", 0]]);
	const intern = (s) => {
		if (!ids.has(s)) {
			ids.set(s, strings.length);
			strings.push(s);
		}
		return ids.get(s);
	};
	const names = ["parent", "name", "file", "line", "binary", "kind", "inlined", "self", "total"];
	const nodes = Object.fromEntries(names.map((n) => [n, []]));
	const least = trim * root.total;
	let trimmed = 0;
	const walk = (node, parent) => {
		const id = nodes.parent.length;
		nodes.parent.push(parent);
		nodes.name.push(intern(node.frame.name));
		nodes.file.push(intern(node.frame.file));
		nodes.line.push(node.frame.line);
		nodes.binary.push(intern(node.frame.binary));
		nodes.kind.push(node.frame.kind);
		nodes.inlined.push(node.frame.inlined);
		nodes.self.push(node.self);
		nodes.total.push(node.total);
		for (const child of [...node.children.values()].sort((a, b) => b.total - a.total)) {
			if (child.total < least) {
				trimmed += child.total;
			} else {
				walk(child, id);
			}
		}
	};
	walk(root, 0);
	return {
		unit: "nanoseconds",
		total: root.total,
		trimmed,
		samples: Math.round(root.total / 52_631_578),
		pending,
		strings,
		nodes,
	};
}

const KINDS = ["unknown", "native", "kernel", "cpython", "jvm", "v8js"];

/** /api/top */
export function topOf(stacks, limit) {
	const rows = new Map();
	let total = 0;
	for (const [stack, value] of stacks) {
		total += value;
		const seen = new Set();
		stack.forEach((frame, i) => {
			const key = `${frame.name}\n${frame.binary}`;
			let row = rows.get(key);
			if (!row) {
				const kind = frame.kind === 15 ? "marker" : (KINDS[frame.kind] ?? "native");
				row = { name: frame.name, binary: frame.binary, file: frame.file, kind, self: 0, total: 0 };
				rows.set(key, row);
			}
			row.self += i === stack.length - 1 ? value : 0;
			row.total += seen.has(key) ? 0 : value;
			seen.add(key);
		});
	}
	const sorted = [...rows.values()].sort((a, b) => b.self - a.self || b.total - a.total);
	return { unit: "nanoseconds", total, rows: sorted.slice(0, limit || undefined) };
}
