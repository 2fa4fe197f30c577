// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { compilePattern } from "../src/model/pattern.ts";

test("ordinary expressions are themselves", () => {
	for (const [source, name, hit] of [
		["^v8::.*Heap", "v8::internal::Heap", true],
		["(read|write)v?$", "preadv", true],
		["std::(vec|map)", "std::map<int>", true],
		["[(*+]x", "a(x", true],
		["a\\(b\\)*", "A(B))", true],
		["^x+$", "xxy", false],
	] as const) {
		const { test: matches, error } = compilePattern(source);
		assert.equal(error, "", source);
		assert.equal(matches!(name), hit, source);
		assert.equal(matches!(name), hit, "the second time");
	}
	assert.equal(compilePattern("(").error, "not a regular expression");
});

test("what could take forever is refused", () => {
	for (const source of ["(a+)+$", "(a|aa)+$", "((a*)b?)*", "(.*){9}x", "(?:x+y?){2,}", ".*.*.*.*x"]) {
		const { test: matches, error } = compilePattern(source);
		assert.equal(matches, null, source);
		assert.match(error, /forever/, source);
	}
});

test("the more repetitions, the less of a name is looked at; time is counted over all names", () => {
	const name = (length: number) => `${"a".repeat(length)}x`;
	assert.ok(compilePattern("x$").test!(name(3000)));
	assert.ok(compilePattern("a.*x$").test!(name(3000)));
	assert.ok(compilePattern("a.*a.*x$").test!(name(700)));
	assert.ok(!compilePattern("a.*a.*x$").test!(name(900)));
	assert.ok(!compilePattern("a.*a.*a.*x$").test!(name(300)));
	let clock = 0;
	const slow = compilePattern("a", () => (clock += 400)).test!;
	assert.deepEqual(["a1", "a2", "a3", "a4", "a5", "a6"].map(slow), [true, true, true, true, false, false]);
});
