// SPDX-License-Identifier: Apache-2.0
/** Renderer and transitions for the canvases of the flame graph, and the magnifier. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cssValue, hexPixel } from "../app/theme.ts";
import { magnify, type Part, WHOLE } from "../model/magnify.ts";
import { type Flame, nodeKey } from "../model/flame.ts";
import type { FlameGraphProps } from "./FlameGraph.tsx";
import { FlameRenderer } from "./flame_renderer.ts";
import type { Colours, Extent } from "./flame_scene.ts";
import { Transition } from "./transition.ts";

/** Colours of the style sheet, as they are now. */
export function readColours(): Colours {
	return {
		back: cssValue("--panel"),
		backPixel: hexPixel(cssValue("--panel")),
		text: cssValue("--frame-text"),
		textDim: cssValue("--frame-text-dim"),
		line: cssValue("--line"),
		hatch: cssValue("--hatch"),
		rest: hexPixel(cssValue("--frame-rest")),
		hit: hexPixel(cssValue("--text")),
		focus: cssValue("--accent"),
		hover: cssValue("--text"),
		font: cssValue("--mono"),
	};
}

/** Renderer and transition for the canvases of this component. */
export function useRenderer(props: FlameGraphProps) {
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
	const { flame, paint, theme, zoom, hit } = props;
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
	// the visible part of the zoomed frame's width, also when a newer graph has moved it
	const part = useRef<Part>(WHOLE);
	const [times, setTimes] = useState(1);
	const step = Math.round(Math.log2(times));
	useEffect(() => props.onMagnify?.(2 ** step), [step]);
	const partExtent = (): Extent => {
		const x0 = flame.start[zoom]!;
		const width = flame.value[zoom]!;
		return { x0: x0 + part.current.from * width, x1: x0 + part.current.to * width };
	};
	const look = (wanted: Part, animate: boolean) => {
		part.current = wanted;
		// a move changes only the last digits: only the canvas is painted again
		setTimes((was) => {
			const now = 1 / (wanted.to - wanted.from);
			return Math.abs(now / was - 1) < 1e-9 ? was : now;
		});
		transition.current!.go(partExtent(), 0, animate, false);
	};
	const shown = useRef<{ flame: Flame; key: string } | null>(null);
	useLayoutEffect(() => {
		const flip = props.flip === true;
		renderer.current!.show({ flame, paint, colours, hit, zoom, flip });
		const key = nodeKey(flame, zoom);
		if (shown.current && shown.current.key !== key) {
			part.current = WHOLE;
			setTimes(1);
		}
		const animate = shown.current?.flame === flame;
		const follow = animate || shown.current === null;
		shown.current = { flame, key };
		transition.current!.go(partExtent(), renderer.current!.topOf(zoom), animate, follow && !props.flip);
		if (props.flip && !animate) {
			// the root is the lowest row
			scroll.current!.scrollTop = scroll.current!.scrollHeight;
		}
	}, [flame, paint, colours, hit, zoom]);
	const wheel = useRef((_: WheelEvent) => {});
	wheel.current = (e) => {
		const { left, width } = canvas.current!.getBoundingClientRect();
		const next = magnify(part.current, (e.clientX - left) / width, e, width);
		if (next) {
			e.preventDefault();
			look(next, false);
		}
	};
	useLayoutEffect(() => {
		const listen = (e: WheelEvent) => wheel.current(e);
		scroll.current!.addEventListener("wheel", listen, { passive: false });
	}, []);
	/** Zooms to the run of frames at a point that are too narrow to be drawn; returns whether there is one. */
	const openRun = (x: number, y: number): boolean => {
		const run = renderer.current!.runAt(x, y);
		if (!run) {
			return false;
		}
		const x0 = flame.start[zoom]!;
		const width = flame.value[zoom]!;
		look({ from: (run.x0 - x0) / width, to: (run.x1 - x0) / width }, true);
		return true;
	};
	const reset = () => look(WHOLE, true);
	return { scroll, canvas, overlay, renderer, marks, draw, drawOverlay, times, openRun, reset };
}

