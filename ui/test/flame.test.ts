// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { findKey, nodeAt, nodeKey, pathTo, relocate, relocateNear } from "../src/model/flame.ts";
import { nextFocus } from "../src/model/focus.ts";
import { chain, grow, nodeNamed, sample } from "./make.ts";

test("depth, ends and positions follow from the order", () => {
	const f = sample();
	assert.deepEqual([...f.depth], [0, 1, 2, 3, 2, 1, 2]);
	assert.deepEqual([...f.end], [7, 5, 4, 4, 5, 7, 7]);
	assert.deepEqual([...f.start], [0, 0, 0, 0, 50, 70, 70]);
	assert.equal(f.deepest, 3);
	assert.equal(f.inner[1], 65);
});

test("a node is found by value and depth, and not where there is none", () => {
	const f = sample();
	assert.equal(nodeAt(f, 10, 0), 0);
	assert.equal(nodeAt(f, 10, 3), 3);
	assert.equal(nodeAt(f, 49.9, 2), 2);
	assert.equal(nodeAt(f, 50, 2), 4);
	assert.equal(nodeAt(f, 67, 2), -1, "self time has nothing below it");
	assert.equal(nodeAt(f, 100, 0), -1);
	assert.equal(nodeAt(f, -1, 0), -1);
});

test("a key names a path, also in another graph that has more in it", () => {
	const f = sample();
	const key = nodeKey(f, 3);
	assert.equal(findKey(f, key), 3);
	const more = grow([
		["zzz", "y"],
		["main", "a"],
		["main", "a", "b"],
		["main", "a", "b"],
	]);
	const found = findKey(more, nodeKey(more, nodeNamed(more, "b")));
	assert.equal(more.strings[more.name[found]!], "b");
	assert.equal(findKey(more, key), findKey(more, key));
	assert.equal(findKey(f, "1-2"), -1);
	assert.equal(findKey(f, "nonsense"), -1);
	assert.equal(findKey(f, ""), 0);
	assert.equal(nodeKey(f, 0), "");
});

test("keys of all nodes differ, also in a recursion", () => {
	const f = chain(500);
	const keys = new Set(Array.from({ length: f.count }, (_, i) => nodeKey(f, i)));
	assert.equal(keys.size, f.count);
	assert.equal(pathTo(f, 500).length, 501);
});

test("arrow keys lead to callees, callers and neighbours", () => {
	const f = sample();
	assert.equal(nextFocus(f, 0, "ArrowDown", false), 0, "the first key shows where it is");
	assert.equal(nextFocus(f, 0, "ArrowDown", true), 1);
	assert.equal(nextFocus(f, 1, "ArrowRight", true), 5);
	assert.equal(nextFocus(f, 5, "ArrowRight", true), 5);
	assert.equal(nextFocus(f, 5, "ArrowLeft", true), 1);
	assert.equal(nextFocus(f, 4, "ArrowUp", true), 1);
	assert.equal(nextFocus(f, 3, "ArrowDown", true), 3);
	assert.equal(nextFocus(f, 4, "Home", true), 0);
	assert.equal(nextFocus(f, 4, "x", true), -1);
});

test("a node is found again in a newer graph, or its nearest caller", () => {
	const f = sample();
	const newer = grow([["new", "x"], ["main", "parse"]]);
	const read = nodeNamed(f, "read");
	assert.equal(relocate(f, 0, newer), 0);
	assert.equal(relocate(f, -1, newer), -1);
	assert.equal(relocate(f, nodeNamed(f, "parse"), newer), nodeNamed(newer, "parse"));
	assert.equal(relocate(f, read, newer), -1);
	assert.equal(relocateNear(f, read, newer), nodeNamed(newer, "parse"));
});
