// SPDX-License-Identifier: Apache-2.0
/**
 * The chart over time: stepped areas or lines on one canvas; a second one is for the pointer. A sum over ten
 * seconds is drawn ten seconds wide.
 */
import { timeLabels, timeTicks, valueTicks } from "../model/axis.ts";
import { type Grid, snapSpan, stackUp } from "../model/series.ts";
import type { Span } from "../model/time.ts";
import type { Mark } from "../model/marks.ts";
import { drawRanges } from "./chart_ranges.ts";

/** Everything that is drawn. */
export interface ChartScene {
	grid: Grid;
	/** Factor for the values of the grid. */
	factor: number;
	colours: string[];
	stacked: boolean;
	span: Span;
	select: Span | null;
	/** The range of the base. */
	base: Span | null;
	marks: readonly Mark[];
	baseColour: string;
	/** The highlighted line, or -1. */
	strong: number;
	axis: string;
	line: string;
	shade: string;
	accent: string;
	/** Ticks are powers of two. */
	binary: boolean;
	formatY: (ticks: number[]) => string[];
}

/** Callbacks of the chart. */
export interface ChartEvents {
	/** A range was dragged, with Shift or without. */
	selected: (span: Span, shift: boolean) => void;
	/** A double click. */
	reset: () => void;
	/** Index of the step under the pointer, or -1. */
	moved: (index: number) => void;
}

/** Room around the plot, in CSS pixels. */
const LEFT_MIN = 36;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;
/** Shorter drags are clicks, in CSS pixels. */
const DRAG_MIN_PX = 4;
const FONT = "11px system-ui, sans-serif";

export class Chart {
	private scene: ChartScene | null = null;
	private edges: number[][] = [];
	private max = 1;
	private left = LEFT_MIN;
	private ticks: { value: number; text: string }[] = [];
	private width = 0;
	private height = 0;
	private pointer = -1;
	private dragFrom = -1;
	private readonly root: HTMLElement;
	private readonly events: ChartEvents;
	private readonly canvas = document.createElement("canvas");
	private readonly overlay = document.createElement("canvas");

	constructor(root: HTMLElement, events: ChartEvents) {
		this.root = root;
		this.events = events;
		root.append(this.canvas, this.overlay);
		this.overlay.className = "chart-overlay";
		this.overlay.addEventListener("pointerdown", (e) => this.down(e));
		this.overlay.addEventListener("pointermove", (e) => this.move(e.offsetX));
		this.overlay.addEventListener("pointerup", (e) => this.up(e));
		this.overlay.addEventListener("pointerleave", () => this.move(-1));
		this.overlay.addEventListener("dblclick", () => events.reset());
	}

	/** Fits the canvases to the available room. */
	resize(): void {
		const { clientWidth: width, clientHeight: height } = this.root;
		const ratio = window.devicePixelRatio || 1;
		this.width = width;
		this.height = height;
		for (const canvas of [this.canvas, this.overlay]) {
			canvas.width = Math.round(width * ratio);
			canvas.height = Math.round(height * ratio);
			canvas.style.width = `${width}px`;
			canvas.style.height = `${height}px`;
			canvas.getContext("2d")!.setTransform(ratio, 0, 0, ratio, 0, 0);
		}
		this.draw();
	}

	show(scene: ChartScene): void {
		const { grid, factor, stacked } = scene;
		this.scene = scene;
		const rows = stacked ? stackUp(grid.lines) : grid.lines.map((l) => l.values);
		this.edges = rows.map((row) => row.map((v) => v * factor));
		this.max = 0;
		for (const row of this.edges) {
			this.max = row.reduce((a, b) => Math.max(a, b), this.max);
		}
		this.max *= 1.06;
		this.draw();
	}

	private x(ms: number): number {
		const { fromMs, toMs } = this.scene!.span;
		return this.left + ((ms - fromMs) / (toMs - fromMs)) * (this.width - this.left - RIGHT);
	}

	private y(value: number): number {
		return this.height - BOTTOM - (value / (this.max || 1)) * (this.height - TOP - BOTTOM);
	}

	private msAt(x: number): number {
		const { fromMs, toMs } = this.scene!.span;
		const share = (x - this.left) / (this.width - this.left - RIGHT);
		return fromMs + Math.min(Math.max(share, 0), 1) * (toMs - fromMs);
	}

	/** Chooses the lines of the axis, and makes room for the widest label. */
	private fitAxis(ctx: CanvasRenderingContext2D, scene: ChartScene): void {
		const wanted = Math.max(2, (this.height - TOP - BOTTOM) / 34);
		const values = valueTicks(this.max, wanted, scene.binary);
		const texts = scene.formatY(values);
		this.ticks = values.map((value, i) => ({ value, text: texts[i]! }));
		ctx.font = FONT;
		const widest = Math.max(...texts.map((text) => ctx.measureText(text).width));
		this.left = Math.max(LEFT_MIN, Math.ceil(widest) + 14);
	}

	private draw(): void {
		const scene = this.scene;
		if (!scene || this.width <= 2 * LEFT_MIN) {
			return;
		}
		this.fitAxis(this.canvas.getContext("2d")!, scene);
		const ctx = this.canvas.getContext("2d")!;
		ctx.clearRect(0, 0, this.width, this.height);
		this.drawAxes(ctx, scene);
		ctx.save();
		ctx.beginPath();
		ctx.rect(this.left, 0, this.width - this.left - RIGHT, this.height - BOTTOM + 1);
		ctx.clip();
		for (let k = this.edges.length - 1; k >= 0; k--) {
			this.drawLine(ctx, scene, k);
		}
		const x = (ms: number) => this.x(ms);
		drawRanges(ctx, scene, x, this.left, this.width - RIGHT, this.height - BOTTOM);
		ctx.restore();
		this.drawOverlay();
	}

