// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	assignSlots,
	gridOf,
	meanOf,
	SLOTS,
	snapSpan,
	stackUp,
	totals,
} from "../src/model/series.ts";

const ANSWER = [
	{
		labels: { comm: "a" },
		points: [
			[20_000, 4],
			[40_000, 8],
		] as [number, number][],
	},
	{ other: true, points: [[30_000, 100]] as [number, number][] },
	{ labels: { comm: "b" }, points: [[20_000, 20]] as [number, number][] },
];

test("series come onto one grid, missing steps are zero, the rest is last", () => {
	const grid = gridOf(ANSWER, "comm", 10_000, 20_000, 59_000);
	assert.deepEqual(grid.timesS, [20, 30, 40], "the unfinished step is left out");
	assert.deepEqual(
		grid.lines.map((l) => [l.value, l.other, l.values]),
		[
			["b", false, [20, 0, 0]],
			["a", false, [4, 0, 8]],
			["", true, [0, 100, 0]],
		],
	);
	assert.deepEqual(stackUp(grid.lines), [
		[24, 100, 8],
		[4, 100, 8],
		[0, 100, 0],
	]);
	assert.deepEqual(totals(grid.lines, 3), [24, 100, 8]);
});

test("steps that do not begin at multiples of the step keep their phase", () => {
	const grid = gridOf([{ labels: {}, points: [[23_000, 1]] }], "x", 10_000, 20_000, 60_000);
	assert.deepEqual(grid.timesS, [13, 23, 33, 43]);
	assert.deepEqual(grid.lines[0]?.values, [0, 1, 0, 0]);
	assert.deepEqual(gridOf([], "x", 10_000, 0, 30_000).timesS, [0, 10, 20]);
});

test("a gauge keeps its value until the next point, as long as it comes in time", () => {
	const points: [number, number][] = [
		[10_000, 100],
		[70_000, 200],
		[130_000, 300],
		[430_000, 50],
	];
	const grid = gridOf([{ labels: {}, points }], "x", 10_000, 0, 600_000, false);
	const values = grid.lines[0]!.values;
	assert.equal(values[0], 0);
	assert.deepEqual(values.slice(1, 13), [...new Array(6).fill(100), ...new Array(6).fill(200)]);
	assert.deepEqual(values.slice(13, 20), [...new Array(6).fill(300), 0], "one interval, then it is gone");
	assert.deepEqual(values.slice(43, 50), [...new Array(6).fill(50), 0]);
	assert.equal(meanOf(grid, grid.lines[0]!, { fromMs: 10_000, toMs: 130_000 }), 150);
	assert.equal(grid.lines[0]!.sum, values.reduce((a, b) => a + b));
});

test("the mean of a line, of all steps or of those in a range", () => {
	const grid = gridOf(ANSWER, "comm", 10_000, 20_000, 50_000);
	const a = grid.lines[1]!;
	assert.equal(meanOf(grid, a, null), 4);
	assert.equal(meanOf(grid, a, { fromMs: 40_000, toMs: 50_000 }), 8);
	assert.equal(meanOf(grid, a, { fromMs: 0, toMs: 1 }), 0);
});

test("a dragged stretch becomes whole steps", () => {
	const grid = gridOf(ANSWER, "comm", 10_000, 20_000, 50_000);
	assert.deepEqual(snapSpan(23_000, 31_000, grid), { fromMs: 20_000, toMs: 40_000 });
	assert.deepEqual(snapSpan(30_000, 30_000, grid), { fromMs: 30_000, toMs: 40_000 });
});

test("a value keeps its colour while the order changes", () => {
	const hash = (s: string) => s.charCodeAt(0);
	const first = assignSlots(new Map(), ["a", "b", "m"], hash);
	assert.equal(new Set(first.values()).size, 3);
	const second = assignSlots(first, ["y", "m", "b", "a"], hash);
	for (const name of ["a", "b", "m"]) {
		assert.equal(second.get(name), first.get(name));
	}
	const many = Array.from({ length: 2 * SLOTS }, (_, i) => `v${i}`);
	assert.equal(assignSlots(new Map(), many, hash).size, 2 * SLOTS);
});
