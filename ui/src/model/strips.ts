// SPDX-License-Identifier: Apache-2.0
/**
 * Lays a flame chart out by time: a row for each value of a label, with its calls one after the
 * other. A call is as long as the time that its samples stand for. If several threads share a row,
 * their calls would overlap: then all calls of the row are shortened by the factor that its busiest
 * moment needs. Merged samples are at multiples of ten seconds, and fill the time after these.
 */
import { type Flame, Kind } from "./flame.ts";
import type { ApiSeries } from "./series.ts";
import type { Span } from "./time.ts";

/** A row: a value of the label, or the samples without it. */
export interface Strip {
	/** "": the samples without the label. */
	value: string;
	total: number;
	/** The row's nodes: `[from, to)` of `order`. */
	from: number;
	to: number;
	/** Levels of its calls. */
	depth: number;
	/** The binary with the largest share of the row; not the kernel, if there is another. */
	busiest: string;
	/** Its samples were merged in the store, so that times are rounded down to ten seconds. */
	merged: boolean;
	/** Begin of its first call, and end of its last one. */
	fromMs: number;
	toMs: number;
}

/** Where each call is drawn. */
export interface Strips {
	flame: Flame;
	rows: Strip[];
	/** Nodes row by row, callers before what they call, by time. */
	order: Int32Array;
	/** By node, in milliseconds since 1970; the level in its row, from 0 on. */
	start: Float64Array;
	length: Float64Array;
	level: Int32Array;
}

/** The distance of merged samples, in milliseconds. */
const MERGED_MS = 10_000;
const WINDOW_MS = 1000;

/** The milliseconds for each unit of value, so that the calls of every moment fit. */
function scaleOf(f: Flame, tops: readonly number[], ms: (node: number) => number, merged: boolean): number {
	const width = merged ? MERGED_MS : WINDOW_MS;
	const sums = new Map<number, number>();
	let most = 0;
	for (const node of tops) {
		const at = Math.floor(ms(node) / width);
		const sum = (sums.get(at) ?? 0) + f.value[node]!;
		sums.set(at, sum);
		most = Math.max(most, sum);
	}
	const fits = most > 0 ? width / most : 0;
	// a single call may be longer than that
	return f.unit === "nanoseconds" && tops.length > 1 ? Math.min(1e-6, fits) : fits;
}

/** The binary with the largest sum of the row's own values. */
export function busiestOf(f: Flame, nodes: Int32Array): string {
	const sums = new Map<string, number>();
	for (const node of nodes) {
		if (f.kind[node] !== Kind.kernel) {
			const word = f.strings[f.binary[node]!] || f.strings[f.name[node]!]!;
			sums.set(word, (sums.get(word) ?? 0) + f.self[node]!);
		}
	}
	return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "kernel";
}

/** Lays out a chart whose calls begin `time[node]` microseconds after `beginMs`; `by` "": one row. */
export function layStrips(f: Flame, time: readonly number[], beginMs: number, by: string): Strips {
	const start = new Float64Array(f.count);
	const length = new Float64Array(f.count);
	const level = new Int32Array(f.count);
	const order = new Int32Array(f.count);
	const ms = (node: number) => beginMs + time[node]! / 1000;
	const groups: { value: string; tops: number[] }[] = [];
	const bare: number[] = [];
	const isValue = (node: number) => by !== "" && time[node] === 0 && f.kind[node] === 0 && f.binary[node] === 0 && f.file[node] === 0;
	for (let i = 1; i < f.count; i = f.end[i]!) {
		if (isValue(i)) {
			const tops: number[] = [];
			for (let k = i + 1; k < f.end[i]!; k = f.end[k]!) {
				tops.push(k);
			}
			groups.push({ value: f.strings[f.name[i]!]!, tops });
		} else {
			bare.push(i);
		}
	}
	if (bare.length > 0) {
		groups.push({ value: "", tops: bare });
	}
	let count = 0;
	/** By node: where its next callee may begin, and the length of all callees still to come. */
	const free = new Float64Array(f.count);
	const rest = new Float64Array(f.count);
	const rows = groups.map(({ value, tops }) => {
		const merged = tops.every((node) => Math.round(ms(node)) % MERGED_MS === 0);
		const scale = scaleOf(f, tops, ms, merged);
		const from = count;
		let cursor = Number.NEGATIVE_INFINITY;
		let total = 0;
		let depth = 0;
		for (const top of tops) {
			total += f.value[top]!;
			for (let i = top; i < f.end[top]!; i++) {
				const p = f.parent[i]!;
				length[i] = f.value[i]! * scale;
				if (i === top) {
					start[i] = Math.max(cursor, ms(i));
					cursor = start[i]! + length[i]!;
				} else {
					const latest = start[p]! + length[p]! - rest[p]!;
					start[i] = Math.max(free[p]!, Math.min(start[p]! + ms(i) - ms(p), latest));
					rest[p] = rest[p]! - length[i]!;
					free[p] = start[i]! + length[i]!;
					level[i] = level[p]! + 1;
				}
				free[i] = start[i]!;
				rest[i] = f.inner[i]! * scale;
				depth = Math.max(depth, level[i]! + 1);
				order[count++] = i;
			}
		}
		const busiest = busiestOf(f, order.subarray(from, count));
		return { value, total, from, to: count, depth, busiest, merged, fromMs: start[tops[0]!] ?? 0, toMs: cursor };
	});
	rows.sort((a, b) => b.total - a.total);
	return { flame: f, rows, order: order.subarray(0, count), start, length, level };
}

/** The call at an instant on a level of a row, or -1. */
export function callAt(s: Strips, row: Strip, ms: number, level: number): number {
	for (let k = row.from; k < row.to; ) {
		const node = s.order[k]!;
		const inside = ms >= s.start[node]! && ms < s.start[node]! + s.length[node]!;
		if (!inside) {
			k += s.flame.end[node]! - node;
		} else if (s.level[node] === level) {
			return node;
		} else {
			k++;
		}
	}
	return -1;
}

/** The end of a span that has about `wanted` samples; the whole span if it has fewer. */
export function stretchOf(span: Span, samples: number | null, wanted: number): Span {
	const whole = span.toMs - span.fromMs;
	const share = samples === null ? 60_000 / whole : wanted / Math.max(1, samples);
	const width = Math.min(whole, Math.max(1000, Math.round(whole * share)));
	return { fromMs: span.toMs - width, toMs: span.toMs };
}

/** By value of a label: the program with the largest share, and how many others share the value. */
export function programsOf(series: readonly ApiSeries[], by: string, program: string): Map<string, string> {
	const found = new Map<string, { name: string; sum: number; count: number }>();
	for (const { labels = {}, other, points } of series) {
		const [value = "", name = ""] = [labels[by], labels[program]];
		if (other || value === "" || name === "") {
			continue;
		}
		const sum = points.reduce((a, [, v]) => a + v, 0);
		const one = found.get(value) ?? { name, sum, count: 0 };
		found.set(value, { name: sum > one.sum ? name : one.name, sum: Math.max(sum, one.sum), count: one.count + 1 });
	}
	return new Map([...found].map(([value, { name, count }]) => [value, count > 1 ? `${name} +${count - 1}` : name]));
}
