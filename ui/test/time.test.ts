// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { timeTicks, valueTicks } from "../src/model/axis.ts";
import { parseDuration, parseInstant } from "../src/model/instant.ts";
import {
	apiEnd,
	chartSpan,
	formatLength,
	formatSpan,
	graphEvery,
	isLive,
	rangeName,
	rangeProblem,
	refreshEvery,
	stepFor,
	toApiTime,
	toLocalText,
	usedMs,
} from "../src/model/time.ts";

const NOW = Date.parse("2026-03-05T10:00:00Z");

test("durations", () => {
	assert.equal(parseDuration("15m"), 900_000);
	assert.equal(parseDuration("1h30m"), 5_400_000);
	assert.equal(parseDuration("7d"), 7 * 86_400_000);
	assert.ok(Number.isNaN(parseDuration("15")));
	assert.ok(Number.isNaN(parseDuration("m15")));
	assert.ok(Number.isNaN(parseDuration("")));
});

test("instants as the API takes them, and as people write them", () => {
	assert.equal(parseInstant("now", NOW), NOW);
	assert.equal(parseInstant("now-15m", NOW), NOW - 900_000);
	assert.equal(parseInstant("1772704800", NOW), NOW);
	assert.equal(parseInstant("2026-03-05T10:00:00Z", NOW), NOW);
	const text = toLocalText(NOW);
	assert.equal(parseInstant(text, 0), NOW, "local text goes there and back");
	assert.equal(parseInstant(text.slice(0, 16), 0), NOW);
	assert.ok(Number.isNaN(parseInstant("yesterday-ish", NOW)));
	assert.ok(Number.isNaN(parseInstant("now-x", NOW)));
	assert.equal(toApiTime(NOW), "2026-03-05T10:00:00Z");
});

test("ranges have names and problems", () => {
	assert.equal(rangeName({ from: "now-15m", to: "now" }, NOW), "Last 15 minutes");
	assert.equal(rangeName({ from: "now-90m", to: "now" }, NOW), "Last 90m");
	assert.ok(isLive({ from: "now-1h", to: "now" }));
	assert.ok(!isLive({ from: "now-1h", to: "now-5m" }));
	assert.equal(rangeProblem({ from: "now-1h", to: "now" }, NOW), "");
	assert.match(rangeProblem({ from: "now", to: "now-1h" }, NOW), /ends before/);
	assert.match(rangeProblem({ from: "soon", to: "now" }, NOW), /not a time: "soon"/);
});

test("spans show the day only where it is another one", () => {
	const same = formatSpan({ fromMs: NOW, toMs: NOW + 60_000 }, NOW);
	assert.match(same, /^\d\d:\d\d:\d\d – \d\d:\d\d:\d\d$/);
	const old = formatSpan({ fromMs: NOW - 10 * 86_400_000, toMs: NOW }, NOW);
	assert.match(old, /^2026-02-\d\d \d\d:\d\d:\d\d – \d\d:\d\d:\d\d$/);
	assert.equal(formatLength(45_000), "45 s");
	assert.equal(formatLength(12 * 60_000), "12 min");
	assert.equal(formatLength(3.5 * 3_600_000), "3.5 h");
});

test("steps are multiples of ten seconds, about as many as were asked for", () => {
	for (const span of [300e3, 900e3, 3600e3, 21600e3, 86400e3, 7 * 86400e3, 90 * 86400e3]) {
		const step = stepFor(span, 240);
		assert.equal(step % 10_000, 0);
		assert.ok(span / step <= 240);
		assert.ok(step === 10_000 || span / step >= 60, `${span}: ${step}`);
	}
	assert.equal(refreshEvery(900e3), 5000);
	assert.equal(refreshEvery(7 * 86400e3), 60_000);
});

