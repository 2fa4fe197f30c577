// SPDX-License-Identifier: Apache-2.0
/**
 * Paints a flame graph on a canvas. Frames become pixels of a strip with one line for each row, and the browser
 * stretches the lines over the height of the rows; so the time depends on the size of the canvas and not on the
 * number of frames. Text is drawn only where it fits. An overlay canvas is for the pointer.
 */
import { nodeAt, nodeName } from "../model/flame.ts";
import { type Layout, layoutFrames, NAMED_PX, newLayout } from "../model/layout.ts";
import { drawHatches, markEqual } from "./flame_marks.ts";
import { type Extent, GAP_PX, ROW_PX, type Scene } from "./flame_scene.ts";
import { type Label, labelIn, newLabel } from "./frame_label.ts";

export { ROW_PX } from "./flame_scene.ts";

const TEXT_PX = 11.5;
const PAD_PX = 5;
/** Matching frames narrower than the first are drawn dark, and at least as wide as the second. */
const HIT_NARROW_PX = 6;
const HIT_LEAST_PX = 3;
/** The label of a run of frames that are too narrow to be drawn. */
const REST = newLabel("frames too small to draw", "small");

export class FlameRenderer {
	/** CSS pixels. */
	width = 0;
	height = 0;
	/** First visible pixel row, in CSS pixels. */
	scrollPx = 0;
	extent: Extent = { x0: 0, x1: 1 };
	/** Time of the last painting, in milliseconds. */
	lastMs = 0;
	private ratio = 1;
	private scene: Scene | null = null;
	private readonly layout: Layout = newLayout();
	/** A line of pixels for each visible row. */
	private image: ImageData | null = null;
	private lines = new Uint32Array(0);
	private charPx = 7;
	private labels: Label[] = [];
	private readonly canvas: HTMLCanvasElement;
	private readonly overlay: HTMLCanvasElement;
	private readonly ctx: CanvasRenderingContext2D;
	private readonly over: CanvasRenderingContext2D;
	private readonly strip = document.createElement("canvas");
	private readonly stripCtx: CanvasRenderingContext2D;

	constructor(canvas: HTMLCanvasElement, overlay: HTMLCanvasElement) {
		this.canvas = canvas;
		this.overlay = overlay;
		this.ctx = canvas.getContext("2d", { alpha: false })!;
		this.over = overlay.getContext("2d")!;
		// written by this code only, so it is kept in main memory
		this.stripCtx = this.strip.getContext("2d", { alpha: false, willReadFrequently: true })!;
	}

	/** Sizes in CSS pixels; `ratio` device pixels each. */
	resize(width: number, height: number, ratio: number): void {
		if (this.width === width && this.height === height && this.ratio === ratio) {
			return;
		}
		this.width = width;
		this.height = height;
		this.ratio = ratio;
		for (const canvas of [this.canvas, this.overlay]) {
			canvas.width = Math.max(1, Math.round(width * ratio));
			canvas.height = Math.max(1, Math.round(height * ratio));
			canvas.style.width = `${width}px`;
			canvas.style.height = `${height}px`;
		}
		this.strip.width = this.canvas.width;
		this.strip.height = Math.ceil(height / ROW_PX) + 1;
		this.image = this.stripCtx.createImageData(this.strip.width, this.strip.height);
		this.lines = new Uint32Array(this.image.data.buffer);
	}

	show(scene: Scene): void {
		if (this.scene?.flame !== scene.flame) {
			this.labels = [];
		}
		this.scene = scene;
	}

	/** The node under a point of the canvas in CSS pixels, or -1. */
	nodeAt(x: number, y: number): number {
		if (!this.scene || this.width === 0) {
			return -1;
		}
		const { x0, x1 } = this.extent;
		const depth = this.rowOf(Math.floor((y + this.scrollPx) / ROW_PX));
		return nodeAt(this.scene.flame, x0 + (x / this.width) * (x1 - x0), depth);
	}

	/** The row of a depth, and the depth of a row. */
	private rowOf(depth: number): number {
		const { flip, flame } = this.scene!;
		return flip ? Math.max(flame.deepest, Math.floor(this.height / ROW_PX) - 1) - depth : depth;
	}

