// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flame } from "../src/model/flame.ts";
import { calleesOf, callersOf, outermost } from "../src/model/merge.ts";
import { chain, grow } from "./make.ts";

function lines(f: Flame): string[] {
	return Array.from(
		{ length: f.count },
		(_, i) => `${" ".repeat(f.depth[i]!)}${f.strings[f.name[i]!]} ${f.self[i]}/${f.value[i]}`,
	);
}

const STACKS = [
	["main", "a", "malloc", "brk"],
	["main", "b", "malloc"],
	["main", "b"],
];

test("callees of a function, from wherever it is called", () => {
	const f = grow(STACKS, [4, 3, 2]);
	assert.deepEqual(lines(calleesOf(f, "malloc")!), ["malloc 3/7", " brk 4/4"]);
});

test("callers of a function, each with what it is behind", () => {
	const f = grow(STACKS, [4, 3, 2]);
	assert.deepEqual(lines(callersOf(f, "malloc")!), [
		"malloc 0/7",
		" a 0/4",
		"  main 4/4",
		" b 0/3",
		"  main 3/3",
	]);
});

test("a recursion is counted once, both ways", () => {
	const f = chain(40);
	assert.equal(outermost(f, "f").length, 1);
	assert.equal(calleesOf(f, "f")!.total, 1);
	assert.equal(calleesOf(f, "f")!.count, 40);
	assert.equal(callersOf(f, "f")!.total, 1);
});

test("a function that is not there", () => {
	assert.equal(calleesOf(grow(STACKS), "none"), null);
	assert.equal(callersOf(grow(STACKS), "none"), null);
});
