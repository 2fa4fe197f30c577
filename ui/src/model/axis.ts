// SPDX-License-Identifier: Apache-2.0
/** The positions of the lines of a chart's axes. */
import { formatClock, toLocalText } from "./time.ts";

/**
 * Values from 0 up to at most `max`, about `count` of them, at 1, 2 or 5 times a power of ten, or, for
 * bytes, at powers of two.
 */
export function valueTicks(max: number, count: number, binary = false): number[] {
	if (!(max > 0) || count < 1) {
		return [0];
	}
	const rough = max / count;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = binary
		? 2 ** Math.max(0, Math.ceil(Math.log2(rough) - 0.001))
		: [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999)!;
	const ticks: number[] = [];
	for (let i = 0; i * step <= max * 1.0001; i++) {
		ticks.push(i * step);
	}
	return ticks;
}

/** Steps of a time axis, in seconds. */
const STEPS_S = [
	1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
	604800, 1209600, 2592000,
];

/** The lines of a time axis. */
export interface TimeTicks {
	stepMs: number;
	/** Milliseconds since 1970. */
	atMs: number[];
}

/** Round local times in `[fromMs, toMs]`, at most `count` of them. */
export function timeTicks(fromMs: number, toMs: number, count: number): TimeTicks {
	const least = (toMs - fromMs) / 1000 / Math.max(1, count);
	const stepMs = 1000 * (STEPS_S.find((s) => s >= least) ?? Math.ceil(least / 86400) * 86400);
	const atMs: number[] = [];
	// days begin at local midnight; within a day with another offset the hours are off by the
	// difference
	const offsetMs = new Date(fromMs).getTimezoneOffset() * 60_000;
	const first = Math.ceil((fromMs - offsetMs) / stepMs) * stepMs + offsetMs;
	for (let ms = first; ms <= toMs && atMs.length <= count; ms += stepMs) {
		atMs.push(ms);
	}
	return { stepMs, atMs };
}

/** The labels of a time axis: the clock, with the day where another one begins. */
export function timeLabels(ticks: TimeTicks): { ms: number; label: string }[] {
	let day = "";
	return ticks.atMs.map((ms) => {
		const text = toLocalText(ms);
		const clock = formatClock(ms).slice(0, ticks.stepMs >= 60_000 ? 5 : 8);
		const newDay = day !== "" && day !== text.slice(0, 10);
		day = text.slice(0, 10);
		return { ms, label: newDay || ticks.stepMs >= 86_400_000 ? text.slice(5, 10) : clock };
	});
}
