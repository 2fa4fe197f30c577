// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { go } from "../app/store.ts";
import { type Slots, type Theme, toHex, wordColour } from "../model/colour.ts";
import { splitName } from "../model/names.ts";
import type { Field, Matcher } from "../model/search.ts";
import {
	arrangeRows,
	type Column,
	columnsOf,
	nextSort,
	type Row,
	type Sort,
	type SortKey,
	visibleRows,
} from "../model/table.ts";
import type { Group } from "../model/filter.ts";
import { formatCount, formatExact, formatIn, formatShare } from "../model/units.ts";
import { binaryText, type Words } from "../model/words.ts";
import { Cut } from "./Cut.tsx";
import type { Point } from "./Tooltip.tsx";

const ROW_PX = 26;
const NO_ROWS: readonly Row[] = [];
const HEADINGS: readonly { key: SortKey; name: string; class: string }[] = [
	{ key: "name", name: "Function", class: "cell-name" },
	{ key: "binary", name: "Binary", class: "cell-binary" },
	{ key: "self", name: "Self", class: "cell-value" },
	{ key: "total", name: "Total", class: "cell-value" },
];

/** The order in the URL: "total", "-name"; a minus reverses it. */
export function parseSort(text: string): Sort {
	const key = text.replace(/^-/, "") as SortKey;
	if (!HEADINGS.some((h) => h.key === key)) {
		return { key: "self", descending: true };
	}
	return { key, descending: (key === "self" || key === "total") !== text.startsWith("-") };
}

function formatSort(sort: Sort): string {
	const usual = sort.key === "self" || sort.key === "total";
	const text = (usual === sort.descending ? "" : "-") + sort.key;
	return text === "self" ? "" : text;
}

interface TableProps {
	/** null: unknown yet. */
	rows: readonly Row[] | null;
	unit: string;
	/** What a row stands for. */
	group: Group;
	/** What 100 % is. */
	whole: number;
	theme: Theme;
	words: Words;
	slots: Slots;
	matcher: Matcher | null;
	/** The field that the search matches. */
	field: Field;
	sort: string;
	/** The marked function, and the one under the pointer in the graph. */
	mark: string;
	hover: string;
	onHover: (name: string) => void;
	openMenu: (name: string, binary: string, at: Point) => void;
}

function Value({ value, whole, column }: { value: number; whole: number; column: Column }) {
	const share = column.max > 0 ? Math.min(1, Math.max(0, value / column.max)) : 0;
	return (
		<td class="cell-value" title={formatExact(value, column.unit)}>
			<span class="bar" style={{ transform: `scaleX(${share.toFixed(4)})` }} />
			<span class="cell-number">{formatIn(value, column.scale, column.top)}</span>
			<span class="cell-share">{formatShare(value, whole)}</span>
		</td>
	);
}

function TableRow(props: {
	row: Row;
	index: number;
	table: TableProps;
	self: Column;
	total: Column;
}) {
	const { row, index, table, self, total } = props;
	const marked = row.name === table.mark;
	const toggle = () => go({ mark: marked ? "" : row.name }, "replace");
	const { word, kernel } = table.words.ofRow(row);
	const colour = wordColour(word, kernel, table.theme, table.slots);
	return (
		<tr
			class={`${marked ? "marked" : ""} ${row.name === table.hover ? "hovered" : ""} kind-${row.kind}`}
			style={{ transform: `translateY(${index * ROW_PX}px)` }}
			aria-rowindex={index + 2}
			aria-selected={marked}
			onClick={toggle}
			onContextMenu={(e) => {
				e.preventDefault();
				table.openMenu(row.name, row.binary, { x: e.clientX, y: e.clientY });
			}}
			onMouseEnter={() => table.onHover(row.name)}
		>
			<td class="cell-name" title={row.file ? `${row.name}\n${row.file}` : row.name}>
				<span class="swatch" style={{ background: toHex(colour) }} />
				<Cut parts={splitName(row.name || "(no name)")} />
				<button
					type="button"
					class="bare row-menu"
					tabIndex={-1}
					title="Callers, callees and more (right click, or Enter on the marked row)"
					aria-label={`Menu of ${row.name}`}
					onClick={(e) => {
						e.stopPropagation();
						table.openMenu(row.name, row.binary, { x: e.clientX, y: e.clientY });
					}}
				/>
			</td>
			<td class="cell-binary" title={row.binary}>
				{binaryText(row.binary)}
			</td>
			<Value value={row.self} whole={table.whole} column={self} />
			<Value value={row.total} whole={table.whole} column={total} />
		</tr>
	);
}

