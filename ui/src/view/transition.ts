// SPDX-License-Identifier: Apache-2.0
/** Moves the window of a flame graph to a target. */
import { type FlameRenderer, ROW_PX } from "./flame_renderer.ts";
import type { Extent } from "./flame_scene.ts";

const LENGTH_MS = 180;
const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");

/** 0..1 to 0..1, quick at first. */
export function ease(t: number): number {
	return 1 - (1 - t) ** 3;
}

/** The scroll position that shows a row and the rows below it, in CSS pixels. */
export function scrollFor(rowPx: number, scrollPx: number, heightPx: number): number {
	const seen = rowPx >= scrollPx && rowPx <= scrollPx + heightPx * 0.55;
	return seen ? scrollPx : Math.max(0, rowPx - 2 * ROW_PX);
}

export class Transition {
	private frame = 0;
	private readonly scroll: HTMLElement;
	private readonly renderer: FlameRenderer;
	private readonly draw: () => void;

	constructor(scroll: HTMLElement, renderer: FlameRenderer, draw: () => void) {
		this.scroll = scroll;
		this.renderer = renderer;
		this.draw = draw;
	}

	stop(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
	}

	/** `rowPx`: where the row of the new root is; it is scrolled to if `follow`. */
	go(target: Extent, rowPx: number, animate: boolean, follow: boolean): void {
		this.stop();
		const from = { ...this.renderer.extent };
		const same = from.x0 === target.x0 && from.x1 === target.x1;
		if (!animate || same || reduced.matches) {
			this.renderer.extent = target;
			if (follow && !same) {
				this.scroll.scrollTop = scrollFor(rowPx, this.scroll.scrollTop, this.scroll.clientHeight);
			}
			this.draw();
			return;
		}
		const scrollFrom = this.scroll.scrollTop;
		const scrollTo = scrollFor(rowPx, scrollFrom, this.scroll.clientHeight);
		const begin = performance.now();
		const step = () => {
			const t = Math.min(1, (performance.now() - begin) / LENGTH_MS);
			const k = ease(t);
			this.renderer.extent =
				t === 1
					? target
					: {
							x0: from.x0 + (target.x0 - from.x0) * k,
							x1: from.x1 + (target.x1 - from.x1) * k,
						};
			this.scroll.scrollTop = scrollFrom + (scrollTo - scrollFrom) * k;
			this.draw();
			this.frame = t < 1 ? requestAnimationFrame(step) : 0;
		};
		step();
	}
}
