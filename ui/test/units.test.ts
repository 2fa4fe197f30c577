// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	formatExact,
	formatIn,
	formatRate,
	formatShare,
	formatTicks,
	formatValue,
	rateOf,
	scaleFor,
} from "../src/model/units.ts";

test("values with their units", () => {
	assert.equal(formatValue(0, "nanoseconds"), "0 s");
	assert.equal(formatValue(1_500_000, "nanoseconds"), "1.50 ms");
	assert.equal(formatValue(254e9, "nanoseconds"), "254 s");
	assert.equal(formatValue(1320e9, "nanoseconds"), "22.0 min");
	assert.equal(formatValue(4 * 3600e9, "nanoseconds"), "4.00 h");
	assert.equal(formatValue(5 * 86400e9, "nanoseconds"), "5.00 d");
	assert.equal(formatValue(3 * 2 ** 20, "bytes"), "3.00 MiB");
	assert.equal(formatValue(1234567, "count"), "1,234,567");
	assert.equal(formatValue(5, "goroutines"), "5 goroutines");
});

test("a column has one unit", () => {
	const scale = scaleFor(2700e9, "nanoseconds");
	assert.equal(scale.name, "s");
	assert.equal(formatIn(63.24e9, scale, 2700e9), "63.2");
	assert.equal(formatIn(63.24e9, scale, 100e9), "63.24");
	assert.equal(formatIn(42_480e9, scale, 42_480e9), "42,480", "a sum in the unit of its rows");
	assert.equal(scaleFor(100 * 3600e9, "nanoseconds").name, "h");
	assert.equal(formatIn(12345, scaleFor(99999, "count"), 99999), "12,345");
});

test("large counts have a scale, and no cell has more than nine characters", () => {
	const most = 213_105_259_322;
	const scale = scaleFor(26_600_000_000, "count");
	assert.equal(scale.name, "G");
	assert.equal(formatIn(most, scale, most), "213.11");
	assert.equal(formatIn(26_600_000_000, scale, most), "26.60");
	assert.equal(scaleFor(5e7, "goroutines").name, "M goroutines");
	assert.equal(scaleFor(9_999_999, "count").name, "");
	const bare = scaleFor(1000, "count");
	assert.equal(formatIn(9_999_999, bare, most), "9,999,999");
	assert.equal(formatIn(most, bare, most), "213 G", "far above the usual value of the column");
	assert.equal(formatIn(26_600_000_000, bare, most), "26.6 G");
	assert.equal(formatIn(1e17, scaleFor(1e9, "nanoseconds"), 1e17), "100 M");
	for (let value = 1; value < 1e16; value *= 7) {
		const text = formatIn(value, scaleFor(value, "count"), value);
		assert.ok(text.length <= 9, text);
	}
	assert.equal(formatExact(most, "count"), "213,105,259,322");
	assert.equal(formatExact(1500, "nanoseconds"), "1,500 nanoseconds");
});

test("shares", () => {
	assert.equal(formatShare(1, 8), "12.5 %");
	assert.equal(formatShare(1, 1), "100 %");
	assert.equal(formatShare(0, 5), "0 %");
	assert.equal(formatShare(5, 0), "0 %");
	assert.equal(formatShare(1, 1e6), "< 0.01 %");
	assert.equal(formatShare(1, 400), "0.25 %");
});

test("nanoseconds of CPU over a step are cores", () => {
	const cpu = "parca_agent:samples:count:cpu:nanoseconds:delta";
	const cores = rateOf(cpu, "nanoseconds", true, 10_000);
	assert.equal(cores.label, "cores");
	assert.equal(5e9 * cores.factor, 0.5);
	assert.equal(formatRate(1.25, cores), "1.25");
	assert.deepEqual(formatTicks([0, 0.2, 0.4, 0.6000000000000001], cores), ["0", "0.2", "0.4", "0.6"]);
	assert.equal(rateOf("process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", "nanoseconds", true, 1).label, "cores");
	const waits = rateOf("parca_agent:wallclock:nanoseconds:samples:count:delta", "nanoseconds", true, 10_000);
	assert.equal(formatRate(32e9 * waits.factor, waits), "3.20");
	assert.equal(waits.label, "at once");
	const bytes = rateOf("memory:alloc_space:bytes:space:bytes:delta", "bytes", true, 10_000);
	assert.equal(formatRate(10240 * bytes.factor, bytes), "1.00 KiB/s");
	assert.deepEqual(formatTicks([0, 2 ** 25, 2 ** 26], { ...bytes, label: "bytes" }), ["0", "32 MiB", "64 MiB"]);
	assert.deepEqual(formatTicks([0, 512 * 1024, 1024 * 1024], bytes), ["0", "0.5 MiB/s", "1 MiB/s"]);
	const counts = rateOf("x:contentions:count:contentions:count:delta", "count", true, 10_000);
	assert.deepEqual(formatTicks([0, 0.5, 1], counts), ["0", "0.5/s", "1/s"]);
	assert.equal(formatRate(0.25, counts), "0.25/s");
	assert.equal(formatRate(2500, counts), "2,500/s");
	assert.equal(rateOf("memory:inuse_space:bytes:space:bytes", "bytes", false, 10_000).factor, 1);
});
