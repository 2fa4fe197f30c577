// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	ofMatchers,
	complete,
	contextAt,
	costliestFirst,
	parseMatchers,
	quote,
	rank,
	requestOf,
	withMatcher,
} from "../src/model/selector.ts";

/** The context at the bar in a text. */
function at(text: string) {
	const cursor = text.indexOf("|");
	const context = contextAt(text.replace("|", ""), cursor);
	return [context.kind, context.prefix, context.label];
}

test("what the cursor stands in", () => {
	assert.deepEqual(at("|"), ["label", "", ""]);
	assert.deepEqual(at("co|"), ["label", "co", ""]);
	assert.deepEqual(at("comm|="), ["label", "comm", ""]);
	assert.deepEqual(at("comm |"), ["op", "", "comm"]);
	assert.deepEqual(at("comm=|"), ["value", "", "comm"]);
	assert.deepEqual(at('comm="py|'), ["value", "py", "comm"]);
	assert.deepEqual(at('comm="py|thon3"'), ["value", "py", "comm"]);
	assert.deepEqual(at('comm="python3"|'), ["next", "", "comm"]);
	assert.deepEqual(at('comm="python3", |'), ["label", "", ""]);
	assert.deepEqual(at('comm="python3", no|'), ["label", "no", ""]);
	assert.deepEqual(at('a="1,2", node=~"w|'), ["value", "w", "node"]);
	assert.deepEqual(at('a="x\\"y|'), ["value", 'x"y', "a"]);
});

test("a choice replaces what is written of it", () => {
	const choose = (marked: string, choice: string) => {
		const cursor = marked.indexOf("|");
		const text = marked.replace("|", "");
		const edit = complete(text, contextAt(text, cursor), choice);
		return `${edit.text.slice(0, edit.cursor)}|${edit.text.slice(edit.cursor)}`;
	};
	assert.equal(choose("co|", "comm"), "comm=|");
	assert.equal(choose('co|="x"', "comm"), 'comm|="x"');
	assert.equal(choose("comm=|", "python3"), 'comm="python3"|');
	assert.equal(choose('comm="py|', "python3"), 'comm="python3"|');
	assert.equal(choose('comm="py|x", a="b"', 'q"t'), 'comm="q\\"t"|, a="b"');
});

test("unfinished and broken texts are read as far as they go", () => {
	assert.equal(parseMatchers("").length, 0);
	assert.equal(parseMatchers(",,,").length, 0);
	assert.equal(parseMatchers('"').length, 1);
	assert.equal(parseMatchers("====").length, 1);
	const [first, second] = parseMatchers('comm="a", node!~"b');
	assert.equal(first?.value?.text, "a");
	assert.equal(second?.op?.text, "!~");
	assert.equal(second?.value?.closed, false);
});

test("reading ends for any text", () => {
	const letters = 'ab"=!~, \\{}';
	let seed = 1;
	for (let i = 0; i < 3000; i++) {
		let text = "";
		for (let k = 0; k < i % 17; k++) {
			seed = (seed * 1103515245 + 12345) % 2147483648;
			text += letters[seed % letters.length];
		}
		for (let cursor = 0; cursor <= text.length; cursor++) {
			const context = contextAt(text, cursor);
			const edit = complete(text, context, "x");
			assert.ok(edit.cursor <= edit.text.length);
		}
	}
});

test("asking for a value by a click", () => {
	assert.equal(withMatcher("", "comm", "a"), 'comm="a"');
	assert.equal(withMatcher('node="n"', "comm", "a"), 'node="n", comm="a"');
	assert.equal(withMatcher('comm="b", node="n"', "comm", "a"), 'comm="a", node="n"');
	assert.equal(withMatcher('comm=~"b|c"', "comm", 'x"y'), 'comm="x\\"y"');
	assert.equal(withMatcher('comm!="b"', "comm", "c", "!="), 'comm!="b", comm!="c"');
	assert.equal(quote("a\\b"), '"a\\\\b"');
});

test("candidates that begin with the text come first", () => {
	assert.deepEqual(rank(["xcomm", "comm", "Command", "node"], "com", 10), [
		"comm",
		"Command",
		"xcomm",
	]);
	assert.equal(rank(["a", "b", "c"], "", 2).length, 2);
});

test("values that cost most come first, those of no series last", () => {
	const of = (value: string) => ({ labels: { comm: value }, points: [] });
	const series = [of("node"), of("gone"), of("gcc"), { other: true, labels: {}, points: [] }];
	const values = ["ar", "bash", "gcc", "node"];
	assert.deepEqual(costliestFirst(values, "comm", series), ["node", "gcc", "ar", "bash"]);
	assert.deepEqual(costliestFirst(values, "comm", []), values);
});

test("columns of the server's sentence are those of what was typed", () => {
	const type = "parca_agent:samples:count:cpu:nanoseconds:delta";
	const said = "selector: expected the \" that ends the value of column 54 at column 58, got the end";
	assert.equal(
		ofMatchers(said, type),
		'selector: expected the " that ends the value of column 6 at column 10, got the end',
	);
	const end = 'selector: expected the " that ends the value of column 6 at column 8, got the end';
	assert.equal(ofMatchers(said.replace("58", "57"), type, 'comm="x'), end, "the brace behind it is not typed");
	assert.equal(ofMatchers("type at column 3", type), "type at column 3");
	const bare = '"python3" is no condition: comm="python3" is a program of this name';
	assert.equal(ofMatchers(said, type, " python3 "), bare);
});

test("a selector of one span or trace, and what is left without it", () => {
	assert.deepEqual(requestOf('span_id="00f067aa0ba902b7"'), { what: "span", id: "00f067aa0ba902b7", rest: "" });
	assert.deepEqual(requestOf('comm="shop", trace_id = "ab", zone!="b"'), { what: "trace", id: "ab", rest: 'comm="shop", zone!="b"' });
	assert.equal(requestOf('trace_id="ab",span_id="cd"')?.what, "span");
	for (const none of ["", 'comm="span_id"', 'span_id!="a"', 'span_id=~"a"', 'span_id=""', 'span_id="a']) {
		assert.equal(requestOf(none), null, none);
	}
});
