// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Flame, Kind, nodeBinary, nodeName, nodeSource } from "../model/flame.ts";
import { formatShare, formatValue } from "../model/units.ts";

/** Where something floats, in CSS pixels of the viewport. */
export interface Point {
	x: number;
	y: number;
}

const KINDS = [
	"",
	"native",
	"kernel",
	"Python",
	"JVM",
	"JavaScript",
	"Ruby",
	"PHP",
	"Perl",
	".NET",
	"BEAM",
	"Go",
	"Rust",
	"LuaJIT",
	"JIT",
	"marker",
];

/** Kind of a node in words: "kernel", "native, inlined". */
export function kindText(f: Flame, node: number): string {
	const kind = KINDS[f.kind[node]!] ?? "";
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

function Line({ what, value, f, zoom }: { what: string; value: number; f: Flame; zoom: number }) {
	return (
		<tr>
			<th>{what}</th>
			<td>{formatValue(value, f.unit)}</td>
			<td>{formatShare(value, f.total)}</td>
			{zoom > 0 && <td>{formatShare(value, f.value[zoom]!)}</td>}
		</tr>
	);
}

/** What is known of a frame, beside the pointer. */
export function Tooltip(props: { flame: Flame; node: number; zoom: number; at: Point }) {
	const { flame: f, node, zoom, at } = props;
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
						{zoom > 0 && <th>of zoom</th>}
					</tr>
				</thead>
				<tbody>
					<Line what="Total" value={f.value[node]!} f={f} zoom={zoom} />
					<Line what="Self" value={f.self[node]!} f={f} zoom={zoom} />
				</tbody>
			</table>
		</div>
	);
}
