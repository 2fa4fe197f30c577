// SPDX-License-Identifier: Apache-2.0
/** The canvas of the flame graph with its pointer, keyboard and transitions. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { usePlace } from "../app/place.ts";
import type { Paint, Theme } from "../model/colour.ts";
import { type Flame, nodeName } from "../model/flame.ts";
import { nextFocus } from "../model/focus.ts";
import { formatCount, formatShare, formatValue } from "../model/units.ts";
import { ROW_PX } from "./flame_renderer.ts";
import { Minimap } from "./Minimap.tsx";
import { useLongPress } from "./long_press.ts";
import { kindText, type Point, Tooltip } from "./Tooltip.tsx";
import { useRenderer } from "./use_renderer.ts";

/** Content and callbacks of the graph. */
export interface FlameGraphProps {
	flame: Flame;
	theme: Theme;
	/** Colours of the frames. */
	paint: Paint;
	zoom: number;
	/** Value of all samples; the graph may show a part of them. */
	total: number;
	/** Frames that keep their colour; null: all. */
	hit: Uint8Array | null;
	/** The root is at the bottom, callees are above it. */
	flip?: boolean;
	focus: number;
	setFocus: (node: number) => void;
	zoomTo: (node: number) => void;
	openMenu: (node: number, at: Point) => void;
	onHover: (node: number) => void;
	copy: (node: number) => void;
	/** Gets the magnification of the zoomed frame, as a power of two. */
	onMagnify?: (times: number) => void;
	/** Another key was pressed on a frame; returns whether it did something. */
	onKey?: (key: string, node: number) => boolean;
	/** The tooltip of a frame, and a sentence for screen readers; the usual ones by default. */
	tip?: (node: number, at: Point) => ComponentChildren;
	say?: (node: number) => string;
}

/** The deepest row below a node. */
function deepestBelow(f: Flame, node: number): number {
	if (node === 0) {
		return f.deepest;
	}
	let deepest = f.depth[node]!;
	for (let i = node; i < f.end[node]!; i++) {
		deepest = Math.max(deepest, f.depth[i]!);
	}
	return deepest;
}

/** A sentence about a frame, for screen readers. */
export function describe(f: Flame, node: number, all: number): string {
	const share = formatShare(f.value[node]!, all);
	const total = `${formatValue(f.value[node]!, f.unit)}, ${share} of all`;
	const self = `self ${formatValue(f.self[node]!, f.unit)}`;
	return `${nodeName(f, node)}, ${kindText(f, node)}, total ${total}, ${self}, depth ${f.depth[node]}`;
}

