// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffRows } from "../src/model/compare.ts";
import { diffFlames, type Side } from "../src/model/diff.ts";
import type { Flame } from "../src/model/flame.ts";
import { baseSpan, seenSpan } from "../src/model/sides.ts";
import { DEFAULTS } from "../src/model/url.ts";
import { formatChange, GONE, NEW, SAME, UNKNOWN, verdictOf } from "../src/model/verdict.ts";
import { grow } from "./make.ts";

const side = (flame: Flame, samples: number | null = null): Side => ({ flame, total: flame.total, samples });

const NOW = grow([["main", "read"], ["main", "fresh"]], [30, 10]);
const BEFORE = grow([["main", "read"], ["main", "old"]], [10, 10]);

test("two graphs become one, with the values of both", () => {
	const d = diffFlames(side(NOW), side(BEFORE), true);
	const f = d.flame;
	const lines = Array.from(
		{ length: f.count },
		(_, i) => `${" ".repeat(f.depth[i]!)}${f.strings[f.name[i]!]} ${d.value[0][i]} ${d.value[1][i]} ${f.value[i]}`,
	);
	assert.deepEqual(lines, [" 40 20 30", " main 40 20 30", "  read 30 10 20", "  fresh 10 0 5", "  old 0 10 5"]);
});

test("shares: each side is the whole", () => {
	const d = diffFlames(side(NOW), side(BEFORE), false);
	assert.equal(d.scale, 2);
	// main is all of both sides, and as wide as this one
	assert.equal(d.flame.value[1], 40);
	assert.equal(verdictOf(d, d.value[0][1]!, d.value[1][1]!), SAME);
	const verdicts = new Map(diffRows(d, 0, "self", false).map((row) => [row.name, row.verdict]));
	assert.equal(verdicts.get("fresh"), NEW);
	assert.equal(verdicts.get("old"), GONE);
	assert.equal(verdicts.get("read"), SAME + 2);
});

test("rows have the largest change first, either way", () => {
	const rows = diffRows(diffFlames(side(NOW), side(BEFORE), false), 0, "self", false);
	assert.deepEqual(
		rows.map((row) => [row.name, row.a, row.b, row.change]),
		[["old", 0, 10, -0.5], ["fresh", 10, 0, 0.25], ["read", 30, 10, 0.25]],
	);
});

test("what chance may do is not called a change", () => {
	const d = (n: number, m: number) => ({ total: [100, 100] as const, samples: [n, m] as const, absolute: false, scale: 1 });
	assert.equal(verdictOf(d(20, 20), 30, 20), UNKNOWN);
	assert.equal(verdictOf(d(20_000, 20_000), 30, 20), SAME + 2);
	assert.equal(verdictOf(d(40, 40), 5, 0), UNKNOWN);
	assert.equal(verdictOf(d(4000, 4000), 5, 0), NEW);
	assert.equal(verdictOf({ ...d(0, 0), samples: [null, null] }, 30, 20), SAME + 2);
	assert.equal(verdictOf(d(20, 20), 30, 30), SAME);
});

test("a change in words", () => {
	assert.equal(formatChange(125, 100), "+25 %");
	assert.equal(formatChange(50, 100), "\u221250 %");
	assert.equal(formatChange(1200, 100), "12 \u00d7");
	assert.equal(formatChange(1, 0), "new");
	assert.equal(formatChange(0, 1), "gone");
	assert.equal(formatChange(0, 0), "");
	assert.equal(formatChange(1000, 1000), "0 %");
});

test("the base lies right before the range, or a day, or where it was dragged", () => {
	const state = { ...DEFAULTS, select: { fromMs: 9e8, toMs: 9.1e8 } };
	assert.deepEqual(baseSpan(state, 0), { fromMs: 8.9e8, toMs: 9e8 });
	assert.deepEqual(baseSpan({ ...state, shift: "1d" }, 0), { fromMs: 8.136e8, toMs: 8.236e8 });
	const baseRange = { from: "1970-01-01T00:00:01Z", to: "1970-01-01T00:00:02Z" };
	assert.deepEqual(baseSpan({ ...state, baseRange }, 0), { fromMs: 1000, toMs: 2000 });
});

test("the chart of a comparison has the base, too, where that is near", () => {
	const state = { ...DEFAULTS, range: { from: "1970-01-12T00:00:00Z", to: "1970-01-12T01:00:00Z" }, page: "compare" } as const;
	const hour = (from: number, to: number) => ({ fromMs: (264 + from) * 3.6e6, toMs: (264 + to) * 3.6e6 });
	assert.deepEqual(seenSpan(state, 0), hour(-1, 1));
	assert.deepEqual(seenSpan({ ...state, shift: "1d" }, 0), hour(0, 1));
	assert.deepEqual(seenSpan({ ...state, baseRange: { from: "then", to: "now" } }, 0), hour(0, 1));
	assert.deepEqual(seenSpan({ ...state, page: "explore" }, 0), hour(0, 1));
});