	/** The top of a node's row, in CSS pixels of the scrolled content. */
	topOf(node: number): number {
		return this.rowOf(this.scene!.flame.depth[node]!) * ROW_PX;
	}

	/** The run of frames that are too narrow to be drawn at a point, on the value axis; or null. */
	runAt(x: number, y: number): Extent | null {
		const depth = Math.floor((y + this.scrollPx) / ROW_PX);
		const { layout, ratio } = this;
		for (let k = 0; k < layout.count; k++) {
			const left = layout.left[k]! / ratio;
			const right = layout.right[k]! / ratio;
			if (layout.node[k]! < 0 && layout.depth[k] === depth && x >= left && x < right) {
				const scale = (this.extent.x1 - this.extent.x0) / this.width;
				return { x0: this.extent.x0 + left * scale, x1: this.extent.x0 + right * scale };
			}
		}
		return null;
	}

	/** Rectangle of a node in CSS pixels of the canvas, cut to its sides. */
	rectOf(node: number): { left: number; top: number; width: number } {
		const f = this.scene!.flame;
		const scale = this.width / (this.extent.x1 - this.extent.x0);
		const left = Math.max(0, (f.start[node]! - this.extent.x0) * scale);
		const right = (f.start[node]! + f.value[node]! - this.extent.x0) * scale;
		return {
			left,
			top: this.topOf(node) - this.scrollPx,
			width: Math.min(right, this.width) - left,
		};
	}

	/** Paints everything but the overlay. */
	draw(): void {
		const scene = this.scene;
		if (!scene || !this.image || this.width === 0) {
			return;
		}
		const begin = performance.now();
		const row = Math.round(ROW_PX * this.ratio);
		const top = Math.floor(this.scrollPx / ROW_PX);
		const rows = Math.ceil((this.scrollPx + this.height) / ROW_PX) - top;
		const ends = [this.rowOf(top), this.rowOf(top + rows - 1)];
		const window = { ...this.extent, width: this.canvas.width, top: Math.min(...ends), bottom: Math.max(...ends) };
		layoutFrames(scene.flame, window, this.layout);
		if (scene.flip) {
			const { depth, count } = this.layout;
			depth.subarray(0, count).forEach((d, k, all) => {
				all[k] = this.rowOf(d);
			});
		}
		this.fillLines(scene, top, rows);
		this.spread(scene, row, top, rows);
		drawHatches(this.ctx, scene, this.layout, row, this.ratio, this.scrollPx);
		this.drawTexts(scene);
		this.lastMs = performance.now() - begin;
	}

	/** Whether a rectangle belongs to a caller of the zoomed frame. */
	private outside(scene: Scene): (k: number) => boolean {
		const row = this.rowOf(scene.flame.depth[scene.zoom]!);
		const { depth } = this.layout;
		return scene.flip ? (k) => depth[k]! > row : (k) => depth[k]! < row;
	}

	/** One line of pixels for each visible row. */
	private fillLines(scene: Scene, top: number, rows: number): void {
		const width = this.canvas.width;
		const { lines, layout } = this;
		const { paint, hit, colours } = scene;
		const isOutside = this.outside(scene);
		lines.fill(colours.backPixel, 0, width * rows);
		const gap = Math.max(1, Math.round(this.ratio));
		for (let k = 0; k < layout.count; k++) {
			const node = layout.node[k]!;
			const left = Math.round(layout.left[k]!);
			let right = Math.round(layout.right[k]!);
			if (right - left > 3 * gap && right < width) {
				right -= gap;
			}
			const line = (layout.depth[k]! - top) * width;
			let pixel = colours.rest;
			if (node >= 0) {
				const isDim = (hit && !hit[node]) || isOutside(k);
				pixel = isDim ? paint.dim[node]! : paint.full[node]!;
			}
			lines.fill(pixel, line + left, line + Math.max(right, left + 1));
		}
		if (hit) {
			this.strengthen(hit, colours.hit, top);
		}
	}

