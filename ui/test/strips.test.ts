// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildFlame, type Flame } from "../src/model/flame.ts";
import { callAt, keptBy, layStrips, stretchOf } from "../src/model/strips.ts";

const MS = 1e6;
/** Nodes: parent, name, value in milliseconds, begin in milliseconds; names below "*" are values of a label. */
function chart(nodes: readonly [number, string, number, number][]): { flame: Flame; time: number[] } {
	const strings = ["", ...new Set(nodes.map(([, name]) => name.replace("*", "")))];
	const all: typeof nodes = [[0, "", 0, 0], ...nodes];
	const ints = (of: (n: (typeof all)[number]) => number) => Int32Array.from(all, of);
	const value = Float64Array.from(all, (n) => n[2] * MS);
	const self = Float64Array.from(value);
	for (let i = all.length - 1; i > 0; i--) {
		const p = all[i]![0];
		if (all[p]![2] === 0) {
			value[p] = value[p]! + value[i]!;
		} else {
			self[p] = self[p]! - value[i]!;
		}
	}
	const flame = buildFlame({
		unit: "nanoseconds",
		total: value[0]!,
		trimmed: 0,
		samples: null,
		pending: 0,
		strings,
		parent: ints((n) => n[0]),
		name: ints((n) => strings.indexOf(n[1].replace("*", ""))),
		file: ints(() => 0),
		line: ints(() => 0),
		binary: ints((n) => (n[1].endsWith("*") || n[1] === "" ? 0 : strings.indexOf(n[1]))),
		kind: Uint8Array.from(all, () => 0),
		inlined: Uint8Array.from(all, () => 0),
		self,
		value,
	});
	return { flame, time: all.map((n) => n[3] * 1000) };
}

test("a row for each value, the largest first; calls at their time, inside their callers", () => {
	const { flame, time } = chart([
		[0, "7*", 0, 0],
		[1, "main", 40, 100],
		[2, "f", 20, 100],
		[2, "g", 10, 125],
		[1, "main", 10, 900],
		[0, "8*", 0, 0],
		[6, "main", 90, 300],
		[0, "alone", 5, 50],
	]);
	const s = layStrips(flame, time, 1_000_000, "thread_id");
	assert.deepEqual(s.rows.map((r) => [r.value, r.total / MS, r.depth]), [["8", 90, 1], ["7", 50, 2], ["", 5, 1]]);
	const at = (i: number) => [s.start[i]! - 1_000_000, Math.round(s.length[i]!)];
	assert.deepEqual([2, 3, 4, 5].map(at), [[100, 40], [100, 20], [125, 10], [900, 10]]);
	assert.equal(callAt(s, s.rows[1]!, 1_000_127, 1), 4);
	assert.equal(callAt(s, s.rows[1]!, 1_000_127, 0), 2);
	assert.equal(callAt(s, s.rows[1]!, 1_000_500, 0), -1);
	assert.equal(s.rows[1]!.busiest, "main");
});

test("calls of threads that share a row, and merged samples, fit into their time", () => {
	const four = chart([1, 2, 3, 4].map((k) => [0, `f${k}`, 900, 20_000]));
	const s = layStrips(four.flame, four.time, 0, "comm");
	for (const [k, i] of [1, 2, 3, 4].entries()) {
		assert.equal(s.start[i], 20_000 + k * 900);
	}
	const busy = chart([1, 2].map((k) => [0, `f${k}`, 900, 20_100]));
	const t = layStrips(busy.flame, busy.time, 0, "comm");
	assert.ok(t.start[2]! + t.length[2]! <= 21_100.001, "both within a second");
});

test("filters leave places empty", () => {
	const { flame } = chart([
		[0, "main", 40, 0],
		[1, "f", 20, 0],
		[2, "x", 10, 0],
		[1, "g", 10, 30],
	]);
	const kept = (op: "only" | "drop" | "hide") => [...keptBy(flame, [{ op, field: "name", text: '"f"' }])!].slice(1);
	assert.deepEqual(kept("only"), [1, 1, 1, 0]);
	assert.deepEqual(kept("drop"), [1, 0, 0, 1]);
	assert.deepEqual(kept("hide"), [1, 0, 1, 1]);
	assert.equal(keptBy(flame, []), null);
});

test("the stretch that is asked for has about as many samples as can be read", () => {
	const span = { fromMs: 0, toMs: 900_000 };
	assert.deepEqual(stretchOf(span, 90_000, 10_000), { fromMs: 800_000, toMs: 900_000 });
	assert.deepEqual(stretchOf(span, 50, 10_000), span);
	assert.deepEqual(stretchOf(span, null, 10_000), { fromMs: 840_000, toMs: 900_000 });
});