/** The graph itself. */
export function FlameGraph(props: FlameGraphProps) {
	const { flame, zoom, focus, setFocus, zoomTo, openMenu, onHover } = props;
	const graph = useRenderer(props);
	const liveId = props.flip ? "flame-live-callers" : "flame-live";
	const { scroll, canvas, overlay, renderer, marks, draw, drawOverlay, times } = graph;
	const [hover, setHoverNode] = usePlace(flame);
	const [at, setAt] = useState<Point>({ x: 0, y: 0 });
	const setHover = (node: number, where = at) => {
		setHoverNode(node);
		setAt(where);
	};
	const rows = useMemo(
		() => (props.flip ? flame.deepest : deepestBelow(flame, zoom)) + 1,
		[flame, zoom, props.flip],
	);
	useEffect(() => setHoverNode(-1), [zoom]);
	useLayoutEffect(() => {
		marks.current = { hover, focus };
		drawOverlay();
	});
	const pointAt = (e: MouseEvent): number => {
		const box = canvas.current!.getBoundingClientRect();
		return renderer.current!.nodeAt(e.clientX - box.left, e.clientY - box.top);
	};
	const onMove = (e: MouseEvent) => {
		const box = canvas.current!.getBoundingClientRect();
		const run = renderer.current!.runAt(e.clientX - box.left, e.clientY - box.top) !== null;
		overlay.current!.title = run ? "Frames too small to draw: click to make them wider" : "";
		const node = run ? -1 : pointAt(e);
		setHover(node, { x: e.clientX, y: e.clientY });
		onHover(node);
	};
	const leave = () => {
		setHover(-1);
		onHover(-1);
	};
	const below = (node: number): Point => {
		const box = canvas.current!.getBoundingClientRect();
		const rect = renderer.current!.rectOf(node);
		return { x: box.left + rect.left + 8, y: box.top + rect.top + ROW_PX };
	};
	const moveFocus = (node: number) => {
		setFocus(node);
		const view = scroll.current!;
		const top = renderer.current!.topOf(node);
		if (top < view.scrollTop || top + ROW_PX > view.scrollTop + view.clientHeight) {
			view.scrollTop = Math.max(0, top - view.clientHeight / 3);
		}
		setHover(node, below(node));
	};
	const menuAt = (x: number, y: number) => {
		const box = canvas.current!.getBoundingClientRect();
		const node = renderer.current!.nodeAt(x - box.left, y - box.top);
		if (node >= 0) {
			setHover(-1);
			setFocus(node);
			openMenu(node, { x, y });
		}
	};
	const press = useLongPress(menuAt);
	const click = (e: MouseEvent) => {
		if (press.wasLong()) {
			return;
		}
		const box = canvas.current!.getBoundingClientRect();
		const node = pointAt(e);
		if (!graph.openRun(e.clientX - box.left, e.clientY - box.top) && node >= 0) {
			setFocus(node);
			zoomTo(node);
		}
	};
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) {
			return;
		}
		const at = focus >= 0 ? focus : zoom;
		const turned: Record<string, string> = props.flip ? { ArrowUp: "ArrowDown", ArrowDown: "ArrowUp" } : {};
		const next = nextFocus(flame, at, turned[e.key] ?? e.key, focus >= 0);
		if (next >= 0) {
			moveFocus(next);
		} else if (e.key === "Enter") {
			zoomTo(at);
		} else if (e.key === "Backspace" || e.key === "-") {
			zoomTo(flame.parent[zoom]!);
		} else if (e.key === "m" || e.key === "ContextMenu") {
			openMenu(at, below(at));
		} else if (e.key === "c") {
			props.copy(at);
		} else if (e.key === "Escape" && times > 1) {
			graph.reset();
			e.stopPropagation();
		} else if (!props.onKey?.(e.key, at)) {
			return;
		}
		e.preventDefault();
	};
	return (
		<div class="flame-view">
			<div
				class="flame-scroll"
				ref={scroll}
				tabIndex={0}
				role="application"
				aria-label="Flame graph. Arrow keys move between frames, Enter zooms, Backspace goes up."
				aria-describedby={liveId}
				onScroll={draw}
				onKeyDown={onKeyDown}
				onBlur={leave}
			>
				<div class="flame-stage" style={{ height: `${rows * ROW_PX + (props.flip ? 0 : 4)}px` }}>
					<div class="flame-sticky">
						<canvas class="flame-canvas" ref={canvas} />
						<canvas
							class={`flame-overlay ${hover >= 0 ? "over-frame" : ""}`}
							ref={overlay}
							onMouseMove={onMove}
							onMouseLeave={leave}
							onClick={click}
							onContextMenu={(e) => {
								e.preventDefault();
								menuAt(e.clientX, e.clientY);
							}}
							onPointerDown={(e) => e.pointerType === "touch" && press.start(e)}
							onPointerMove={(e) => e.pointerType === "touch" && press.move(e)}
							onPointerUp={press.stop}
							onPointerCancel={press.stop}
						/>
					</div>
				</div>
				{times > 1 && (
					<button
						type="button"
						class="button magnified"
						title="Ctrl and the wheel magnify, Shift and the wheel move, Esc goes back"
						onClick={graph.reset}
					>
						{times < 10 ? times.toFixed(1) : formatCount(times)} times wider: back
					</button>
				)}
				<div id={liveId} class="visually-hidden" aria-live="polite">
					{focus < 0 ? "" : props.say ? props.say(focus) : describe(flame, focus, props.total)}
				</div>
				{hover >= 0 &&
					(props.tip ? (
						props.tip(hover, at)
					) : (
						<Tooltip flame={flame} node={hover} zoom={zoom} total={props.total} at={at} />
					))}
			</div>
			{!props.flip && <Minimap flame={flame} paint={props.paint} zoom={zoom} rows={rows} scroll={scroll} />}
		</div>
	);
}