	private drawAxes(ctx: CanvasRenderingContext2D, scene: ChartScene): void {
		ctx.font = FONT;
		ctx.fillStyle = scene.axis;
		ctx.strokeStyle = scene.line;
		ctx.lineWidth = 1;
		ctx.textAlign = "right";
		ctx.textBaseline = "middle";
		ctx.beginPath();
		for (const { value, text } of this.ticks) {
			const y = Math.round(this.y(value)) + 0.5;
			ctx.moveTo(this.left, y);
			ctx.lineTo(this.width - RIGHT, y);
			ctx.fillText(text, this.left - 8, y);
		}
		ctx.stroke();
		ctx.textAlign = "center";
		ctx.textBaseline = "alphabetic";
		const { fromMs, toMs } = scene.span;
		const wanted = Math.max(2, (this.width - this.left - RIGHT) / 84);
		for (const { ms, label } of timeLabels(timeTicks(fromMs, toMs, wanted))) {
			const x = this.x(ms);
			if (x + ctx.measureText(label).width / 2 <= this.width) {
				ctx.fillText(label, x, this.height - 5);
			}
		}
	}

	/** The upper edge of a line as a path; `back`: from right to left. */
	private trace(ctx: CanvasRenderingContext2D, row: readonly number[], back: boolean): void {
		const { timesS, stepMs } = this.scene!.grid;
		for (let n = 0; n < row.length; n++) {
			const i = back ? row.length - 1 - n : n;
			const left = this.x(timesS[i]! * 1000);
			const right = this.x(timesS[i]! * 1000 + stepMs);
			const y = this.y(row[i]!);
			ctx.lineTo(back ? right : left, y);
			ctx.lineTo(back ? left : right, y);
		}
	}

	private drawLine(ctx: CanvasRenderingContext2D, scene: ChartScene, k: number): void {
		const edge = this.edges[k]!;
		const dim = scene.strong >= 0 && scene.strong !== k;
		if (scene.stacked) {
			ctx.globalAlpha = dim ? 0.22 : 0.8;
			ctx.fillStyle = scene.colours[k]!;
			ctx.beginPath();
			this.trace(ctx, edge, false);
			this.trace(ctx, this.edges[k + 1] ?? edge.map(() => 0), true);
			ctx.closePath();
			ctx.fill();
		}
		ctx.globalAlpha = dim ? 0.3 : 1;
		ctx.strokeStyle = scene.colours[k]!;
		ctx.lineWidth = scene.stacked ? 1 : scene.strong === k ? 2.5 : 1.5;
		ctx.lineJoin = "round";
		this.strokeEdge(ctx, edge, scene.grid.lines[k]!.values);
		ctx.globalAlpha = 1;
	}

	/** The upper edge as a line, only where there is something below it. */
	private strokeEdge(ctx: CanvasRenderingContext2D, edge: number[], values: number[]): void {
		const { timesS, stepMs } = this.scene!.grid;
		ctx.beginPath();
		for (let i = 0; i < edge.length; i++) {
			const left = this.x(timesS[i]! * 1000);
			const y = this.y(edge[i]!);
			if (i > 0 && values[i - 1]! > 0) {
				ctx.lineTo(left, y);
			} else {
				ctx.moveTo(left, y);
			}
			if (values[i]! > 0) {
				ctx.lineTo(this.x(timesS[i]! * 1000 + stepMs), y);
			}
		}
		ctx.stroke();
	}

	private drawOverlay(): void {
		const ctx = this.overlay.getContext("2d")!;
		ctx.clearRect(0, 0, this.width, this.height);
		if (!this.scene || this.pointer < this.left || this.pointer > this.width - RIGHT) {
			return;
		}
		const height = this.height - BOTTOM;
		ctx.fillStyle = this.scene.accent;
		if (this.dragFrom >= 0) {
			const { fromMs, toMs } = this.dragged(this.pointer);
			ctx.globalAlpha = 0.2;
			ctx.fillRect(this.x(fromMs), 0, this.x(toMs) - this.x(fromMs), height);
		}
		ctx.globalAlpha = 0.7;
		ctx.fillRect(Math.round(this.pointer), 0, 1, height);
		ctx.globalAlpha = 1;
	}

	private dragged(x: number): Span {
		const a = this.msAt(Math.min(this.dragFrom, x));
		const b = this.msAt(Math.max(this.dragFrom, x));
		return snapSpan(a, b, this.scene!.grid);
	}

	private down(e: PointerEvent): void {
		if (e.button === 0 && this.scene) {
			this.overlay.setPointerCapture(e.pointerId);
			this.dragFrom = e.offsetX;
		}
	}

	private move(x: number): void {
		this.pointer = this.dragFrom >= 0 ? Math.min(Math.max(x, this.left), this.width - RIGHT) : x;
		this.drawOverlay();
		if (!this.scene || x < this.left || x > this.width - RIGHT) {
			this.events.moved(-1);
			return;
		}
		const { timesS, stepMs } = this.scene.grid;
		const index = Math.floor((this.msAt(x) - (timesS[0] ?? 0) * 1000) / stepMs);
		this.events.moved(index >= 0 && index < timesS.length ? index : -1);
	}

	private up(e: PointerEvent): void {
		const x = e.offsetX;
		const meant = this.dragFrom >= 0 && Math.abs(x - this.dragFrom) >= DRAG_MIN_PX;
		const span = meant ? this.dragged(x) : null;
		this.dragFrom = -1;
		this.drawOverlay();
		if (span) {
			this.events.selected(span, e.shiftKey);
		}
	}
}
