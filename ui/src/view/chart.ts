// SPDX-License-Identifier: Apache-2.0
/** The chart of uPlot: stepped areas or lines, a range that is dragged, and the one in force. */
import uPlot from "uplot";
import type { Grid } from "../model/series.ts";
import { stackUp } from "../model/series.ts";
import { formatClock, type Span, toLocalText } from "../model/time.ts";

/** Everything that is drawn. */
export interface ChartScene {
	grid: Grid;
	/** Multiplies the values of the grid. */
	factor: number;
	colours: string[];
	stacked: boolean;
	span: Span;
	select: Span | null;
	/** Line that stands out, or -1. */
	strong: number;
	axis: string;
	line: string;
	shade: string;
	accent: string;
	formatY: (value: number) => string;
}

/** What the chart tells. */
export interface ChartEvents {
	/** A range was dragged. */
	selected: (span: Span) => void;
	/** A double click. */
	reset: () => void;
	/** Index of the step under the pointer, or -1. */
	moved: (index: number) => void;
}

/** uPlot's stepped path closes each step at its own width. */
const stepped = uPlot.paths.stepped!({ align: 1 });

function withAlpha(hex: string, alpha: string): string {
	return hex + alpha;
}

function rows(scene: ChartScene): number[][] {
	const { grid, stacked, factor } = scene;
	const values = stacked ? stackUp(grid.lines) : grid.lines.map((l) => l.values);
	// one more point, so that the last step has its width too
	const close = (row: number[]) => [...row.map((v) => v * factor), (row.at(-1) ?? 0) * factor];
	const last = grid.timesS.at(-1) ?? 0;
	return [[...grid.timesS, last + grid.stepMs / 1000], ...values.map(close)];
}

function seriesOptions(scene: ChartScene): uPlot.Series[] {
	return scene.colours.map((colour, k) => {
		const dim = scene.strong >= 0 && scene.strong !== k;
		const options: uPlot.Series = {
			stroke: dim ? withAlpha(colour, "40") : colour,
			width: scene.strong === k ? 2 : 1,
			points: { show: false },
			paths: stepped,
		};
		if (scene.stacked) {
			options.fill = withAlpha(colour, dim ? "26" : "c0");
		}
		return options;
	});
}

/** A dragged stretch in instants, widened to whole steps. */
export function snap(fromMs: number, toMs: number, grid: Grid): Span {
	const first = (grid.timesS[0] ?? 0) * 1000;
	const { stepMs } = grid;
	const down = first + Math.floor((fromMs - first) / stepMs) * stepMs;
	const up = first + Math.ceil((toMs - first) / stepMs) * stepMs;
	return { fromMs: down, toMs: Math.max(up, down + stepMs) };
}

export class Chart {
	private plot: uPlot | null = null;
	private scene: ChartScene | null = null;
	private readonly root: HTMLElement;
	private readonly events: ChartEvents;

	constructor(root: HTMLElement, events: ChartEvents) {
		this.root = root;
		this.events = events;
	}

	destroy(): void {
		this.plot?.destroy();
		this.plot = null;
	}

	resize(): void {
		const { clientWidth: width, clientHeight: height } = this.root;
		if (this.plot && width > 0 && height > 0) {
			this.plot.setSize({ width, height });
		}
	}

	/** Draws a scene. Lines, colours or theme that changed make a new plot; data do not. */
	show(scene: ChartScene): void {
		const before = this.scene;
		this.scene = scene;
		const keep =
			this.plot &&
			before &&
			before.stacked === scene.stacked &&
			before.strong === scene.strong &&
			before.axis === scene.axis &&
			before.colours.join() === scene.colours.join();
		if (keep && this.plot) {
			this.plot.setData(rows(scene) as uPlot.AlignedData, true);
			return;
		}
		this.destroy();
		const { clientWidth: width, clientHeight: height } = this.root;
		this.plot = new uPlot(
			this.options(scene, Math.max(width, 50), Math.max(height, 50)),
			rows(scene) as uPlot.AlignedData,
			this.root,
		);
	}