/** Heading of the column of groups. */
const GROUPED: Partial<Record<Group, string>> = { binary: "Binary", file: "File", runtime: "Runtime" };

function Head({ sort, unit, group }: { sort: Sort; unit: string; group: Group }) {
	return (
		<thead>
			<tr>
				{HEADINGS.map((h) => (
					<th
						key={h.key}
						class={h.class}
						scope="col"
						aria-sort={sort.key !== h.key ? "none" : sort.descending ? "descending" : "ascending"}
					>
						<button
							type="button"
							class="bare"
							onClick={() => go({ sort: formatSort(nextSort(sort, h.key)) }, "replace")}
						>
							{(h.key === "name" && GROUPED[group]) || h.name}
							{h.class === "cell-value" && unit && <span class="head-unit">{unit}</span>}
							<span class="sort-mark">
								{sort.key === h.key ? (sort.descending ? "▼" : "▲") : ""}
							</span>
						</button>
					</th>
				))}
			</tr>
		</thead>
	);
}

/** Functions with self and total values; only visible rows are in the document. */
export function TopTable(props: TableProps) {
	const { matcher, field, mark } = props;
	const rows = props.rows ?? NO_ROWS;
	const sort = useMemo(() => parseSort(props.sort), [props.sort]);
	const arranged = useMemo(() => arrangeRows(rows, matcher, sort, field), [rows, matcher, sort, field]);
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
	useEffect(() => {
		const at = mark === "" ? -1 : arranged.findIndex((row) => row.name === mark);
		const box = scroll.current!;
		const y = at * ROW_PX;
		if (at >= 0 && (y < box.scrollTop || y + 2 * ROW_PX > box.scrollTop + box.clientHeight)) {
			box.scrollTop = Math.max(0, y - box.clientHeight / 3);
		}
	}, [mark]);
	const step = (by: number) => {
		const at = arranged.findIndex((row) => row.name === mark);
		const next = arranged[Math.min(Math.max(at + by, 0), arranged.length - 1)];
		if (next) {
			go({ mark: next.name }, "replace");
		}
	};
	const onKeyDown = (e: KeyboardEvent) => {
		const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
		if (e.target !== scroll.current || e.ctrlKey || e.metaKey || e.altKey) {
			return;
		}
		if (by !== 0) {
			e.preventDefault();
			step(by);
		} else if ((e.key === "Enter" || e.key === "m" || e.key === "ContextMenu") && mark !== "") {
			e.preventDefault();
			const row = scroll.current!.querySelector(".marked");
			const box = (row ?? scroll.current!).getBoundingClientRect();
			props.openMenu(mark, arranged.find((r) => r.name === mark)?.binary ?? "", { x: box.left + 24, y: box.top + ROW_PX });
		}
	};
	const [self, total] = useMemo(
		() => columnsOf(rows, props.unit, props.whole),
		[rows, props.unit, props.whole],
	);
	const [first, last] = visibleRows(view.top, view.height, ROW_PX, arranged.length);
	return (
		<section
			class="table-scroll"
			ref={scroll}
			tabIndex={0}
			aria-label="Functions"
			onScroll={look}
			onKeyDown={onKeyDown}
			onMouseLeave={() => props.onHover("")}
		>
			<table class={`top ${GROUPED[props.group] ? "grouped" : ""}`} aria-rowcount={arranged.length + 1}>
				<Head sort={sort} unit={self.scale.name} group={props.group} />
				<tbody style={{ height: `${arranged.length * ROW_PX}px` }}>
					{arranged.slice(first, last).map((row, i) => (
						<TableRow
							key={`${row.name}\n${row.binary}`}
							row={row}
							index={first + i}
							table={props}
							self={self}
							total={total}
						/>
					))}
				</tbody>
			</table>
			{props.rows && arranged.length === 0 && (
				<p class="table-none">
					{rows.length === 0
						? "No functions."
						: `None of ${formatCount(rows.length)} functions matches the search.`}
				</p>
			)}
		</section>
	);
}
