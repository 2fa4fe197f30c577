// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { codeRows, firstRow, hotRows, instructionRows, isShort, movedTo, type Place } from "../src/model/code.ts";

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
	assert.deepEqual(codeRows("", []).map((r) => r.text), [""]);
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

test("a source line stands above the first of its instructions", () => {
	const rows = instructionRows(
		[
			["10", "push rbp", 0, 0, "/s/a.c", 2, "f"],
			["11", "mov rax, rbx", 7, 9, "/s/a.c", 2, "f"],
			["14", "call 0x40", 0, 3, "/s/b.h", 9, "g"],
			["19", "ret", 1, 1],
		],
		"/s/a.c",
		"int f()\n\t{ return g(); }\n",
	);
	assert.deepEqual(rows.map((r) => [r.label, r.text, r.self]), [
		["a.c:2", "{ return g(); }", 0],
		["10", "push rbp", 0],
		["11", "mov rax, rbx", 7],
		["b.h:9", "g", 0],
		["14", "call 0x40", 0],
		["19", "ret", 1],
	]);
	assert.deepEqual(hotRows(rows), [2, 5, 4]);
});

test("a function that stands elsewhere in the text is of another version", () => {
	const text = `${"\n".repeat(30)}static int parse_line(const char *p)\n{\n\treturn parse_line(p + 1);\n}\n`;
	assert.equal(movedTo(text, "parse_line", 31), 0);
	assert.equal(movedTo(text, "parse_line", 29), 0, "a type or a decorator above it");
	assert.equal(movedTo(text, "parse_line", 5), 31);
	assert.equal(movedTo(text, "Parser::parse_line(char const*)", 60), 31);
	assert.equal(movedTo(text, "other", 5), 0, "made by a macro");
	assert.equal(movedTo(text, "operator()", 5), 0);
	assert.equal(movedTo("\n".repeat(40) + "x = parse_line(p);\nif (parse_line(p)) {\n", "parse_line", 5), 0, "calls are no definitions");
	assert.equal(movedTo("\n".repeat(40) + "    def handle(self, r):\n", "Server.handle", 3), 41);
	assert.equal(movedTo("\n".repeat(40) + "func (s *Server) handle(r int) {\n", "main.(*Server).handle", 3), 41);
	assert.equal(movedTo(text, "parse_line", 0), 0);
	assert.equal(movedTo(null, "parse_line", 5), 0);
});
