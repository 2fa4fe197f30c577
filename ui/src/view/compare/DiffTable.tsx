// SPDX-License-Identifier: Apache-2.0
/** Functions of both sides with their difference; only visible rows are in the document. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { go } from "../../app/store.ts";
import { type Theme, toHex } from "../../model/colour.ts";
import type { DiffRow } from "../../model/compare.ts";
import type { Diff } from "../../model/diff.ts";
import { splitName } from "../../model/names.ts";
import type { Field, Matcher } from "../../model/search.ts";
import { visibleRows } from "../../model/table.ts";
import { formatCount, formatShare, formatValue } from "../../model/units.ts";
import type { State } from "../../model/url.ts";
import { formatChange, UNKNOWN, verdictColour } from "../../model/verdict.ts";
import { Cut } from "../Cut.tsx";
import { Segments } from "../Segments.tsx";
import type { Point } from "../Tooltip.tsx";

const ROW_PX = 26;

/** Orders by their names in the URL; "": the largest change up or down. */
const ORDERS: Record<string, (x: DiffRow, y: DiffRow) => number> = {
	"": (x, y) => Math.abs(y.change) - Math.abs(x.change),
	more: (x, y) => y.change - x.change,
	less: (x, y) => x.change - y.change,
	name: (x, y) => (x.name < y.name ? -1 : 1),
	this: (x, y) => y.a - x.a,
	base: (x, y) => y.b - x.b,
};
const NEXT: Record<string, string> = { "": "more", more: "less", less: "" };

function Heading(props: { name: string; order: string; sort: string; class: string }) {
	const { name, order, sort } = props;
	const isChange = order === "";
	const on = isChange ? sort in NEXT : sort === order;
	const mark = !on ? "" : isChange ? { "": "±", more: "▼", less: "▲" }[sort] : order === "name" ? "▲" : "▼";
	return (
		<th class={props.class} scope="col" aria-sort={on ? (order === "name" || sort === "less" ? "ascending" : "descending") : "none"}>
			<button
				type="button"
				class="bare"
				title={isChange ? "By the largest change; again: what takes more first; again: what takes less" : undefined}
				onClick={() => go({ sort: isChange ? (on ? NEXT[sort]! : "") : order }, "replace")}
			>
				{name}
				<span class="sort-mark">{mark}</span>
			</button>
		</th>
	);
}

/** "+1.2 %" of a share, "−3.4 s" of a value. */
function changeText(d: Diff, change: number): string {
	const size = Math.abs(change);
	const text = d.absolute ? formatValue(size, d.flame.unit) : formatShare(size, 1);
	return change === 0 ? text : `${change < 0 ? "\u2212" : "+"}${text}`;
}

function Side({ value, total, diff }: { value: number; total: number; diff: Diff }) {
	const [share, exact] = [formatShare(value, total), formatValue(value, diff.flame.unit)];
	return (
		<td class="cell-value" title={diff.absolute ? share : exact}>
			{value === 0 ? <span class="cell-none">–</span> : diff.absolute ? exact : share}
		</td>
	);
}

interface TableProps {
	rows: readonly DiffRow[];
	diff: Diff;
	theme: Theme;
	matcher: Matcher | null;
	field: Field;
	state: State;
	/** The function under the pointer in the graph. */
	hover: string;
	onHover: (name: string) => void;
	openMenu: (name: string, binary: string, at: Point) => void;
}

