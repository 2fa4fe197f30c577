// SPDX-License-Identifier: Apache-2.0
/** The call graph: a box for each function, a line for each call, as thick as its share. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Call, callGraph, type CallNode } from "../../model/callgraph.ts";
import { type Slots, type Theme, toHex, wordColour } from "../../model/colour.ts";
import type { Flame } from "../../model/flame.ts";
import { type Layout, layout } from "../../model/layers.ts";
import { fitName } from "../../model/names.ts";
import type { Matcher } from "../../model/search.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { binaryText, type Words } from "../../model/words.ts";
import { functionKey } from "../frame_menu.ts";
import type { Point } from "../Tooltip.tsx";

/** CSS pixels at a zoom of 1. */
const BOX = { width: 196, height: 46 };
const STEP = { x: 214, y: 104 };
const EDGE = 16;
const ZOOMS = [0.4, 0.55, 0.75, 1, 1.3];

interface CallsProps {
	flame: Flame;
	zoom: number;
	callers: boolean;
	words: Words;
	slots: Slots;
	theme: Theme;
	matcher: Matcher | null;
	mark: string;
	choose: (name: string) => void;
	openMenu: (name: string, binary: string, at: Point) => void;
}

const boxAt = (l: Layout, i: number) => ({
	x: EDGE + l.x[i]! * STEP.x - BOX.width / 2,
	y: EDGE + l.layer[i]! * STEP.y,
});

/** A line from the lower edge of the caller to the upper edge of the called, through its bends. */
function pathOf(l: Layout, call: Call, i: number): string {
	const from = boxAt(l, call.from);
	const to = boxAt(l, call.to);
	const points = [
		{ x: from.x + BOX.width / 2, y: from.y + BOX.height },
		...l.bends[i]!.map((b) => ({ x: EDGE + b.x * STEP.x, y: EDGE + b.layer * STEP.y + BOX.height / 2 })),
		{ x: to.x + BOX.width / 2, y: to.y },
	];
	let path = `M${points[0]!.x} ${points[0]!.y}`;
	for (let k = 1; k < points.length; k++) {
		const [a, b] = [points[k - 1]!, points[k]!];
		// a call that goes back up leaves at the side
		const bow = b.y > a.y ? (b.y - a.y) / 2 : 60;
		path += `C${a.x} ${a.y + bow} ${b.x} ${b.y - bow} ${b.x} ${b.y}`;
	}
	return path;
}

function Box(props: { node: CallNode; at: { x: number; y: number }; whole: number; unit: string; calls: CallsProps; dim: boolean }) {
	const { node, at, whole, unit, calls, dim } = props;
	const kind = node.kernel ? "kernel" : "native";
	const { word, kernel } = calls.words.ofRow({ name: node.name, binary: node.binary, kind });
	const share = whole > 0 ? node.self / whole : 0;
	const figures = `self ${formatShare(node.self, whole)}, total ${formatShare(node.total, whole)}`;
	const menu = (x: number, y: number) => calls.openMenu(node.name, node.binary, { x, y });
	return (
		<g
			class={`call-box ${dim ? "dim" : ""} ${node.name === calls.mark ? "on" : ""}`}
			transform={`translate(${at.x} ${at.y})`}
			tabindex={0}
			role="group"
			aria-roledescription="function"
			aria-label={`${node.name}, ${binaryText(node.binary)}, ${figures}`}
			onClick={() => calls.choose(node.name)}
			onContextMenu={(e) => {
				e.preventDefault();
				menu(e.clientX, e.clientY);
			}}
			onKeyDown={(e) => {
				if (e.ctrlKey || e.metaKey || e.altKey) {
					return;
				}
				if (e.key === "Enter" || e.key === "m" || e.key === "ContextMenu") {
					const box = e.currentTarget.getBoundingClientRect();
					e.preventDefault();
					menu(box.left + 12, box.bottom);
				} else if (functionKey(calls.flame, e.key, node.name, node.binary)) {
					e.preventDefault();
				}
			}}
		>
			<title>{`${node.name}\n${node.binary}\nself ${formatValue(node.self, unit)}, total ${formatValue(node.total, unit)}`}</title>
			<rect width={BOX.width} height={BOX.height} rx="5" fill={toHex(wordColour(word, kernel, calls.theme, calls.slots))} />
			<rect class="call-self" y={BOX.height - 4} width={Math.min(1, share) * BOX.width} height="4" />
			<text x="9" y="19">
				{fitName(node.name, 25)}
			</text>
			<text class="call-figures" x="9" y="35">
				{figures}
			</text>
		</g>
	);
}

/** The picture in a box that scrolls. */
export function CallGraphView(props: CallsProps) {
	const { flame, zoom, callers, matcher } = props;
	const graph = useMemo(() => callGraph(flame, zoom, callers), [flame, zoom, callers]);
	const places = useMemo(() => layout(graph.nodes.length, graph.calls), [graph]);
	const [size, setSize] = useState(2);
	const box = useRef<HTMLDivElement>(null);
	const whole = flame.value[zoom]!;
	const width = 2 * EDGE + places.width * STEP.x;
	const height = 2 * EDGE + (places.layers - 1) * STEP.y + BOX.height;
	const scale = ZOOMS[size]!;
	useLayoutEffect(() => {
		// the function with the largest value is visible first
		const first = graph.nodes.length > 0 ? boxAt(places, 0).x + BOX.width / 2 : 0;
		box.current!.scrollLeft = first * scale - box.current!.clientWidth / 2;
	}, [flame.unit, size]);
	const isDim = (i: number) => matcher !== null && !matcher(graph.nodes[i]!.name);
	return (
		<div class="calls">
			<div class="calls-bar">
				<span>
					{graph.nodes.length} functions that cost most
					{graph.less > 0 && ", smaller ones and small calls left out"}. A thicker line: more of the time.
				</span>
				<button type="button" class="button square" aria-label="Smaller" title="Smaller" disabled={size === 0} onClick={() => setSize(size - 1)}>
					−
				</button>
				<button
					type="button"
					class="button square"
					aria-label="Larger"
					title="Larger"
					disabled={size === ZOOMS.length - 1}
					onClick={() => setSize(size + 1)}
				>
					+
				</button>
			</div>
			<div class="calls-scroll" ref={box} tabIndex={0} role="region" aria-label="Call graph">
				<svg width={width * scale} height={height * scale} viewBox={`0 0 ${width} ${height}`} data-testid="calls">
					<defs>
						<marker id="call-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
							<path d="M0 0 8 4 0 8z" />
						</marker>
					</defs>
					{graph.calls.map((call, i) => (
						<path
							key={`${call.from} ${call.to}`}
							class={`call-line ${isDim(call.from) && isDim(call.to) ? "dim" : ""}`}
							d={pathOf(places, call, i)}
							stroke-width={(1 + 9 * (whole > 0 ? call.total / whole : 0)).toFixed(2)}
							marker-end="url(#call-end)"
						>
							<title>{`${graph.nodes[call.from]!.name} → ${graph.nodes[call.to]!.name}: ${formatShare(call.total, whole)}`}</title>
						</path>
					))}
					{graph.nodes.map((node, i) => (
						<Box key={`${node.name}\n${node.binary}`} node={node} at={boxAt(places, i)} whole={whole} unit={flame.unit} calls={props} dim={isDim(i)} />
					))}
				</svg>
			</div>
		</div>
	);
}
