// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Filter, formatFilter, parseFilter, transform } from "../src/model/filter.ts";
import { Kind, type Flame } from "../src/model/flame.ts";
import { grow } from "./make.ts";

function lines(f: Flame): string[] {
	return Array.from(
		{ length: f.count },
		(_, i) => `${" ".repeat(f.depth[i]!)}${f.strings[f.name[i]!]} ${f.self[i]}/${f.value[i]}`,
	);
}

const f = grow(
	[["main", "a", "malloc", "brk"], ["main", "b", "malloc"], ["main", "b"], ["idle"]],
	[4, 3, 2, 1],
);
const by = (op: Filter["op"], text: string, field: Filter["field"] = "name"): Filter => ({ op, field, text });

test("nothing to do is the same graph", () => {
	assert.equal(transform(f, [], "function"), f);
	assert.equal(transform(f, [by("only", "  ")], "function"), f);
});

test("only stacks through a function", () => {
	assert.deepEqual(lines(transform(f, [by("only", "malloc")], "function")), [
		" 0/7", " main 0/7", "  a 0/4", "   malloc 0/4", "    brk 4/4", "  b 0/3", "   malloc 3/3",
	]);
	assert.equal(transform(f, [by("only", "malloc"), by("only", '"b"')], "function").total, 3);
	assert.equal(transform(f, [by("only", "nothing")], "function").total, 0);
});

test("stacks with a function are dropped, also where an only filter matched before it", () => {
	assert.deepEqual(lines(transform(f, [by("drop", "malloc")], "function")), [
		" 0/3", " main 0/2", "  b 2/2", " idle 1/1",
	]);
	assert.equal(transform(f, [by("only", "main"), by("drop", "brk")], "function").total, 5);
});

test("hidden frames: what they call moves up and becomes one", () => {
	assert.deepEqual(lines(transform(f, [by("hide", "/^[ab]$/")], "function")), [
		" 0/10", " main 2/9", "  malloc 3/7", "   brk 4/4", " idle 1/1",
	]);
});

test("frames of one binary become one bar, and runtimes too", () => {
	assert.deepEqual(lines(transform(f, [], "binary")), [" 0/10", " bin 10/10"]);
	const mixed = grow([["main", "read", "sys"], ["main"]], [3, 1]);
	const kernel = { ...mixed, kind: Uint8Array.from(mixed.kind) };
	kernel.kind[3] = Kind.kernel;
	assert.deepEqual(lines(transform(kernel, [], "runtime")), [" 0/4", " native 1/4", "  kernel 3/3"]);
	assert.equal(transform(kernel, [by("drop", "kernel", "runtime")], "function").total, 1);
});

test("values that are not in any frame stay where they were", () => {
	const cut = { ...f, self: Float64Array.from(f.self), trimmed: 2 };
	cut.self[f.count - 1] = 0;
	assert.equal(transform(cut, [by("hide", '"a"')], "function").total, 10);
});

test("a filter goes to the URL and back", () => {
	const filter = by("hide", "/std::.*:x/", "file");
	assert.deepEqual(parseFilter(formatFilter(filter)), filter);
	assert.equal(parseFilter("eat:name:x"), null);
	assert.equal(parseFilter("only:name:"), null);
});
