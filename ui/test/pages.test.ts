// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { runtimesOf, servicesOf, sparkline, unnamedOf } from "../src/model/fleet.ts";
import { Metrics } from "../src/model/metrics.ts";
import type { Row } from "../src/model/table.ts";

test("figures of /metrics: sums, parts, and what is no figure", () => {
	const m = new Metrics(
		'# TYPE a counter\na{reason="x \\"y\\""} 2\na{reason="none"} 0\na{reason="z"} 3.5\nb 1e3\nnot a figure\n',
		0,
	);
	assert.equal(m.sum("a"), 5.5);
	assert.equal(m.sum("b"), 1000);
	assert.equal(m.sum("c"), 0);
	assert.deepEqual(m.by("a", "reason"), [{ text: "z", value: 3.5 }, { text: 'x "y"', value: 2 }]);
	assert.ok(m.has("b") && !m.has("not"));
});

test("services: what was before the range is apart from it, the rest comes last", () => {
	const series = [
		{ labels: { comm: "a" }, points: [[0, 4], [10, 1], [20, 2]] as [number, number][] },
		{ other: true, points: [[10, 90]] as [number, number][] },
		{ labels: { comm: "b" }, points: [[20, 5]] as [number, number][] },
		{ labels: { comm: "c" }, points: [] },
	];
	const services = servicesOf(series, "comm", 10, 30, 10);
	assert.deepEqual(
		services.map((s) => [s.value, s.other, s.before, s.sum, s.points]),
		[["b", false, 0, 5, [0, 5]], ["a", false, 4, 3, [1, 2]], ["", true, 0, 90, [90, 0]]],
	);
	assert.equal(sparkline([0, 2]), "0.0,23.0 100.0,1.0");
	assert.equal(sparkline([0]), "0.0,23.0");
	assert.equal(sparkline([0, 0, 4, 2], 2), "66.7,1.0 100.0,12.0");
});

const row = (name: string, binary: string, kind: string, self: number): Row => ({
	name, binary, file: "", kind, self, total: self,
});

test("code without names, by what it costs and why", () => {
	const rows = [
		row("perf+0x10", "perf", "native", 5),
		row("main", "perf", "native", 5),
		row("", "", "jit", 8),
		row("0xffffffff81000000", "[kernel]", "kernel", 1),
		row("[truncated]", "", "marker", 50),
		row("named", "libc.so.6", "native", 9),
	];
	assert.deepEqual(
		unnamedOf(rows).map((one) => [one.binary, one.cause, one.self, one.all, one.functions]),
		[["", "made", 8, 8, 1], ["perf", "file", 5, 10, 1], ["[kernel]", "kernel", 1, 1, 1]],
	);
	assert.deepEqual(runtimesOf(rows)[0], { kind: "marker", self: 50 });
});
