// SPDX-License-Identifier: Apache-2.0
/** Lines with their values; only visible ones are in the document. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type CodeRow, firstRow, hotRows } from "../../model/code.ts";
import { visibleRows } from "../../model/table.ts";
import { formatExact, formatIn, formatShare, type Scale, scaleFor } from "../../model/units.ts";

const ROW_PX = 20;
/** Number of rows above the one to begin at. */
const ABOVE = 4;

interface ListingProps {
	/** A note about the text. */
	note: ComponentChildren;
	rows: readonly CodeRow[];
	unit: string;
	/** What 100 % is. */
	whole: number;
	/** Headings of the two columns after the values. */
	heads: readonly [at: string, text: string];
	/** The line to begin at; 0: the one with the largest value. */
	begin: number;
	/** Identifies the listing: another id scrolls to its begin. */
	id: string;
}

function Value(props: { value: number; most: number; whole: number; scale: Scale; unit: string }) {
	const { value, most } = props;
	if (value === 0) {
		return <td class="code-value" />;
	}
	return (
		<td class="code-value" title={`${formatExact(value, props.unit)}, ${formatShare(value, props.whole)}`}>
			<span class="bar" style={{ transform: `scaleX(${Math.min(1, value / most).toFixed(4)})` }} />
			{formatIn(value, props.scale, most)}
		</td>
	);
}

/** The box that scrolls, and its visible rows. */
function useRowView(id: string, first: number) {
	const box = useRef<HTMLDivElement>(null);
	const [view, setView] = useState({ top: 0, height: 600 });
	const look = () => setView({ top: box.current!.scrollTop, height: box.current!.clientHeight });
	useLayoutEffect(() => {
		const observer = new ResizeObserver(look);
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, []);
	const show = (row: number) => {
		box.current!.scrollTop = Math.max(0, row - ABOVE) * ROW_PX;
	};
	useEffect(() => show(first), [id]);
	return { box, view, look, show };
}

/** The listing, and keys that go from one hot line to the next. */
export function Listing({ note, rows, unit, whole, heads, begin, id }: ListingProps) {
	const hot = useMemo(() => hotRows(rows), [rows]);
	const { box, view, look, show } = useRowView(id, firstRow(rows, begin));
	const [at, setAt] = useState(-1);
	useEffect(() => setAt(-1), [id]);
	const step = (by: number) => {
		if (hot.length > 0) {
			const next = (at + by + hot.length + (at < 0 && by < 0 ? 1 : 0)) % hot.length;
			setAt(next);
			show(hot[next]!);
		}
	};
	const onKeyDown = (e: KeyboardEvent) => {
		if (!e.ctrlKey && !e.metaKey && !e.altKey && (e.key === "n" || e.key === "N")) {
			e.preventDefault();
			step(e.key === "n" ? 1 : -1);
		}
	};
	const most = { self: Math.max(...hot.map((i) => rows[i]!.self)), total: rows.reduce((m, r) => Math.max(m, r.total), 0) };
	const scale = scaleFor(most.self || most.total, unit);
	const [first, last] = visibleRows(view.top, view.height, ROW_PX, rows.length);
	return (
		<>
			<div class="code-steps">
				<button type="button" class="button" title="The next hottest (n)" onClick={() => step(1)}>
					{at < 0 ? "Hottest" : "Next hottest"}
				</button>
				{at >= 0 && (
					<span data-testid="code-place">
						{heads[0].toLowerCase()} {rows[hot[at]!]!.label}, {at + 1} of {hot.length}
					</span>
				)}
				{note}
			</div>
			<div class="code-scroll" ref={box} tabIndex={0} aria-label="Lines" role="region" onScroll={look} onKeyDown={onKeyDown}>
				<table class={`code-table ${heads[0] === "Line" ? "" : "asm"}`} aria-rowcount={rows.length + 1}>
					<thead>
						<tr>
							<th scope="col" class="code-value">
								Self<span class="head-unit">{scale.name}</span>
							</th>
							<th scope="col" class="code-value">
								Total<span class="head-unit">{scale.name}</span>
							</th>
							<th scope="col" class="code-line">
								{heads[0]}
							</th>
							<th scope="col">{heads[1]}</th>
						</tr>
					</thead>
					<tbody style={{ height: `${rows.length * ROW_PX}px` }}>
						{rows.slice(first, last).map((row, i) => (
							<tr
								key={first + i}
								aria-rowindex={first + i + 2}
								class={`${row.total > 0 ? "warm" : ""} ${hot[at] === first + i ? "here" : ""} ${begin > 0 && row.at === begin ? "begin" : ""} ${row.between ? "between" : ""}`}
								style={{ transform: `translateY(${(first + i) * ROW_PX}px)` }}
							>
								<Value value={row.self} most={most.self} whole={whole} scale={scale} unit={unit} />
								<Value value={row.total} most={most.total} whole={whole} scale={scale} unit={unit} />
								<td class="code-line">{row.label}</td>
								<td class="code-text">{row.text}</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
		</>
	);
}
