// SPDX-License-Identifier: Apache-2.0
/**
 * The whole graph, small, beside a graph that is much deeper than its window; shows the visible part, and
 * scrolls.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Paint } from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";
import { layoutFrames, newLayout } from "../model/layout.ts";
import { ROW_PX } from "./flame_scene.ts";

const WIDTH = 44;
/** A row is drawn at least this wide: else one deep stack would be as thin as a line. */
const FRAME_MIN = 6;
/** With fewer hidden rows it is not shown. */
const HIDDEN_MIN = 8;

/** The widest frame of each row below a node. */
function widest(flame: Flame, zoom: number, rows: number): Int32Array {
	const found = new Int32Array(rows).fill(-1);
	for (let i = zoom; i < flame.end[zoom]!; i++) {
		const depth = flame.depth[i]!;
		if (found[depth]! < 0 || flame.value[i]! > flame.value[found[depth]!]!) {
			found[depth] = i;
		}
	}
	return found;
}

/** Draws the part of the graph below `zoom`, as wide and high as the canvas. */
function draw(canvas: HTMLCanvasElement, flame: Flame, paint: Paint, zoom: number, rows: number): void {
	const { width, height } = canvas;
	const image = new ImageData(width, height);
	const pixels = new Uint32Array(image.data.buffer);
	const layout = newLayout();
	const x0 = flame.start[zoom]!;
	layoutFrames(flame, { x0, x1: x0 + flame.value[zoom]!, width, top: 0, bottom: rows - 1 }, layout);
	const put = (node: number, depth: number, left: number, right: number) => {
		const top = Math.floor((depth * height) / rows);
		const bottom = Math.max(top + 1, Math.floor(((depth + 1) * height) / rows));
		for (let y = top; y < bottom; y++) {
			pixels.fill(paint.full[node]!, y * width + left, y * width + right);
		}
	};
	const scale = width / flame.value[zoom]!;
	widest(flame, zoom, rows).forEach((node, depth) => {
		if (node >= 0 && flame.value[node]! * scale < FRAME_MIN) {
			const left = Math.min(Math.floor((flame.start[node]! - x0) * scale), width - FRAME_MIN);
			put(node, depth, left, left + FRAME_MIN);
		}
	});
	for (let k = 0; k < layout.count; k++) {
		const left = Math.round(layout.left[k]!);
		if (layout.node[k]! >= 0 && layout.right[k]! - layout.left[k]! >= 1) {
			put(layout.node[k]!, layout.depth[k]!, left, Math.max(Math.round(layout.right[k]!), left + 1));
		}
	}
	canvas.getContext("2d")!.putImageData(image, 0, 0);
}

/** Not shown if all or nearly all rows are visible. */
export function Minimap(props: {
	flame: Flame;
	paint: Paint;
	zoom: number;
	rows: number;
	scroll: { current: HTMLDivElement | null };
}) {
	const { flame, paint, zoom, rows, scroll } = props;
	const canvas = useRef<HTMLCanvasElement>(null);
	const [view, setView] = useState({ top: 0, height: 0 });
	useLayoutEffect(() => {
		const box = scroll.current!;
		const look = () => setView({ top: box.scrollTop, height: box.clientHeight });
		look();
		const observer = new ResizeObserver(look);
		observer.observe(box);
		box.addEventListener("scroll", look);
		return () => {
			observer.disconnect();
			box.removeEventListener("scroll", look);
		};
	}, []);
	const all = rows * ROW_PX;
	const shown = view.height > 0 && all > view.height + HIDDEN_MIN * ROW_PX;
	useEffect(() => {
		if (shown && canvas.current) {
			draw(canvas.current, flame, paint, zoom, rows);
		}
	}, [shown, flame, paint, zoom, rows, view.height]);
	if (!shown) {
		return null;
	}
	const go = (e: PointerEvent) => {
		const box = canvas.current!.getBoundingClientRect();
		scroll.current!.scrollTop = ((e.clientY - box.top) / box.height) * all - view.height / 2;
	};
	return (
		<div
			class="minimap"
			aria-hidden="true"
			title="The whole graph; click or drag to go there"
			onPointerDown={(e) => {
				e.currentTarget.setPointerCapture(e.pointerId);
				go(e);
			}}
			onPointerMove={(e) => e.buttons === 1 && go(e)}
		>
			<canvas ref={canvas} width={WIDTH} height={Math.round(view.height)} />
			<i style={{ top: `${(100 * view.top) / all}%`, height: `${(100 * view.height) / all}%` }} />
		</div>
	);
}
