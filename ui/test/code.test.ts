// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { codeRows, firstRow, hotRows, isShort, type Place } from "../src/model/code.ts";

const PLACES: Place[] = [
	[2, 5, 9],
	[4, 0, 40],
	[5, 30, 30],
];

test("each line of the text is a row, with its values", () => {
	const rows = codeRows("a\n\tb\r\nc\nd\ne\n", PLACES);
	assert.deepEqual(rows.map((r) => r.text), ["a", "\tb", "c", "d", "e"]);
	assert.deepEqual(rows.map((r) => r.self), [0, 5, 0, 0, 30]);
	assert.deepEqual(rows.map((r) => r.total), [0, 9, 0, 40, 30]);
});

test("without a text there are the lines with values; lines behind its end stay", () => {
	assert.deepEqual(codeRows(null, PLACES).map((r) => r.at), [2, 4, 5]);
	assert.deepEqual(codeRows("a\nb", PLACES).map((r) => r.at), [1, 2, 4, 5]);
	assert.deepEqual(codeRows("", []), [{ at: 1, text: "", self: 0, total: 0 }]);
	assert.equal(isShort("a\nb", PLACES), true);
	assert.equal(isShort("a\nb\nc\nd\ne", PLACES), false);
	assert.equal(isShort(null, PLACES), false);
});

test("the hottest lines come by their own value, then by the total", () => {
	const rows = codeRows(null, PLACES);
	assert.deepEqual(hotRows(rows), [2, 0, 1]);
	assert.equal(firstRow(rows, 3), 1, "where the function begins");
	assert.equal(firstRow(rows, 0), 2, "the hottest");
	assert.equal(firstRow([], 7), 0);
});