test("axes have round values and round times", () => {
	assert.deepEqual(valueTicks(4.1, 4), [0, 2, 4]);
	assert.deepEqual(valueTicks(1, 5), [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
	assert.deepEqual(valueTicks(0, 4), [0]);
	assert.deepEqual(valueTicks(80 * 2 ** 20, 4, true), [0, 2 ** 25, 2 ** 26], "32 and 64 MiB");
	const { stepMs, atMs } = timeTicks(NOW + 5000, NOW + 905_000, 10);
	assert.equal(stepMs, 120_000);
	assert.ok(atMs.length >= 7 && atMs.every((ms) => ms % 60_000 === 0));
	assert.ok(timeTicks(0, 400 * 86_400_000, 8).atMs.length <= 9);
});

test("the chart of a live range has whole steps, and begins where samples begin", () => {
	const span = { fromMs: NOW - 900_000, toMs: NOW };
	assert.deepEqual(chartSpan(span, 10_000, true, 0), {
		fromMs: NOW - 900_000,
		toMs: NOW - 10_000,
	});
	const young = chartSpan(span, 10_000, true, NOW - 200_500);
	assert.deepEqual(young, { fromMs: NOW - 210_000, toMs: NOW - 10_000 });
	const newborn = chartSpan(span, 10_000, true, NOW - 3000);
	assert.deepEqual(newborn, { fromMs: NOW - 110_000, toMs: NOW + 10_000 }, "a step begins");
	const none = chartSpan(span, 10_000, true, Number.POSITIVE_INFINITY);
	assert.deepEqual(none, { fromMs: NOW - 130_000, toMs: NOW - 10_000 });
	assert.equal(chartSpan(span, 10_000, false, NOW), span);
});

test("ends of ranges as Grafana and Parca write them", () => {
	const at = (text: string, end = false) => toLocalText(parseInstant(text, NOW, end));
	assert.equal(parseInstant("1772704800000", 0), NOW, "milliseconds");
	assert.equal(parseInstant("1772704800000000", 0), NOW, "microseconds");
	assert.equal(parseInstant("1772704800000000000", 0), NOW, "nanoseconds");
	assert.equal(at("now/d"), "2026-03-05 00:00:00");
	assert.equal(at("now-7d/d"), "2026-02-26 00:00:00");
	assert.equal(at("now-1M/M"), "2026-02-01 00:00:00");
	assert.equal(at("now/w"), "2026-03-02 00:00:00", "weeks begin on Monday");
	assert.equal(at("now-1y/y", true), "2026-01-01 00:00:00", "an end is rounded up");
	assert.equal(parseInstant("now/d", NOW, true), NOW, "but not into the future");
	assert.equal(parseInstant("now-1w", NOW), NOW - 7 * 86_400_000);
	assert.equal(parseInstant("now-1d+1h", NOW), NOW - 23 * 3_600_000);
	assert.equal(parseInstant("now-100y", NOW), 0, "before 1970 there is nothing");
	assert.ok(isLive({ from: "now/d", to: "now/d" }));
	const wrong = ["abc", "yesterday", "2026-13-99", "now-", "now/x", "nowhere", "9".repeat(40)];
	for (const text of [...wrong, "now-99999999999999y", "abc 1", "2026-02-30T99:00:00Z", ""]) {
		assert.ok(Number.isNaN(parseInstant(text, NOW)), text);
		assert.match(rangeProblem({ from: text, to: "now" }, NOW), /not a time/, text);
		assert.equal(typeof rangeName({ from: text, to: "now" }, NOW), "string");
		assert.equal(apiEnd(text, NOW, false), "");
	}
	assert.equal(apiEnd("now-15m", NOW, false), "now-15m", "the server's clock is better");
	assert.equal(apiEnd("now-1M", NOW, false), toApiTime(parseInstant("now-1M", NOW)));
	assert.equal(apiEnd("now", NOW, true), "now");
});

test("large answers are asked for less often than small ones", () => {
	assert.equal(graphEvery(300e3, 0), 10_000);
	assert.equal(graphEvery(900e3, 0), 15_000);
	assert.equal(graphEvery(7 * 86400e3, 0), 300_000);
	assert.equal(graphEvery(900e3, 12_000), 60_000, "a slow line gets a rest");
	const week = { fromMs: NOW - 7 * 86400e3, toMs: NOW };
	assert.equal(usedMs(week, true, NOW - 1200e3), 1200e3, "only what has samples");
	assert.equal(usedMs(week, true, 0), 7 * 86400e3);
	assert.equal(usedMs(week, false, NOW), 7 * 86400e3);
});
