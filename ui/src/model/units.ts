// SPDX-License-Identifier: Apache-2.0
/** Formats values. */

const DIGITS = 3;

function round(x: number): string {
	if (x === 0) {
		return "0";
	}
	const abs = Math.abs(x);
	const decimals = abs >= 100 ? 0 : abs >= 10 ? 1 : abs >= 1 ? 2 : DIGITS;
	return x.toFixed(decimals);
}

/** A unit is used for values from `least` on; `size` is the unit's size, by default `least`. */
type Steps = readonly (readonly [least: number, name: string, size?: number])[];

/** A unit that suits values up to `max`. */
export interface Scale {
	size: number;
	name: string;
}

function pick(max: number, steps: Steps): Scale {
	const step = steps.find(([least]) => Math.abs(max) >= least) ?? steps[steps.length - 1]!;
	return { size: step[2] ?? step[0], name: step[1] };
}

function scaled(value: number, steps: Steps): string {
	const { size, name } = pick(value, steps);
	return `${round(value / size)} ${name}`;
}

/** Seconds are used up to ten minutes: next to 55.6 s, 254 s is easier to read than 4.23 min. */
const TIME = [
	[2 * 86_400e9, "d", 86_400e9],
	[2 * 3_600e9, "h", 3_600e9],
	[600e9, "min", 60e9],
	[1e9, "s"],
	[1e6, "ms"],
	[1e3, "µs"],
	[1, "ns"],
] as const;
/** A column has small values too, so seconds are used up to ten hours. */
const COLUMN_TIME = [
	[36_000e9, "h", 3_600e9],
	[1e9, "s"],
	[1e6, "ms"],
	[1e3, "µs"],
] as const;
const BYTES = [
	[2 ** 40, "TiB"],
	[2 ** 30, "GiB"],
	[2 ** 20, "MiB"],
	[2 ** 10, "KiB"],
	[1, "B"],
] as const;

const COUNTS = [
	[1e12, "T"],
	[1e9, "G"],
	[1e6, "M"],
] as const;
/** From here on a count is shown in M, G or T: a column has no room for more digits. */
const LARGE = 1e7;

/** A value with its unit: "12.3 s", "4.00 MiB", "1,234". */
export function formatValue(value: number, unit: string): string {
	if (unit === "nanoseconds") {
		return value === 0 ? "0 s" : scaled(value, TIME);
	}
	if (unit === "bytes") {
		return scaled(value, BYTES);
	}
	return formatExact(value, unit);
}

/** One unit for a column whose rows have values up to about `max`. */
export function scaleFor(max: number, unit: string): Scale {
	if (unit === "nanoseconds") {
		return pick(max, COLUMN_TIME);
	}
	if (unit === "bytes") {
		return pick(max, BYTES);
	}
	const scale = max >= LARGE ? pick(max, COUNTS) : { size: 1, name: "" };
	const name = unit === "count" ? "" : unit;
	return { size: scale.size, name: [scale.name, name].filter((s) => s !== "").join(" ") };
}

/**
 * A value without its unit, which is shown elsewhere; `max` determines the decimals. A value of
 * more than seven digits gets a letter: "213 G".
 */
export function formatIn(value: number, scale: Scale, max: number): string {
	if (Math.abs(value / scale.size) >= LARGE) {
		return scaled(value / scale.size, COUNTS);
	}
	if (scale.size === 1) {
		return formatCount(value);
	}
	const top = max / scale.size;
	const decimals = top >= 10_000 ? 0 : top >= 1000 ? 1 : 2;
	return (value / scale.size).toLocaleString("en-US", {
		minimumFractionDigits: decimals,
		maximumFractionDigits: decimals,
	});
}

/** An integer with separators: "12,345". */
export function formatCount(n: number): string {
	return Math.round(n).toLocaleString("en-US");
}

/** All digits of a value: "213,105,259,322", "1,500 nanoseconds". */
export function formatExact(value: number, unit: string): string {
	const number = formatCount(value);
	return unit === "" || unit === "count" ? number : `${number} ${unit}`;
}

/** A share as percent: "12.3 %", "< 0.01 %". */
export function formatShare(part: number, whole: number): string {
	if (whole <= 0) {
		return "0 %";
	}
	const percent = (100 * part) / whole;
	if (percent > 0 && percent < 0.01) {
		return "< 0.01 %";
	}
	if (percent >= 99.95 || percent === 0) {
		return `${Math.round(percent)} %`;
	}
	return `${percent.toFixed(percent < 1 ? 2 : 1)} %`;
}

/** How values of a series are shown on the chart's axis. */
export interface Rate {
	/** The factor for a sum over one step. */
	factor: number;
	/**
	 * "cores" for CPU time, "at once" for other times (seconds of waiting per second are the number of
	 * waiting threads); else a unit, with "/s" for sums.
	 */
	label: string;
}

/** Whether values of a profile type are CPU time: "NAME:TYPE:UNIT:PERIOD TYPE:PERIOD UNIT:delta". */
export function isCpuTime(type: string): boolean {
	const parts = type.split(":");
	return parts[1] === "cpu" || parts[3] === "cpu";
}

/** A sum over `stepMs` as a rate: nanoseconds of CPU become cores. */
export function rateOf(type: string, unit: string, delta: boolean, stepMs: number): Rate {
	if (unit === "nanoseconds" && delta) {
		return { factor: 1 / (stepMs * 1e6), label: isCpuTime(type) ? "cores" : "at once" };
	}
	return delta ? { factor: 1000 / stepMs, label: `${unit}/s` } : { factor: 1, label: unit };
}

const isBare = (rate: Rate) => rate.label === "cores" || rate.label === "at once";

/** A value on the chart: "1.25" for cores, "4.00 MiB/s". */
export function formatRate(value: number, rate: Rate): string {
	if (isBare(rate)) {
		return value === 0 ? "0" : value < 0.0005 ? "< 0.001" : round(value);
	}
	const perSecond = rate.label.endsWith("/s");
	const unit = perSecond ? rate.label.slice(0, -2) : rate.label;
	const isCount = unit !== "bytes" && unit !== "nanoseconds";
	const few = isCount && value < 100 && !Number.isInteger(value);
	const name = unit === "count" || unit === "" ? "" : ` ${unit}`;
	return (few ? `${Number(value.toPrecision(3))}${name}` : formatValue(value, unit)) + (perSecond ? "/s" : "");
}

/**
 * The values at the lines of an axis: all in one unit, with the fewest digits that distinguish
 * them.
 */
export function formatTicks(ticks: readonly number[], rate: Rate): string[] {
	const perSecond = rate.label.endsWith("/s");
	const unit = perSecond ? rate.label.slice(0, -2) : rate.label;
	const max = ticks.at(-1) ?? 0;
	const bare = { size: 1, name: isBare(rate) || unit === "count" ? "" : unit };
	const time = unit === "nanoseconds";
	const scale = time ? pick(max, TIME) : unit === "bytes" ? pick(max, BYTES) : bare;
	const name = (scale.name && ` ${scale.name}`) + (perSecond ? "/s" : "");
	return ticks.map((tick) => {
		const value = Number((tick / scale.size).toPrecision(6));
		return value === 0 ? "0" : value.toLocaleString("en-US", { maximumFractionDigits: 6 }) + name;
	});
}
