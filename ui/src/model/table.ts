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
	/** Once for each stack the function is in, however often it recurs. */
	total: number;
}

/** What a table can be ordered by. */
export type SortKey = "self" | "total" | "name" | "binary";

/** Order of a table. */
export interface Sort {
	key: SortKey;
	descending: boolean;
}

/**
 * Adds the functions of the subtree of `root` up, by name and binary; ordered by self. In a graph of
 * callers the functions that ran stand below the root.
 */
export function tableOf(f: Flame, root: number, callers = false): Row[] {
	const rows = new Map<number, Row>();
	/** End of the outermost subtree of this function that is being walked. */
	const covered = new Map<number, number>();
	// the root of everything is no function; that of the callees of one is
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

/** Filters and orders; the input is left as it is. */
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

/** A value that the unit of a column should suit: rows further down are read too. */
export function usualValue(rows: readonly Row[]): number {
	const values = rows.map((row) => row.self).filter((v) => v > 0);
	values.sort((a, b) => b - a);
	return Math.max(values[Math.min(9, values.length - 1)] ?? 0, (values[0] ?? 0) / 1e4);
}

/** From here on a figure is wider than its cell: the next unit, which suits this part of the largest value. */
const WIDE = 1e6;
const WIDE_PART = 25;

/** A column of values: unit and decimals are the same in both, so that a row can be compared. */
export interface Column {
	unit: string;
	scale: Scale;
	/** The largest value of both columns. */
	top: number;
	/** That of this one, which fills the bar. */
	max: number;
}

/** The columns of self and total; `whole` gives the unit where no row has a value. */
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

/** A click on a heading: turns the order around, or begins with the useful end. */
export function nextSort(sort: Sort, key: SortKey): Sort {
	if (sort.key === key) {
		return { key, descending: !sort.descending };
	}
	return { key, descending: key === "self" || key === "total" };
}

/** Rows of a virtual list that are seen: `[first, last)`. Sizes in CSS pixels. */
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
