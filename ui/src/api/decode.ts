// SPDX-License-Identifier: Apache-2.0
/** Checks answers and makes columns of them; a malformed one is an error with a message. */
import { buildFlame, type Flame } from "../model/flame.ts";
import { kindOfName } from "../model/kinds.ts";
import type { FlameAnswer, TopAnswer } from "./types.ts";

/** The most nodes of a graph. */
export const NODES_MAX = 4_194_304;

function fail(what: string): never {
	throw new Error(`the server's flame graph is broken: ${what}`);
}

function column(answer: FlameAnswer, name: keyof FlameAnswer["nodes"], count: number): number[] {
	const values = answer.nodes?.[name];
	if (!Array.isArray(values) || values.length !== count) {
		fail(`column ${name} does not have ${count} entries`);
	}
	return values;
}

/** Checks order and indexes, and derives the rest. */
export function decodeFlame(answer: FlameAnswer): Flame {
	const count = answer.nodes?.name?.length ?? 0;
	if (count < 1 || count > NODES_MAX) {
		fail(`${count} nodes`);
	}
	if (!Array.isArray(answer.strings)) {
		fail("no strings");
	}
	const parent = parentsOf(answer, count);
	const strings = answer.strings;
	const indexes = (name: "name" | "file" | "binary") => {
		const ids = Int32Array.from(column(answer, name, count));
		for (const id of ids) {
			if (id < 0 || id >= strings.length) {
				fail(`${name} ${id} of ${strings.length} strings`);
			}
		}
		return ids;
	};
	return buildFlame({
		unit: String(answer.unit ?? ""),
		total: answer.total || 0,
		trimmed: answer.trimmed || 0,
		samples: answer.samples ?? null,
		pending: answer.pending || 0,
		strings,
		parent,
		name: indexes("name"),
		file: indexes("file"),
		binary: indexes("binary"),
		line: Int32Array.from(column(answer, "line", count)),
		kind: Uint8Array.from(column(answer, "kind", count)),
		inlined: Uint8Array.from(column(answer, "inlined", count)),
		self: Float64Array.from(column(answer, "self", count)),
		value: Float64Array.from(column(answer, "total", count)),
	});
}

/**
 * The parents. If the answer has depths instead, a node's parent is the latest node one level
 * above.
 */
function parentsOf(answer: FlameAnswer, count: number): Int32Array {
	if (!answer.nodes?.depth) {
		const parent = Int32Array.from(column(answer, "parent", count));
		checkOrder(parent);
		return parent;
	}
	const depth = column(answer, "depth", count);
	const parent = new Int32Array(count);
	/** By depth: the latest node. */
	const latest = [0];
	for (let i = 1; i < count; i++) {
		const d = depth[i]!;
		if (!(d >= 1 && d <= latest.length)) {
			fail(`node ${i} is not in depth-first order`);
		}
		parent[i] = latest[d - 1]!;
		latest.length = d;
		latest.push(i);
	}
	return parent;
}

/** Depth-first order: a node's parent is the node before it or one of that node's ancestors. */
function checkOrder(parent: Int32Array): void {
	for (let i = 1; i < parent.length; i++) {
		const p = parent[i]!;
		let at = i - 1;
		while (at !== p && at > 0) {
			at = parent[at]!;
		}
		if (at !== p || p < 0 || p >= i) {
			fail(`node ${i} is not in depth-first order`);
		}
	}
}

/** Decodes a table; runtimes get the page's names. */
export function decodeTop(answer: TopAnswer): TopAnswer {
	return { ...answer, rows: answer.rows.map((row) => ({ ...row, kind: kindOfName(row.kind) })) };
}
