// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flame } from "../src/model/flame.ts";
import { type Layout, layoutFrames, newLayout, type Window } from "../src/model/layout.ts";
import { grow, sample } from "./make.ts";

function rects(l: Layout): number[][] {
	return Array.from({ length: l.count }, (_, i) => [
		l.node[i]!,
		l.depth[i]!,
		Math.round(l.left[i]!),
		Math.round(l.right[i]!),
	]);
}

function look(f: Flame, change: Partial<Window> = {}): number[][] {
	const l = newLayout(2);
	const all = { x0: 0, x1: f.value[0]!, width: 1000, top: 0, bottom: 100 };
	layoutFrames(f, { ...all, ...change }, l);
	return rects(l);
}

test("every frame of a small graph has its place", () => {
	assert.deepEqual(look(sample()), [
		[0, 0, 0, 1000],
		[1, 1, 0, 700],
		[2, 2, 0, 500],
		[3, 3, 0, 400],
		[4, 2, 500, 650],
		[5, 1, 700, 1000],
		[6, 2, 700, 1000],
	]);
});

test("a window cuts frames at its sides, and leaves out what is beside it", () => {
	const seen = look(sample(), { x0: 50, x1: 65 });
	assert.deepEqual(seen, [
		[0, 0, 0, 1000],
		[1, 1, 0, 1000],
		[4, 2, 0, 1000],
	]);
});

test("rows above and below the window are not drawn", () => {
	const seen = look(sample(), { top: 2, bottom: 2 });
	assert.deepEqual(
		seen.map((r) => r[0]),
		[2, 4, 6],
	);
});

test("narrow frames become one rectangle, and their subtrees cost nothing", () => {
	const many: string[][] = [["big"]];
	const weights = [100_000];
	for (let i = 0; i < 5000; i++) {
		many.push([`small${i}`, "deep", "deeper"]);
		weights.push(20);
	}
	const f = grow(many, weights);
	assert.equal(f.count, 1 + 1 + 5000 * 3);
	const l = newLayout();
	layoutFrames(f, { x0: 0, x1: f.total, width: 1000, top: 0, bottom: 10 }, l);
	assert.deepEqual(rects(l), [
		[0, 0, 0, 1000],
		[1, 1, 0, 500],
		[-1, 1, 500, 1000],
	]);
});

test("what the server left out is drawn as a rest, self time is not", () => {
	const f = sample();
	f.value[0] = 120;
	f.self[0] = 10;
	const seen = look(f, { x1: 120, bottom: 1 });
	assert.deepEqual(seen.at(-1), [5, 1, 583, 833]);
	assert.deepEqual(seen[1], [-1, 1, 833, 917], "20 of 120, 10 of them are self");
});

test("an empty window and an empty graph are no trouble", () => {
	assert.deepEqual(look(sample(), { x1: 0 }), []);
	assert.deepEqual(look(sample(), { width: 0 }), []);
	assert.deepEqual(look(grow([]), { x1: 0 }), []);
});
