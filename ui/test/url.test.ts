// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	DEFAULTS,
	formatUrl,
	joinQuery,
	NO_SNAPSHOT,
	parseUrl,
	type State,
	splitQuery,
} from "../src/model/url.ts";

const TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta";

test("an empty URL is the default, and the default is an empty URL", () => {
	assert.deepEqual(parseUrl(""), DEFAULTS);
	assert.equal(formatUrl(DEFAULTS), "");
});

test("every part of the state goes there and back", () => {
	const state: State = {
		page: "compare",
		type: TYPE,
		matchers: 'comm="a b", node=~"x|y&z"',
		range: { from: "2026-03-05T10:00:00Z", to: "2026-03-05T11:00:00Z" },
		by: "",
		lines: true,
		select: { fromMs: 1_772_704_800_000, toMs: 1_772_704_860_000 },
		zoom: "abc-def",
		search: "/a+b/",
		view: "flame",
		invert: true,
		focus: "operator<<(std::ostream&, char const*)",
		sandwich: true,
		filters: [{ op: "hide", field: "binary", text: "/^libc[.:]/" }, { op: "only", field: "name", text: "a:b" }],
		group: "runtime",
		mark: "f",
		binary: "libc.so.6",
		sort: "-name",
		code: { name: "operator()", binary: "a.out", file: "/src/a b.cc", asm: true },
		shared: "abcdefghijklmnopqrstuv",
	paused: true,
		baseMatchers: "",
		baseRange: { from: "now-2h", to: "now-1h" },
		shift: "1d",
		absolute: true,
		byTotal: true,
		timeBy: "",
	};
	assert.deepEqual(parseUrl(formatUrl(state)), state);
});

test("nonsense in a URL is the default", () => {
	const state = parseUrl("?view=sideways&select=now~then&from=&chart=pie&invert=yes");
	assert.deepEqual(state, DEFAULTS);
	assert.equal(parseUrl("?select=2026-03-05T11:00:00Z~2026-03-05T10:00:00Z").select, null);
});

test("a link to a snapshot that no snapshot can have does not become the live page", () => {
	assert.equal(parseUrl(`?shared=${"a".repeat(28)}`).shared, "a".repeat(28));
	for (const wrong of ["", "a".repeat(25), "A".repeat(22), `${"a".repeat(22)}/..`]) {
		assert.equal(parseUrl(`?shared=${wrong}`).shared, NO_SNAPSHOT);
	}
});

test("a query is a type and matchers, either may be missing", () => {
	assert.deepEqual(splitQuery(`${TYPE}{comm="x"}`), { type: TYPE, matchers: 'comm="x"' });
	assert.deepEqual(splitQuery(TYPE), { type: TYPE, matchers: "" });
	assert.deepEqual(splitQuery('{comm="x{y}"}'), { type: "", matchers: 'comm="x{y}"' });
	assert.deepEqual(splitQuery('comm="x"'), { type: "", matchers: 'comm="x"' });
	assert.equal(joinQuery(TYPE, "  "), TYPE);
	assert.equal(joinQuery(TYPE, 'a="b"'), `${TYPE}{a="b"}`);
});
