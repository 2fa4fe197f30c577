// SPDX-License-Identifier: Apache-2.0
/** The rows of a comparison's table. */
import type { Diff } from "./diff.ts";
import type { Flame } from "./flame.ts";
import { type Row, tableOf } from "./table.ts";
import { verdictOf } from "./verdict.ts";

/** A function on both sides. */
export interface DiffRow {
	name: string;
	binary: string;
	file: string;
	kind: string;
	/** Values of this side and of the base, not scaled. */
	a: number;
	b: number;
	/** This side less the base: a share, or an absolute comparison's value in the unit. */
	change: number;
	verdict: number;
}

/** Functions below `root` by self or total value, the largest change first. */
export function diffRows(d: Diff, root: number, of: "self" | "total", callers: boolean): DiffRow[] {
	const side = (k: 0 | 1): Row[] => {
		const seen: Flame = { ...d.flame, value: d.value[k], self: d.self[k] };
		return tableOf(seen, root, callers);
	};
	const key = (row: Row) => `${row.name}\n${row.binary}`;
	const base = new Map(side(1).map((row) => [key(row), row]));
	const rows = side(0).map((row): DiffRow => {
		const a = row[of];
		const b = base.get(key(row))?.[of] ?? 0;
		const change = d.absolute ? a - b : share(a, d.total[0]) - share(b, d.total[1]);
		const { name, binary, file, kind } = row;
		return { name, binary, file, kind, a, b, change, verdict: verdictOf(d, a, b) };
	});
	return rows
		.filter((row) => row.a > 0 || row.b > 0)
		.sort((x, y) => Math.abs(y.change) - Math.abs(x.change) || (x.name < y.name ? -1 : 1));
}

const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0);
