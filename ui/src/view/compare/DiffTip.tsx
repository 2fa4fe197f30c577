// SPDX-License-Identifier: Apache-2.0
/** The tooltip of a frame with values of both sides. */
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Diff } from "../../model/diff.ts";
import { nodeBinary, nodeName, nodeSource } from "../../model/flame.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { formatChange, GONE, NEW, UNKNOWN } from "../../model/verdict.ts";
import { placeNear, type Point } from "../Tooltip.tsx";

function verdictText(verdict: number): string {
	if (verdict === UNKNOWN) {
		return "Too few samples to tell: chance alone may do this";
	}
	return verdict === NEW ? "New: the base does not have it" : verdict === GONE ? "Gone: only the base has it" : "";
}

/** The change of a pair, scaled like the comparison. */
function changeOf(d: Diff, a: number, b: number): string {
	return formatChange(a, b * d.scale);
}

/** A sentence for screen readers. */
export function sayDiff(d: Diff, node: number, verdict: number): string {
	const [a, b] = [d.value[0][node]!, d.value[1][node]!];
	const sides = `this ${formatShare(a, d.total[0])}, base ${formatShare(b, d.total[1])}`;
	const note = verdictText(verdict) || changeOf(d, a, b);
	return `${nodeName(d.flame, node)}, total: ${sides}, ${note}, depth ${d.flame.depth[node]}`;
}

function Rows({ what, a, b, diff }: { what: string; a: number; b: number; diff: Diff }) {
	const { unit } = diff.flame;
	return (
		<>
			<tr>
				<th>{what}</th>
				<td>{formatShare(a, diff.total[0])}</td>
				<td>{formatShare(b, diff.total[1])}</td>
				<td>{diff.absolute ? "" : changeOf(diff, a, b)}</td>
			</tr>
			<tr>
				<th />
				<td>{formatValue(a, unit)}</td>
				<td>{formatValue(b, unit)}</td>
				<td>{diff.absolute ? changeOf(diff, a, b) : ""}</td>
			</tr>
		</>
	);
}

/** The tooltip of a comparison. */
export function DiffTip(props: { diff: Diff; node: number; verdict: number; at: Point }) {
	const { diff, node, verdict, at } = props;
	const element = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => placeNear(element.current!, at, 14));
	const f = diff.flame;
	const note = verdictText(verdict);
	const where = [nodeBinary(f, node), nodeSource(f, node)].filter(Boolean);
	return (
		<div class="tooltip" ref={element} role="tooltip">
			<div class="tooltip-name">{nodeName(f, node)}</div>
			{note && <div class="tooltip-note">{note}</div>}
			<div class="tooltip-where">
				{where.map((text) => (
					<span key={text}>{text}</span>
				))}
			</div>
			<table>
				<thead>
					<tr>
						<th />
						<th>this</th>
						<th>base</th>
						<th>change</th>
					</tr>
				</thead>
				<tbody>
					<Rows what="Total" a={diff.value[0][node]!} b={diff.value[1][node]!} diff={diff} />
					<Rows what="Self" a={diff.self[0][node]!} b={diff.self[1][node]!} diff={diff} />
				</tbody>
			</table>
		</div>
	);
}