function TableRow({ row, index, max, table }: { row: DiffRow; index: number; max: number; table: TableProps }) {
	const { diff, state } = table;
	const marked = row.name === state.mark;
	const colour = toHex(verdictColour(row.verdict, table.theme));
	const length = max > 0 ? Math.abs(row.change) / max : 0;
	return (
		<tr
			class={`${marked ? "marked" : ""} ${row.name === table.hover ? "hovered" : ""}`}
			style={{ transform: `translateY(${index * ROW_PX}px)` }}
			aria-rowindex={index + 2}
			onClick={() => go({ mark: marked ? "" : row.name }, "replace")}
			onContextMenu={(e) => {
				e.preventDefault();
				table.openMenu(row.name, row.binary, { x: e.clientX, y: e.clientY });
			}}
			onMouseEnter={() => table.onHover(row.name)}
		>
			<td class="cell-name" title={[row.name, row.binary, row.file].filter(Boolean).join("\n")}>
				<span class="swatch" style={{ background: colour }} />
				<Cut parts={splitName(row.name || "(no name)")} />
			</td>
			<Side value={row.a} total={diff.total[0]} diff={diff} />
			<Side value={row.b} total={diff.total[1]} diff={diff} />
			<td class="cell-value cell-change">
				<span
					class={`change-bar ${row.change < 0 ? "less" : "more"}`}
					style={{ background: colour, transform: `scaleX(${length.toFixed(4)})` }}
				/>
				<span class="cell-number">{changeText(diff, row.change)}</span>
			</td>
			<td
				class={`cell-value ${row.verdict === UNKNOWN ? "cell-few" : ""}`}
				title={row.verdict === UNKNOWN ? "Too few samples to tell: chance alone may do this" : undefined}
			>
				{row.verdict === UNKNOWN ? "too few" : formatChange(row.a, row.b * diff.scale)}
			</td>
		</tr>
	);
}

const OF = [
	{ value: "self", name: "Self", title: "The functions' own work" },
	{ value: "total", name: "Total", title: "With what they call" },
] as const;

/** The table of a comparison. */
export function DiffTable(props: TableProps) {
	const { rows, matcher, field, state } = props;
	const sort = state.sort in ORDERS ? state.sort : "";
	const arranged = useMemo(() => {
		const kept = matcher ? rows.filter((row) => matcher(row[field])) : [...rows];
		const order = ORDERS[sort]!;
		return kept.sort((x, y) => order(x, y) || (x.name < y.name ? -1 : 1));
	}, [rows, matcher, field, sort]);
	const max = useMemo(() => rows.reduce((m, row) => Math.max(m, Math.abs(row.change)), 0), [rows]);
	const scroll = useRef<HTMLDivElement>(null);
	const [view, setView] = useState({ top: 0, height: 400 });
	const look = () => {
		const { scrollTop, clientHeight } = scroll.current!;
		setView({ top: scrollTop, height: clientHeight });
	};
	useLayoutEffect(() => {
		const observer = new ResizeObserver(look);
		observer.observe(scroll.current!);
		return () => observer.disconnect();
	}, []);
	const [first, last] = visibleRows(view.top, view.height, ROW_PX, arranged.length);
	return (
		<section class="table-scroll" ref={scroll} tabIndex={0} aria-label="Functions" onScroll={look} onMouseLeave={() => props.onHover("")}>
			<table class="top diff" aria-rowcount={arranged.length + 1}>
				<thead>
					<tr>
						<Heading class="cell-name" name="Function" order="name" sort={sort} />
						<Heading class="cell-value" name="This" order="this" sort={sort} />
						<Heading class="cell-value" name="Base" order="base" sort={sort} />
						<Heading class="cell-value" name="Difference" order="" sort={sort} />
						<th class="cell-value" scope="col">
							<Segments
								label="Values of the table"
								value={state.byTotal ? "total" : "self"}
								choices={OF}
								choose={(v) => go({ byTotal: v === "total" }, "replace")}
							/>
						</th>
					</tr>
				</thead>
				<tbody style={{ height: `${arranged.length * ROW_PX}px` }}>
					{arranged.slice(first, last).map((row, i) => (
						<TableRow key={`${row.name}\n${row.binary}`} row={row} index={first + i} max={max} table={props} />
					))}
				</tbody>
			</table>
			{arranged.length === 0 && (
				<p class="table-none">
					{rows.length === 0 ? "No functions." : `None of ${formatCount(rows.length)} functions matches the search.`}
				</p>
			)}
		</section>
	);
}
