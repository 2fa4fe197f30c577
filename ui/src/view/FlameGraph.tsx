// SPDX-License-Identifier: Apache-2.0
/** The canvas of the flame graph with its pointer, keyboard and transitions. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePlace } from "../app/place.ts";
import { cssValue, hexPixel } from "../app/theme.ts";
import { paintFlame, type Slots, type Theme } from "../model/colour.ts";
import { type Flame, nodeName } from "../model/flame.ts";
import { nextFocus } from "../model/focus.ts";
import { formatShare, formatValue } from "../model/units.ts";
import type { Words } from "../model/words.ts";
import { type Colours, FlameRenderer, ROW_PX } from "./flame_renderer.ts";
import { kindText, type Point, Tooltip } from "./Tooltip.tsx";
import { Transition } from "./transition.ts";

/** What the graph shows and tells. */
export interface FlameGraphProps {
	flame: Flame;
	theme: Theme;
	words: Words;
	slots: Slots;
	zoom: number;
	/** Value of all samples; the graph may be about a part of them. */
	total: number;
	/** Frames that keep their colour; null: all. */
	hit: Uint8Array | null;
	focus: number;
	setFocus: (node: number) => void;
	zoomTo: (node: number) => void;
	openMenu: (node: number, at: Point) => void;
	onHover: (node: number) => void;
	copy: (node: number) => void;
}

function readColours(): Colours {
	return {
		back: cssValue("--panel"),
		backPixel: hexPixel(cssValue("--panel")),
		text: cssValue("--frame-text"),
		textDim: cssValue("--frame-text-dim"),
		textMark: cssValue("--text"),
		line: cssValue("--line"),
		hatch: cssValue("--hatch"),
		rest: hexPixel(cssValue("--frame-rest")),
		focus: cssValue("--accent"),
		hover: cssValue("--text"),
		font: cssValue("--mono"),
	};
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

/** One sentence about a frame, for those who listen. */
export function describe(f: Flame, node: number, all: number): string {
	const share = formatShare(f.value[node]!, all);
	const total = `${formatValue(f.value[node]!, f.unit)}, ${share} of all`;
	const self = `self ${formatValue(f.self[node]!, f.unit)}`;
	return `${nodeName(f, node)}, ${kindText(f, node)}, total ${total}, ${self}, depth ${f.depth[node]}`;
}

/** Renderer and transition for the canvases of this component. */
function useRenderer(props: FlameGraphProps) {
	const scroll = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const overlay = useRef<HTMLCanvasElement>(null);
	const renderer = useRef<FlameRenderer | null>(null);
	const transition = useRef<Transition | null>(null);
	const marks = useRef({ hover: -1, focus: -1 });
	const drawOverlay = () => renderer.current?.drawOverlay(marks.current.hover, marks.current.focus);
	const draw = () => {
		const r = renderer.current;
		if (r && scroll.current) {
			r.scrollPx = scroll.current.scrollTop;
			r.draw();
			drawOverlay();
			performance.mark("firn:flame", { detail: { ms: r.lastMs } });
		}
	};
	const { flame, words, slots, theme, zoom, hit } = props;
	const paint = useMemo(
		() => paintFlame(flame, words, theme, slots),
		[flame, words, theme, slots],
	);
	const colours = useMemo(readColours, [theme]);
	useLayoutEffect(() => {
		renderer.current = new FlameRenderer(canvas.current!, overlay.current!);
		transition.current = new Transition(scroll.current!, renderer.current, draw);
		const fit = () => {
			const { clientWidth, clientHeight } = scroll.current!;
			renderer.current!.resize(clientWidth, clientHeight, window.devicePixelRatio || 1);
			draw();
		};
		fit();
		const observer = new ResizeObserver(fit);
		observer.observe(scroll.current!);
		return () => {
			observer.disconnect();
			transition.current?.stop();
		};
	}, []);
	const shown = useRef<Flame | null>(null);
	useLayoutEffect(() => {
		renderer.current!.show({ flame, paint, colours, hit, zoom });
		const target = { x0: flame.start[zoom]!, x1: flame.start[zoom]! + flame.value[zoom]! };
		const animate = shown.current === flame;
		const follow = animate || shown.current === null;
		shown.current = flame;
		transition.current!.go(target, flame.depth[zoom]! * ROW_PX, animate, follow);
	}, [flame, paint, colours, hit, zoom]);
	return { scroll, canvas, overlay, renderer, marks, draw, drawOverlay };
}

/** The graph itself. */
export function FlameGraph(props: FlameGraphProps) {
	const { flame, zoom, focus, setFocus, zoomTo, openMenu, onHover } = props;
	const { scroll, canvas, overlay, renderer, marks, draw, drawOverlay } = useRenderer(props);
	const [hover, setHoverNode] = usePlace(flame);
	const [at, setAt] = useState<Point>({ x: 0, y: 0 });
	const setHover = (node: number, where = at) => {
		setHoverNode(node);
		setAt(where);
	};
	const rows = useMemo(() => deepestBelow(flame, zoom) + 1, [flame, zoom]);
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
		const node = pointAt(e);
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
		const top = flame.depth[node]! * ROW_PX;
		if (top < view.scrollTop || top + ROW_PX > view.scrollTop + view.clientHeight) {
			view.scrollTop = Math.max(0, top - view.clientHeight / 3);
		}
		setHover(node, below(node));
	};
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) {
			return;
		}
		const at = focus >= 0 ? focus : zoom;
		const next = nextFocus(flame, at, e.key, focus >= 0);
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
		} else {
			return;
		}
		e.preventDefault();
	};
	return (
		<div
			class="flame-scroll"
			ref={scroll}
			tabIndex={0}
			role="application"
			aria-label="Flame graph. Arrow keys move between frames, Enter zooms, Backspace goes up."
			aria-describedby="flame-live"
			onScroll={draw}
			onKeyDown={onKeyDown}
			onBlur={leave}
		>
			<div class="flame-stage" style={{ height: `${rows * ROW_PX + 4}px` }}>
				<div class="flame-sticky">
					<canvas class="flame-canvas" ref={canvas} />
					<canvas
						class={`flame-overlay ${hover >= 0 ? "over-frame" : ""}`}
						ref={overlay}
						onMouseMove={onMove}
						onMouseLeave={leave}
						onClick={(e) => {
							const node = pointAt(e);
							if (node >= 0) {
								setFocus(node);
								zoomTo(node);
							}
						}}
						onContextMenu={(e) => {
							const node = pointAt(e);
							if (node >= 0) {
								e.preventDefault();
								setHover(-1);
								setFocus(node);
								openMenu(node, { x: e.clientX, y: e.clientY });
							}
						}}
					/>
				</div>
			</div>
			<div id="flame-live" class="visually-hidden" aria-live="polite">
				{focus >= 0 ? describe(flame, focus, props.total) : ""}
			</div>
			{hover >= 0 && (
				<Tooltip flame={flame} node={hover} zoom={zoom} total={props.total} at={at} />
			)}
		</div>
	);
}
