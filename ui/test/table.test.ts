// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { compileSearch } from "../src/model/search.ts";
import { arrangeRows, columnsOf, nextSort, type Row, tableOf, usualValue, visibleRows } from "../src/model/table.ts";
import { formatIn } from "../src/model/units.ts";
import { grow, sample } from "./make.ts";

const brief = (rows: Row[]) => rows.map((r) => [r.name, r.self, r.total]);

test("self and total of each function, a recursion counted once", () => {
	const f = grow([["a", "b", "a"], ["a", "b"], ["b"]], [5, 3, 2]);
	assert.deepEqual(brief(tableOf(f, 0)), [
		["b", 5, 10],
		["a", 5, 8],
	]);
});

test("a part of the graph has its own table", () => {
	const f = sample();
	assert.deepEqual(brief(tableOf(f, 2)), [
		["read", 40, 40],
		["parse", 10, 50],
	]);
	const all = tableOf(f, 0);
	assert.equal(
		all.reduce((sum, row) => sum + row.self, 0),
		f.total,
	);
});

test("order and filter", () => {
	const rows = tableOf(sample(), 0);
	const names = (key: "self" | "total" | "name", descending: boolean) =>
		arrangeRows(rows, null, { key, descending }).map((r) => r.name);
	assert.equal(names("total", true)[0], "main");
	assert.deepEqual(names("name", false), ["idle", "main", "parse", "read", "wait", "write"]);
	assert.equal(names("self", true)[0], "read");
	const { matcher } = compileSearch("r");
	const found = arrangeRows(rows, matcher, { key: "self", descending: true });
	assert.deepEqual(
		found.map((r) => r.name),
		["read", "write", "parse"],
	);
	assert.equal(rows.length, 6, "the rows are left alone");
});

test("a heading turns the order around, or begins at its useful end", () => {
	assert.deepEqual(nextSort({ key: "self", descending: true }, "self"), {
		key: "self",
		descending: false,
	});
	assert.deepEqual(nextSort({ key: "self", descending: true }, "name"), {
		key: "name",
		descending: false,
	});
	assert.deepEqual(nextSort({ key: "name", descending: false }, "total"), {
		key: "total",
		descending: true,
	});
});

test("only rows near the view are in the document", () => {
	assert.deepEqual(visibleRows(0, 260, 26, 20_000), [0, 16]);
	const [first, last] = visibleRows(260_000, 260, 26, 20_000);
	assert.ok(first <= 10_000 && last >= 10_010 && last - first < 30);
	assert.deepEqual(visibleRows(1e9, 260, 26, 5), [5, 5]);
});

test("the unit of a column suits its rows", () => {
	const row = (self: number) => ({ name: "", binary: "", file: "", kind: "", self, total: self });
	const h = 3600e9;
	assert.equal(usualValue([]), 0);
	assert.equal(usualValue([row(17 * h), ...Array.from({ length: 20 }, () => row(30e9))]), 30e9);
	assert.equal(usualValue([row(17 * h), ...Array.from({ length: 20 }, () => row(1))]), 17 * h / 1e4);
	assert.equal(usualValue([row(5), row(0)]), 5);
});

test("self and total have the same decimals", () => {
	const row = (self: number, total: number) => ({ name: "", binary: "", file: "", kind: "", self, total });
	const [self, total] = columnsOf([row(368.42e9, 368.42e9), row(0, 2948e9)], "nanoseconds", 2948e9);
	assert.deepEqual([self.top, self.max, total.top, total.max], [2948e9, 368.42e9, 2948e9, 2948e9]);
	const text = [self, total].map((c) => formatIn(368.42e9, c.scale, c.top));
	assert.deepEqual(text, ["368.4", "368.4"]);
	const [wide] = columnsOf([row(2_036_929e6, 2_104_394e6), row(29e6, 30e6), row(4e5, 5e5)], "nanoseconds", 2_104_394e6);
	assert.equal(wide.scale.name, "s", "its figures fit their cells");
});

test("a graph of callers has the same table", () => {
	const stacks = [["main", "a", "b"], ["main", "b", "a"], ["main", "a"], ["main", "a", "a"]];
	const sorted = (rows: Row[]) => rows.sort((x, y) => (x.name < y.name ? -1 : 1));
	const down = sorted(tableOf(grow(stacks), 0));
	const up = sorted(tableOf(grow(stacks.map((s) => [...s].reverse())), 0, true));
	assert.deepEqual(up, down);
});
