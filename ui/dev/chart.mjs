// SPDX-License-Identifier: Apache-2.0
// A flame chart of made samples: each process runs on and off, a stack goes on for some samples.
import { coresAt, randomOf, stackOf } from "./data.mjs";

const PERIOD_MS = 1000 / 19;
const COLUMNS = ["parent", "name", "file", "line", "binary", "kind", "inlined", "self", "total", "time"];

/** /api/flamechart */
export function chartOf({ from, to, processes, unit }, by, depth) {
	const strings = [""];
	const ids = new Map([["", 0]]);
	const intern = (s) => {
		if (!ids.has(s)) {
			ids.set(s, strings.push(s) - 1);
		}
		return ids.get(s);
	};
	const nodes = Object.fromEntries(COLUMNS.map((name) => [name, []]));
	const push = (parent, frame, time) => {
		const row = [parent, intern(frame.name), intern(frame.file), frame.line, intern(frame.binary), frame.kind, frame.inlined, 0, 0, time];
		COLUMNS.forEach((name, k) => nodes[name].push(row[k]));
		return nodes.parent.length - 1;
	};
	const none = { name: "", file: "", binary: "", line: 0, kind: 0, inlined: 0 };
	push(0, none, 0);
	const groups = new Map();
	for (const one of processes) {
		const value = one.labels[by] ?? "";
		groups.set(value, [...(groups.get(value) ?? []), one]);
	}
	for (const [value, members] of groups) {
		const top = by && value ? push(0, { ...none, name: value }, 0) : 0;
		for (const one of members) {
			const random = randomOf(one.labels.comm.length * 31 + Math.floor(from / 60_000));
			let path = [];
			let stack = [];
			for (let t = from; t < to; t += PERIOD_MS) {
				if (random() > Math.min(0.95, coresAt(one, t))) {
					path = [];
					continue;
				}
				stack = random() < 0.6 && stack.length > 0 ? stack : stackOf(one, random, depth);
				const next = [];
				stack.forEach((frame, level) => {
					const have = path[level];
					const same = have && have.frame.name === frame.name && next.length === level && (level === 0 || next[level - 1] === path[level - 1]);
					const parent = level > 0 ? next[level - 1].node : top;
					const here = same ? have : { frame, node: push(parent, frame, Math.round((t - from) * 1000)) };
					next.push(here);
					nodes.total[here.node] += Math.round(PERIOD_MS * 1e6);
				});
				path = next;
				nodes.self[path.at(-1).node] += Math.round(PERIOD_MS * 1e6);
			}
		}
	}
	return order(nodes, { unit, trimmed: 0, samples: null, pending: 0, strings, begin: Math.floor(from) });
}

/** Depth first, and with the sums of those that have none. */
function order(nodes, answer) {
	const below = nodes.parent.map(() => []);
	for (let i = 1; i < nodes.parent.length; i++) {
		below[nodes.parent[i]].push(i);
	}
	const out = Object.fromEntries(COLUMNS.map((name) => [name, []]));
	const walk = (i, parent) => {
		const at = out.parent.push(parent) - 1;
		for (const name of COLUMNS.slice(1)) {
			out[name].push(nodes[name][i]);
		}
		for (const child of below[i]) {
			const made = walk(child, at);
			out.total[at] = nodes.total[i] > 0 ? out.total[at] : out.total[at] + out.total[made];
		}
		return at;
	};
	walk(0, 0);
	return { ...answer, total: out.total[0], nodes: out };
}
