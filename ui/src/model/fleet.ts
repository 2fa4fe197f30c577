// SPDX-License-Identifier: Apache-2.0
/** The tables of services, and of code without names. */
import { isAddress } from "./colour.ts";
import type { ApiSeries } from "./series.ts";
import type { Row } from "./table.ts";

/** A value of a label, with its sums over a range and over the time of the same length before. */
export interface Service {
	value: string;
	/** The rest of the series, beyond the limit. */
	other: boolean;
	sum: number;
	before: number;
	/** Values of the range, by step. */
	points: number[];
}

/**
 * Sums each series before `beginMs`, and from there to `endMs` in steps of `stepMs`; the largest
 * first.
 */
export function servicesOf(
	series: readonly ApiSeries[],
	label: string,
	beginMs: number,
	endMs: number,
	stepMs: number,
): Service[] {
	const count = Math.max(1, Math.ceil((endMs - beginMs) / stepMs));
	const services = series.map((one): Service => {
		const points = new Array<number>(count).fill(0);
		let before = 0;
		let sum = 0;
		for (const [ms, value] of one.points) {
			const at = Math.floor((ms - beginMs) / stepMs);
			if (at < 0) {
				before += value;
			} else {
				sum += value;
				points[Math.min(at, count - 1)] = points[Math.min(at, count - 1)]! + value;
			}
		}
		return { value: one.labels?.[label] ?? "", other: one.other === true, sum, before, points };
	});
	return services
		.filter((s) => s.sum > 0 || s.before > 0)
		.sort((a, b) => Number(a.other) - Number(b.other) || b.sum - a.sum);
}

/**
 * The last `known` points as a line in a box of 100 × 24, for an SVG; before them nothing was
 * recorded.
 */
export function sparkline(points: readonly number[], known = points.length): string {
	const max = points.reduce((a, b) => Math.max(a, b), 0) || 1;
	const step = points.length > 1 ? 100 / (points.length - 1) : 0;
	const line = points.map((v, i) => `${(i * step).toFixed(1)},${(23 - (v / max) * 22).toFixed(1)}`);
	return line.slice(-Math.max(2, known)).join(" ");
}

/** Why code has no names. */
export type Cause = "file" | "made" | "kernel";

/** A binary whose functions have no names. */
export interface Unnamed {
	binary: string;
	cause: Cause;
	/** Value of its functions without a name, and of all its functions. */
	self: number;
	all: number;
	functions: number;
}

/** Binaries that have functions without names, the largest value first. */
export function unnamedOf(rows: readonly Row[]): Unnamed[] {
	const found = new Map<string, Unnamed>();
	for (const row of rows) {
		if (row.kind === "marker") {
			continue;
		}
		const cause: Cause = row.kind === "kernel" ? "kernel" : row.binary === "" || /^\[|^anon|^\/\/anon/.test(row.binary) ? "made" : "file";
		const one = found.get(row.binary) ?? { binary: row.binary, cause, self: 0, all: 0, functions: 0 };
		found.set(row.binary, one);
		one.all += row.self;
		if (row.name === "" || isAddress(row.name) || /^0x[0-9a-f]+$/.test(row.name)) {
			one.self += row.self;
			one.functions++;
		}
	}
	return [...found.values()].filter((one) => one.self > 0).sort((a, b) => b.self - a.self);
}

/** The runtimes of rows with their shares by self value, the largest first. */
export function runtimesOf(rows: readonly Row[]): { kind: string; self: number }[] {
	const sums = new Map<string, number>();
	for (const row of rows) {
		sums.set(row.kind, (sums.get(row.kind) ?? 0) + row.self);
	}
	return [...sums].map(([kind, self]) => ({ kind, self })).filter((r) => r.self > 0).sort((a, b) => b.self - a.self);
}