	/** Makes narrow matching frames visible: dark, and wider than they are. */
	private strengthen(hit: Uint8Array, pixel: number, top: number): void {
		const width = this.canvas.width;
		const { lines, layout, ratio } = this;
		for (let k = 0; k < layout.count; k++) {
			const left = Math.round(layout.left[k]!);
			const own = layout.right[k]! - layout.left[k]!;
			if (own < HIT_NARROW_PX * ratio && hit[layout.node[k]!] === 1) {
				const line = (layout.depth[k]! - top) * width;
				const most = Math.round(Math.max(own - ratio, HIT_LEAST_PX * ratio));
				lines.fill(pixel, line + left, line + Math.min(left + most, width));
			}
		}
	}

	/** Stretches each line over the height of its row. */
	private spread(scene: Scene, row: number, top: number, rows: number): void {
		const { ctx, strip, ratio } = this;
		const { width, height } = this.canvas;
		const gap = Math.max(1, Math.round(GAP_PX * ratio));
		const begin = -Math.round((this.scrollPx - top * ROW_PX) * ratio);
		this.stripCtx.putImageData(this.image!, 0, 0, 0, 0, width, rows);
		ctx.imageSmoothingEnabled = false;
		ctx.drawImage(strip, 0, 0, width, rows, 0, begin, width, rows * row);
		ctx.fillStyle = scene.colours.back;
		for (let y = begin + row; y <= height; y += row) {
			ctx.fillRect(0, y - gap, width, gap);
		}
		const end = begin + rows * row;
		ctx.fillRect(0, end, width, Math.max(0, height - end));
	}

	private label(node: number): Label {
		const f = this.scene!.flame;
		const id = f.name[node]!;
		let label = this.labels[id];
		if (!label) {
			const name = nodeName(f, node);
			label = newLabel(name);
			this.labels[id] = label;
		}
		return label;
	}

	private drawTexts(scene: Scene): void {
		const { layout, ctx, ratio } = this;
		ctx.font = `${TEXT_PX * ratio}px ${scene.colours.font}`;
		ctx.textBaseline = "middle";
		this.charPx = ctx.measureText("0123456789").width / 10;
		const least = NAMED_PX * ratio;
		const pad = PAD_PX * ratio;
		const middle = ((ROW_PX - GAP_PX) / 2 + 0.5) * ratio;
		const isOutside = this.outside(scene);
		let style = "";
		for (let k = 0; k < layout.count; k++) {
			const node = layout.node[k]!;
			const width = layout.right[k]! - layout.left[k]!;
			if (width < least) {
				continue;
			}
			const dim = node < 0 || (scene.hit && !scene.hit[node]) || isOutside(k);
			const wanted = dim ? scene.colours.textDim : scene.colours.text;
			if (wanted !== style) {
				ctx.fillStyle = wanted;
				style = wanted;
			}
			const room = Math.floor((width - 2 * pad) / this.charPx);
			const text = labelIn(node < 0 ? REST : this.label(node), room);
			const y = (layout.depth[k]! * ROW_PX - this.scrollPx) * ratio + middle;
			ctx.fillText(text, Math.round(layout.left[k]! + pad), Math.round(y));
		}
	}

	/** Outlines: the frame under the pointer, and the one that has the keyboard's focus. */
	drawOverlay(hover: number, focus: number): void {
		const { over, ratio, scene } = this;
		over.setTransform(1, 0, 0, 1, 0, 0);
		over.clearRect(0, 0, this.overlay.width, this.overlay.height);
		if (!scene) {
			return;
		}
		over.setTransform(ratio, 0, 0, ratio, 0, 0);
		const frame = (node: number, colour: string, line: number) => {
			const { left, top, width } = this.rectOf(node);
			if (width <= 0 || top + ROW_PX < 0 || top > this.height) {
				return;
			}
			over.strokeStyle = colour;
			over.lineWidth = line;
			const half = line / 2;
			over.strokeRect(
				left + half,
				top + half,
				Math.max(width - 1 - line, 1),
				ROW_PX - GAP_PX - line,
			);
		};
		if (hover > 0) {
			markEqual(over, scene, this.layout, hover, ratio, this.scrollPx);
		}
		if (hover >= 0) {
			frame(hover, scene.colours.hover, 1.5);
		}
		if (focus >= 0) {
			frame(focus, scene.colours.focus, 2);
		}
	}
}
