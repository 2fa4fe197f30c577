// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { compileSearch, searchFlame } from "../src/model/search.ts";
import { chain, grow, sample } from "./make.ts";

const matcher = (text: string) => compileSearch(text).matcher!;

test("plain text, an exact name, an expression", () => {
	assert.equal(compileSearch("  ").matcher, null);
	assert.ok(matcher("MALL")("__libc_malloc"));
	assert.ok(matcher('"read"')("read"));
	assert.ok(!matcher('"read"')("pread"));
	assert.ok(matcher("/^v8::.*Heap/")("v8::internal::Heap"));
	assert.ok(!matcher("a.b")("axb"), "a dot is a dot");
	for (const text of ["a\\b", "[k]", "f(int, {})", "a|b", "a*b+?", "^x$", "a/b"]) {
		assert.ok(matcher(text)(`x ${text.toUpperCase()} y`), text);
		assert.ok(!matcher(text)("a b k f int x"), text);
	}
	const broken = compileSearch("/(/");
	assert.equal(broken.matcher, null);
	assert.equal(broken.error, "not a regular expression");
});

test("the matched value counts a stack once", () => {
	const f = grow([["a", "x", "a"], ["a"], ["b", "a"], ["c"]]);
	const found = searchFlame(f, matcher('"a"'), 0);
	assert.equal(found.value, 3);
	assert.equal(found.count, 3);
	assert.equal(found.outer.length, 2, "a below a is no place of its own");
	assert.equal(found.places, 2);
	assert.equal(searchFlame(chain(50), matcher("f"), 0).value, 1);
});

test("what no function is called is looked for among binaries and files", () => {
	const f = grow([["main", "read"], ["main", "write"]]);
	f.strings.push("libc.so.6", "fd_unix.go");
	f.binary[2] = f.strings.length - 2;
	f.file[3] = f.strings.length - 1;
	const search = (text: string) => {
		const { matcher: found, field } = compileSearch(text);
		const { value, field: by } = searchFlame(f, found!, 0, field);
		return [value, by];
	};
	assert.deepEqual(search("main"), [2, "name"]);
	assert.deepEqual(search("libc.so"), [1, "binary"]);
	assert.deepEqual(search("fd_unix"), [1, "file"]);
	assert.deepEqual(search("binary:/^libc/"), [1, "binary"]);
	assert.deepEqual(search("file:main"), [0, "file"]);
	assert.deepEqual(search("nothing of this"), [0, "name"]);
	assert.equal(compileSearch("file:").matcher, null);
	assert.ok(matcher("std::file:x")("std::file:x"), "no prefix within a name");
});

test("places come by descending value", () => {
	const f = sample();
	const found = searchFlame(f, matcher("/read|write|wait/"), 0);
	assert.deepEqual(
		found.outer.map((i) => f.value[i]),
		[40, 30, 15],
	);
	assert.equal(found.value, 85);
});

test("below a zoom only its part counts; a match above it covers all", () => {
	const f = sample();
	assert.equal(searchFlame(f, matcher("read"), 2).value, 40);
	assert.equal(searchFlame(f, matcher("main"), 2).value, 50);
	assert.equal(searchFlame(f, matcher("wait"), 2).value, 0);
	const [read, main, wait] = ["read", "main", "wait"].map((text) => searchFlame(f, matcher(text), 0));
	assert.deepEqual([read, main, wait].map((found) => found!.valueBelow(2)), [40, 50, 0]);
});
