// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Flame, Kind, nodeBinary, nodeName, nodeSource } from "../model/flame.ts";
import { kindName } from "../model/kinds.ts";
import { formatShare, formatValue } from "../model/units.ts";

/** A position in CSS pixels of the viewport. */
export interface Point {
	x: number;
	y: number;
}

/** Kind of a node in words: "kernel", "native, inlined". */
export function kindText(f: Flame, node: number): string {
	const kind = kindName(f.kind[node]!);
	return f.inlined[node] ? `${kind}, inlined` : kind;
}

/** Moves an element next to a point so that it stays inside the window. */
export function placeNear(element: HTMLElement, at: Point, gapPx: number): void {
	const { offsetWidth: w, offsetHeight: h } = element;
	const right = at.x + gapPx + w <= window.innerWidth - 8;
	const below = at.y + gapPx + h <= window.innerHeight - 8;
	const x = right ? at.x + gapPx : Math.max(8, at.x - gapPx - w);
	const y = below ? at.y + gapPx : Math.max(8, at.y - gapPx - h);
	element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

function Line(props: { what: string; value: number; unit: string; total: number; part: number }) {
	const { what, value, unit, total, part } = props;
	return (
		<tr>
			<th>{what}</th>
			<td>{formatValue(value, unit)}</td>
			<td>{formatShare(value, total)}</td>
			{part < total && <td>{formatShare(value, part)}</td>}
		</tr>
	);
}

/** The tooltip of a frame. `total` is the value of all samples; the graph may show a part of them. */
export function Tooltip(props: {
	flame: Flame;
	node: number;
	zoom: number;
	total: number;
	at: Point;
}) {
	const { flame: f, node, zoom, total, at } = props;
	const part = f.value[zoom]!;
	const line = { unit: f.unit, total, part };
	const element = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		if (element.current) {
			placeNear(element.current, at, 14);
		}
	});
	const binary = nodeBinary(f, node);
	const source = nodeSource(f, node);
	return (
		<div class="tooltip" ref={element} role="tooltip">
			<div class="tooltip-name">{nodeName(f, node)}</div>
			{f.kind[node] === Kind.marker && (
				<div class="tooltip-where">Not a function: why the stack ends here</div>
			)}
			{(binary || source) && (
				<div class="tooltip-where">
					{binary && <span>{binary}</span>}
					{source && <span>{source}</span>}
					{f.kind[node]! > 1 || f.inlined[node] ? <span>{kindText(f, node)}</span> : null}
				</div>
			)}
			<table>
				<thead>
					<tr>
						<th />
						<th />
						<th>of all</th>
						{part < total && <th>{zoom > 0 ? "of zoom" : "of shown"}</th>}
					</tr>
				</thead>
				<tbody>
					<Line what="Total" value={f.value[node]!} {...line} />
					<Line what="Self" value={f.self[node]!} {...line} />
				</tbody>
			</table>
		</div>
	);
}