	private options(scene: ChartScene, width: number, height: number): uPlot.Options {
		const grid = { stroke: scene.line, width: 1 };
		const font = "11px system-ui, sans-serif";
		const axis = { stroke: scene.axis, grid, ticks: { show: false }, font };
		return {
			width,
			height,
			padding: [8, 10, 0, 0],
			legend: { show: false },
			cursor: {
				y: false,
				points: { show: false },
				drag: { x: true, y: false, setScale: false },
				bind: {
					dblclick: () => () => {
						this.events.reset();
						return null;
					},
				},
			},
			scales: {
				x: { time: true, range: () => this.spanS() },
				y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
			},
			axes: [
				{ ...axis, size: 26, gap: 6, space: 70, values: timeLabels },
				{
					...axis,
					size: 52,
					gap: 6,
					space: 34,
					values: (_u, ticks) => ticks.map((v) => this.scene!.formatY(v)),
				},
			],
			series: [{}, ...seriesOptions(scene)],
			hooks: {
				setSelect: [(u) => this.dragged(u)],
				setCursor: [(u) => this.events.moved(this.indexAt(u))],
				drawClear: [(u) => this.drawSelect(u, false)],
				draw: [(u) => this.drawSelect(u, true)],
			},
		};
	}

	private spanS(): [number, number] {
		const { fromMs, toMs } = this.scene!.span;
		return [fromMs / 1000, toMs / 1000];
	}

	private indexAt(u: uPlot): number {
		const left = u.cursor.left ?? -1;
		if (left < 0 || !this.scene) {
			return -1;
		}
		const { timesS, stepMs } = this.scene.grid;
		const at = u.posToVal(left, "x");
		const i = Math.floor(((at - (timesS[0] ?? 0)) * 1000) / stepMs);
		return i >= 0 && i < timesS.length ? i : -1;
	}

	private dragged(u: uPlot): void {
		if (u.select.width < 3 || !this.scene) {
			return;
		}
		const from = u.posToVal(u.select.left, "x") * 1000;
		const to = u.posToVal(u.select.left + u.select.width, "x") * 1000;
		u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
		this.events.selected(snap(from, to, this.scene.grid));
	}

	/** Shades what lies outside the range in force, and draws its edges. */
	private drawSelect(u: uPlot, above: boolean): void {
		const select = this.scene?.select;
		if (!select || !above) {
			return;
		}
		const { ctx, bbox } = u;
		const end = bbox.left + bbox.width;
		const at = (ms: number) => Math.min(Math.max(u.valToPos(ms / 1000, "x", true), bbox.left), end);
		const from = at(select.fromMs);
		const to = at(select.toMs);
		ctx.save();
		ctx.fillStyle = this.scene!.shade;
		ctx.fillRect(bbox.left, bbox.top, from - bbox.left, bbox.height);
		ctx.fillRect(to, bbox.top, end - to, bbox.height);
		ctx.fillStyle = this.scene!.accent;
		const line = Math.max(1, Math.round(1.5 * (window.devicePixelRatio || 1)));
		ctx.fillRect(from - line / 2, bbox.top, line, bbox.height);
		ctx.fillRect(to - line / 2, bbox.top, line, bbox.height);
		ctx.restore();
	}
}

/** Labels of the time axis: the clock, with the day where it changes. */
function timeLabels(_u: uPlot, ticks: number[], _axis: number, _space: number, incr: number) {
	let day = "";
	return ticks.map((s) => {
		const text = toLocalText(s * 1000);
		const clock = incr >= 60 ? formatClock(s * 1000).slice(0, 5) : formatClock(s * 1000);
		const newDay = day !== "" && day !== text.slice(0, 10);
		day = text.slice(0, 10);
		return newDay || incr >= 86400 ? text.slice(5, 10) : clock;
	});
}
