// SPDX-License-Identifier: Apache-2.0
/** The calls of one row, and the tooltip of a call. */
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { nodeBinary, nodeName } from "../../model/flame.ts";
import { callAt, type Strips } from "../../model/strips.ts";
import { formatClock } from "../../model/time.ts";
import { formatValue } from "../../model/units.ts";
import { binaryText } from "../../model/words.ts";
import type { Label } from "../frame_label.ts";
import { type Point, placeNear } from "../Tooltip.tsx";
import { drawStrip, heightOf, LEVEL_PX, type StripScene } from "./strip_canvas.ts";

/** "15:04:05.123" */
export function clockText(ms: number): string {
	return `${formatClock(ms)}.${String(Math.floor(ms) % 1000).padStart(3, "0")}`;
}

/** The canvas of a row: dragging moves the window, a click chooses a call, the pointer shows its tooltip. */
export function StripRow(props: {
	scene: StripScene;
	width: number;
	moveBy: (ms: number) => void;
	toggle: () => void;
	hover: (node: number, at: Point) => void;
}) {
	const { scene, width, moveBy, toggle, hover } = props;
	const canvas = useRef<HTMLCanvasElement>(null);
	const labels = useMemo(() => new Map<number, Label>(), [scene.strips]);
	const drag = useRef<{ x: number; far: boolean } | null>(null);
	useLayoutEffect(() => {
		const begin = performance.now();
		drawStrip(canvas.current!, scene, width, window.devicePixelRatio || 1, labels);
		performance.mark("firn:strip", { detail: { ms: performance.now() - begin } });
	});
	const perPx = (scene.win.toMs - scene.win.fromMs) / Math.max(1, width);
	const look = (e: PointerEvent) => {
		const box = canvas.current!.getBoundingClientRect();
		const ms = scene.win.fromMs + (e.clientX - box.left) * perPx;
		const step = scene.open ? LEVEL_PX : box.height / Math.max(1, scene.row.depth);
		const node = callAt(scene.strips, scene.row, ms, Math.floor((e.clientY - box.top) / step));
		hover(node, { x: e.clientX, y: e.clientY });
	};
	return (
		<canvas
			ref={canvas}
			class="strip"
			style={{ height: `${heightOf(scene)}px` }}
			onPointerDown={(e) => {
				drag.current = { x: e.clientX, far: false };
				e.currentTarget.setPointerCapture(e.pointerId);
			}}
			onPointerMove={(e) => {
				const { current } = drag;
				if (current && (current.far || Math.abs(e.clientX - current.x) > 4)) {
					moveBy((current.x - e.clientX) * perPx);
					drag.current = { x: e.clientX, far: true };
					hover(-1, { x: 0, y: 0 });
				} else {
					look(e);
				}
			}}
			onPointerUp={(e) => {
				if (drag.current && !drag.current.far) {
					look(e);
					toggle();
				}
				drag.current = null;
			}}
			onPointerCancel={() => {
				drag.current = null;
			}}
			onPointerLeave={() => hover(-1, { x: 0, y: 0 })}
		/>
	);
}

/** The tooltip of a call. */
export function Tip({ strips, node, at }: { strips: Strips; node: number; at: Point }) {
	const box = useRef<HTMLDivElement>(null);
	const { flame } = strips;
	useLayoutEffect(() => placeNear(box.current!, at, 14));
	return (
		<div class="tooltip floating" ref={box} role="tooltip">
			<p class="tooltip-name">{nodeName(flame, node)}</p>
			<p>
				{binaryText(nodeBinary(flame, node))} · {clockText(strips.start[node]!)}, {formatValue(flame.value[node]!, flame.unit)}
			</p>
		</div>
	);
}
