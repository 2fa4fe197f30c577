// SPDX-License-Identifier: Apache-2.0
/** Series of the chart: a common grid of steps, stacking, slots of colours. */

/** One series of /api/series. */
export interface ApiSeries {
	labels?: Record<string, string>;
	/** The sum of the series beyond the limit. */
	other?: boolean;
	/** `[milliseconds, sum over the step]`, ascending; missing steps are zero, except for gauges. */
	points: [number, number][];
}

/** Series on one grid. */
export interface Grid {
	/** Begin of each step, in seconds since 1970. */
	timesS: number[];
	stepMs: number;
	lines: Line[];
	/** 1 for steps with values to average: all of them, except for gauges. */
	there: Uint8Array;
}

/** One series on the grid. */
export interface Line {
	/** Value of the label; "": the samples do not have it. */
	value: string;
	other: boolean;
	/** A value for each step, in the unit of the answer. */
	values: number[];
	/** Sum of the values. */
	sum: number;
}

/**
 * Keeps a gauge's value until its next point, like the server (docs/api.md, Gauges). The gauge's
 * interval is the median of the distances: if the next point is further away than twice the
 * interval, or missing, the value is kept for one interval.
 */
function holdValues(values: number[], points: readonly number[], there: Uint8Array) {
	const gaps = points.slice(1).map((p, i) => p - points[i]!);
	const interval = gaps.sort((a, b) => a - b)[gaps.length >> 1] ?? 1;
	points.forEach((at, k) => {
		const next = points[k + 1];
		const isThere = next !== undefined && next - at <= 2 * interval;
		const end = isThere ? next : Math.min(at + interval, next ?? Infinity);
		values.fill(values[at]!, at, end);
		there.fill(1, at, end);
	});
}

/**
 * Puts series on the grid of steps in `[fromMs, toMs)`; unfinished last steps are left out.
 * @param delta false: values are of moments, and last until the next one.
 */
export function gridOf(
	series: readonly ApiSeries[],
	by: string,
	stepMs: number,
	fromMs: number,
	toMs: number,
	delta = true,
): Grid {
	const anchor = series.find((s) => s.points.length > 0)?.points[0]?.[0] ?? 0;
	const phase = ((anchor % stepMs) + stepMs) % stepMs;
	const first = Math.floor((fromMs - phase) / stepMs) * stepMs + phase;
	const count = Math.max(0, Math.floor((toMs - first) / stepMs));
	const timesS = Array.from({ length: count }, (_, i) => (first + i * stepMs) / 1000);
	const there = new Uint8Array(count).fill(delta ? 1 : 0);
	const lines = series.map((s) => {
		const values = new Array<number>(count).fill(0);
		const points: number[] = [];
		for (const [ms, value] of s.points) {
			const i = Math.round((ms - first) / stepMs);
			if (i >= 0 && i < count) {
				values[i] = values[i]! + value;
				points.push(i);
			}
		}
		if (!delta) {
			holdValues(values, points, there);
		}
		const sum = values.reduce((a, b) => a + b, 0);
		return { value: s.labels?.[by] ?? "", other: s.other === true, values, sum };
	});
	lines.sort((a, b) => Number(a.other) - Number(b.other) || b.sum - a.sum);
	return { timesS, stepMs, lines, there };
}

/** For each line, its value plus those of all lines after it: the top edge of a stacked area. */
export function stackUp(lines: readonly Line[]): number[][] {
	const edges: number[][] = new Array(lines.length);
	let below: number[] | null = null;
	for (let k = lines.length - 1; k >= 0; k--) {
		const edge: number[] = lines[k]!.values.map((v, i) => v + (below ? below[i]! : 0));
		edges[k] = edge;
		below = edge;
	}
	return edges;
}

/** Sum of all lines at each step. */
export function totals(lines: readonly Line[], count: number): number[] {
	const sums = new Array<number>(count).fill(0);
	for (const line of lines) {
		for (let i = 0; i < count; i++) {
			sums[i] = sums[i]! + line.values[i]!;
		}
	}
	return sums;
}

/**
 * Mean of a line over the steps in `[fromMs, toMs)`; without a range, over all. Gauges are averaged
 * over the time in which any of them has a value, like in the server.
 */
export function meanOf(grid: Grid, line: Line, span: { fromMs: number; toMs: number } | null) {
	let sum = 0;
	let n = 0;
	for (let i = 0; i < grid.timesS.length; i++) {
		const ms = grid.timesS[i]! * 1000;
		if (grid.there[i] && (!span || (ms + grid.stepMs > span.fromMs && ms < span.toMs))) {
			sum += line.values[i]!;
			n++;
		}
	}
	return n === 0 ? 0 : sum / n;
}

/** Number of distinguishable colours; more values repeat them. */
export const SLOTS = 12;

/**
 * Gives each value a slot of the palette: the one it had, else the one of its name's hash, else the
 * next free one, so that a value keeps its colour when the order changes.
 */
export function assignSlots(
	before: ReadonlyMap<string, number>,
	values: readonly string[],
	hash: (s: string) => number,
): Map<string, number> {
	const slots = new Map<string, number>();
	const taken = new Set<number>();
	for (const value of values) {
		const old = before.get(value);
		if (old !== undefined && !taken.has(old)) {
			slots.set(value, old);
			taken.add(old);
		}
	}
	for (const value of values) {
		if (slots.has(value)) {
			continue;
		}
		let slot = hash(value) % SLOTS;
		for (let i = 0; i < SLOTS && taken.has(slot); i++) {
			slot = (slot + 5) % SLOTS;
		}
		slots.set(value, slot);
		taken.add(slot);
	}
	return slots;
}

/** A dragged stretch, widened to whole steps of the grid. */
export function snapSpan(
	fromMs: number,
	toMs: number,
	grid: Grid,
): { fromMs: number; toMs: number } {
	const first = (grid.timesS[0] ?? 0) * 1000;
	const { stepMs } = grid;
	const down = first + Math.floor((fromMs - first) / stepMs) * stepMs;
	const up = first + Math.ceil((toMs - first) / stepMs) * stepMs;
	return { fromMs: down, toMs: Math.max(up, down + stepMs) };
}
