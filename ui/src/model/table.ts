// SPDX-License-Identifier: Apache-2.0
/** The table of functions: rows, order, filter. */
import type { Flame } from "./flame.ts";
import { kindName } from "./kinds.ts";
import type { Field, Matcher } from "./search.ts";
import { type Scale, scaleFor } from "./units.ts";

/** A function; values in the unit of the profile. */
export interface Row {
	name: string;
	binary: string;
	file: string;
	kind: string;
	self: number;
	/** Each stack with the function counts once, also if it recurs. */
	total: number;
}

/** The columns by which a table can be ordered. */
export type SortKey = "self" | "total" | "name" | "binary";

/** Order of a table. */
export interface Sort {
	key: SortKey;
	descending: boolean;
}

/**
 * Sums the functions of the subtree of `root` by name and binary; ordered by self. In a graph of
 * callers the functions that ran are directly below the root.
 */
export function tableOf(f: Flame, root: number, callers = false): Row[] {
	const rows = new Map<number, Row>();
	/** By function: end of the outermost subtree that is being walked. */
	const covered = new Map<number, number>();
	// the root of a whole graph is not a function; the root of a function's callees is
	const first = root === 0 && f.strings[f.name[0]!] === "" ? 1 : root;
	for (let i = first; i < f.end[root]!; i++) {
		const key = f.name[i]! * f.strings.length + f.binary[i]!;
		let row = rows.get(key);
		if (!row) {
			row = newRow(f, i);
			rows.set(key, row);
		}
		row.self += !callers ? f.self[i]! : f.depth[i] === 1 ? f.value[i]! : 0;
		if (i >= (covered.get(key) ?? 0)) {
			row.total += f.value[i]!;
			covered.set(key, f.end[i]!);
		}
	}
	return [...rows.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

function newRow(f: Flame, i: number): Row {
	return {
		name: f.strings[f.name[i]!] ?? "",
		binary: f.strings[f.binary[i]!] ?? "",
		file: f.strings[f.file[i]!] ?? "",
		kind: kindName(f.kind[i]!),
		self: 0,
		total: 0,
	};
}

/** Filters and orders rows; the input is not changed. */
export function arrangeRows(
	rows: readonly Row[],
	matcher: Matcher | null,
	sort: Sort,
	field: Field = "name",
): Row[] {
	const kept = matcher ? rows.filter((row) => matcher(row[field])) : [...rows];
	const sign = sort.descending ? -1 : 1;
	const { key } = sort;
	return kept.sort((a, b) => {
		const x = a[key];
		const y = b[key];
		if (x !== y) {
			return x < y ? -sign : sign;
		}
		return b.total - a.total || (a.name < b.name ? -1 : 1);
	});
}

/** The value for which a column's unit is chosen; not the largest, as other rows are read too. */
export function usualValue(rows: readonly Row[]): number {
	const values = rows.map((row) => row.self).filter((v) => v > 0);
	values.sort((a, b) => b - a);
	return Math.max(values[Math.min(9, values.length - 1)] ?? 0, (values[0] ?? 0) / 1e4);
}

/**
 * Numbers from WIDE on are wider than a cell: then the unit is chosen for the largest value divided
 * by WIDE_PART.
 */
const WIDE = 1e6;
const WIDE_PART = 25;

/**
 * A column of values; unit and decimals are the same in both columns, so that they can be compared.
 */
export interface Column {
	unit: string;
	scale: Scale;
	/** The largest value of both columns. */
	top: number;
	/** The largest value of this column, which fills the bar. */
	max: number;
}

/** The columns of self and total; `whole` gives the unit if no row has a value. */
export function columnsOf(rows: readonly Row[], unit: string, whole: number): [Column, Column] {
	const most = (key: "self" | "total") => rows.reduce((max, row) => Math.max(max, row[key]), 0);
	const [self, total] = [most("self"), most("total")];
	const top = Math.max(self, total);
	let scale = scaleFor(usualValue(rows) || whole, unit);
	if (top / scale.size >= WIDE) {
		scale = scaleFor(top / WIDE_PART, unit);
	}
	const both = { unit, scale, top };
	return [
		{ ...both, max: self },
		{ ...both, max: total },
	];
}

/** The order after a click on a heading: reversed, or by this column with the useful end first. */
export function nextSort(sort: Sort, key: SortKey): Sort {
	if (sort.key === key) {
		return { key, descending: !sort.descending };
	}
	return { key, descending: key === "self" || key === "total" };
}

/** The visible rows of a virtual list: `[first, last)`. Sizes are in CSS pixels. */
export function visibleRows(
	scrollPx: number,
	heightPx: number,
	rowPx: number,
	count: number,
): [number, number] {
	const margin = 6;
	const first = Math.max(0, Math.floor(scrollPx / rowPx) - margin);
	const last = Math.min(count, Math.ceil((scrollPx + heightPx) / rowPx) + margin);
	return [Math.min(first, count), last];
}
