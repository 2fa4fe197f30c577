// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildFlame, type Flame, nodeName } from "../src/model/flame.ts";
import { filterStrips } from "../src/model/strip_filter.ts";
import { callAt, layStrips, programsOf, stretchOf } from "../src/model/strips.ts";

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
	assert.equal(s.rows[0]!.merged, true);
	for (const [k, i] of [1, 2, 3, 4].entries()) {
		assert.equal(s.start[i], 20_000 + k * 900);
	}
	const busy = chart([1, 2].map((k) => [0, `f${k}`, 900, 20_100]));
	const t = layStrips(busy.flame, busy.time, 0, "comm");
	assert.ok(t.start[2]! + t.length[2]! <= 21_100.001, "both within a second");
	assert.equal(t.rows[0]!.merged, false);
});

test("filters and groups hold as in a graph; where stacks are dropped nothing ran", () => {
	const { flame, time } = chart([
		[0, "main", 40, 0],
		[1, "f", 20, 0],
		[2, "x", 10, 0],
		[1, "g", 10, 30],
		[0, "z", 10, 500],
	]);
	const whole = layStrips(flame, time, 0, "");
	/** "level name from-to" of each call. */
	const calls = (op: "only" | "drop" | "hide", text: string) => {
		const s = filterStrips(whole, [{ op, field: "name", text }], "function");
		return [...s.order].map((i) => `${s.level[i]} ${nodeName(s.flame, i)} ${Math.round(s.start[i]!)}-${Math.round(s.start[i]! + s.length[i]!)}`);
	};
	assert.deepEqual(calls("only", '"f"'), ["0 main 0-20", "1 f 0-20", "2 x 0-10"]);
	assert.deepEqual(calls("only", '"g"'), ["0 main 30-40", "1 g 30-40"]);
	assert.deepEqual(calls("drop", '"x"'), ["0 main 10-40", "1 f 10-20", "1 g 30-40", "0 z 500-510"]);
	assert.deepEqual(calls("drop", '"f"'), ["0 main 20-40", "1 g 30-40", "0 z 500-510"]);
	assert.deepEqual(calls("hide", '"f"'), ["0 main 0-40", "1 x 0-10", "1 g 30-40", "0 z 500-510"]);
	assert.deepEqual(calls("hide", '"main"'), ["0 f 0-20", "1 x 0-10", "0 g 30-40", "0 z 500-510"]);
	assert.deepEqual(calls("only", '"nobody"'), []);
	assert.equal(filterStrips(whole, [], "function"), whole);
	const x = filterStrips(whole, [{ op: "drop", field: "name", text: '"x"' }], "function");
	assert.deepEqual([x.flame.total, x.rows[0]!.total, x.flame.self[1], x.rows[0]!.depth].map((v) => Math.round(v!)), [40 * MS, 40 * MS, 10 * MS, 2]);
	const runtime = filterStrips(whole, [], "runtime");
	assert.deepEqual([runtime.flame.count, Math.round(runtime.length[1]!), runtime.rows[0]!.depth], [3, 40, 1]);
});

test("the stretch that is asked for has about as many samples as can be read", () => {
	const span = { fromMs: 0, toMs: 900_000 };
	assert.deepEqual(stretchOf(span, 90_000, 10_000), { fromMs: 800_000, toMs: 900_000 });
	assert.deepEqual(stretchOf(span, 50, 10_000), span);
	assert.deepEqual(stretchOf(span, null, 10_000), { fromMs: 840_000, toMs: 900_000 });
});

test("a thread's name has its program beside it; where several share the name, the costliest", () => {
	const one = (thread_name: string, comm: string, value: number, other = false) => ({ labels: { thread_name, comm }, other, points: [[0, value]] as [number, number][] });
	const series = [one("worker", "nginx", 5), one("worker", "python3", 9), one("main", "java", 1), one("", "gone", 3), one("rest", "x", 7, true)];
	assert.deepEqual([...programsOf(series, "thread_name", "comm")], [
		["worker", "python3 +1"],
		["main", "java"],
	]);
});
