// SPDX-License-Identifier: Apache-2.0
/** The chart of values over time, split by a label. Dragging selects the range of graph and table. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { serverNow } from "../api/clock.ts";
import type { Data } from "../app/data.ts";
import { useMarks } from "../app/marks.ts";
import { useSlots } from "../app/palette.ts";
import { SERIES_MAX } from "../app/series.ts";
import { go, stateNow } from "../app/store.ts";
import { cssValue } from "../app/theme.ts";
import { lineColour, type Theme } from "../model/colour.ts";
import type { Mark } from "../model/marks.ts";
import { splitValue } from "../model/names.ts";
import { isAwaited } from "../model/retry.ts";
import { withMatcher } from "../model/selector.ts";
import { type Grid, gridOf, type Line, meanOf } from "../model/series.ts";
import { formatSpan, type Span, toApiTime } from "../model/time.ts";
import { meaningOf } from "../model/types.ts";
import { formatRate, formatTicks, type Rate, rateOf } from "../model/units.ts";
import type { State } from "../model/url.ts";
import { baseName } from "../model/words.ts";
import { Chart } from "./chart.ts";
import { Cut } from "./Cut.tsx";
import { InForce, moveSelect } from "./InForce.tsx";
import { Segments } from "./Segments.tsx";

function nameOf(line: Line, by: string): string {
	if (line.other) {
		return "everything else";
	}
	return line.value || (by === "" ? "all" : `no ${by}`);
}

function LegendRow(props: {
	line: Line;
	by: string;
	colour: string;
	value: string;
	state: State;
	hover: (on: boolean) => void;
}) {
	const { line, by, colour, value, state, hover } = props;
	const name = nameOf(line, by);
	const choose = (e: MouseEvent) => {
		const op = e.altKey ? "!=" : "=";
		go({ matchers: withMatcher(state.matchers, by, line.value, op), zoom: "" });
	};
	return (
		<li>
			<button
				type="button"
				class="legend-row"
				disabled={line.other || by === ""}
				title={
					line.other
						? `The sum of what is beyond the ${SERIES_MAX} largest`
						: `${name}\nClick: only this   Alt+click: all but this`
				}
				onClick={choose}
				onMouseEnter={() => hover(true)}
				onMouseLeave={() => hover(false)}
				onFocus={() => hover(true)}
				onBlur={() => hover(false)}
			>
				<span class="swatch" style={{ background: colour }} />
				<span class="legend-name">
					<Cut parts={splitValue(name)} />
				</span>
				<span class="legend-value">{value}</span>
			</button>
		</li>
	);
}

/** The part of a comparison in the chart. */
export interface TimelineBase {
	span: Span;
	/** Gets the dragged range; undefined: dragging selects this side's range. */
	choose: ((span: Span) => void) | undefined;
	/** A control in the bar above the chart. */
	control: ComponentChildren;
}

const select = (span: Span) => go({ select: span });

/** Compares with a second range that was dragged in the chart. */
export function compareWith(span: Span): void {
	const baseRange = { from: toApiTime(span.fromMs), to: toApiTime(span.toMs) };
	const there = stateNow().page === "compare";
	go({ page: "compare", baseRange, shift: "", ...(there ? {} : { zoom: "", sort: "" }) });
}

function useChart(
	state: State,
	theme: Theme,
	grid: Grid | null,
	span: Span,
	side: Span | null,
	rate: Rate,
	colours: string[],
	strong: number,
	base: TimelineBase | null,
	marks: readonly Mark[],
) {
	const root = useRef<HTMLDivElement>(null);
	const chart = useRef<Chart | null>(null);
	const [cursor, setCursor] = useState(-1);
	const choose = useRef(base?.choose);
	choose.current = base?.choose;
	useLayoutEffect(() => {
		chart.current = new Chart(root.current!, {
			selected: (span, shift) => (shift ? compareWith(span) : (choose.current ?? select)(span)),
			reset: () => stateNow().select && go({ select: null }),
			moved: setCursor,
		});
		const observer = new ResizeObserver(() => chart.current?.resize());
		observer.observe(root.current!);
		return () => observer.disconnect();
	}, []);
	useEffect(() => {
		if (grid && grid.timesS.length > 0) {
			chart.current!.show({
				grid,
				factor: rate.factor,
				colours,
				stacked: !state.lines,
				span,
				select: side,
				base: base?.span ?? null,
				marks,
				baseColour: cssValue("--base"),
				strong,
				axis: cssValue("--text-2"),
				line: cssValue("--line"),
				shade: cssValue("--shade"),
				accent: cssValue("--accent"),
				binary: rate.label.startsWith("bytes"),
				formatY: (ticks) => formatTicks(ticks, rate),
			});
		}
	}, [grid, theme, state.lines, side, colours.join(), strong, base?.span.fromMs, base?.span.toMs, marks]);
	return { root, cursor };
}

/** The upper half of the page. */
export function Timeline(props: {
	state: State;
	data: Data;
	theme: Theme;
	base: TimelineBase | null;
}) {
	const { state, data, theme, base } = props;
	const answer = data.series.data;
	const { labels } = data;
	const [strong, setStrong] = useState(-1);
	const grid = useMemo(
		() =>
			answer &&
			gridOf(
				answer.series,
				answer.by[0] ?? "",
				answer.step,
				answer.span.fromMs,
				answer.span.toMs,
				data.type?.delta ?? true,
			),
		[answer, data.type?.delta],
	);
	const lines = grid?.lines ?? [];
	const values = lines.filter((l) => !l.other).map((l) => l.value);
	const wordOf = (value: string) => {
		const short = baseName(value);
		return values.filter((v) => baseName(v) === short).length > 1 ? value : short;
	};
	const slots = useSlots(values.map(wordOf));
	const colours = lines.map((l) =>
		lineColour(l.other ? -1 : (slots.get(wordOf(l.value)) ?? 0), theme),
	);
	const rate = rateOf(
		data.type?.type ?? "",
		answer?.unit ?? data.type?.unit ?? "",
		data.type?.delta ?? true,
		answer?.step ?? 10_000,
	);
	const span = answer?.span ?? data.span;
	const marks = useMarks(span, answer?.step ?? 10_000, data.question?.query ?? "", labels);
	const side = state.select ?? answer?.side ?? null;
	const { root, cursor } = useChart(state, theme, grid, span, side, rate, colours, strong, base, marks);
	const recorded = { fromMs: Math.max(span.fromMs, data.type?.first ?? 0), toMs: span.toMs };
	const valueText = (line: Line): string => {
		const value =
			cursor >= 0 ? line.values[cursor]! : meanOf(grid!, line, side ?? recorded);
		return formatRate(value * rate.factor, rate);
	};
	const by = answer?.by[0] ?? "";
	const choices = labels.includes(data.by) || data.by === "" ? labels : [data.by, ...labels];
	return (
		<section class={`panel timeline ${base ? "of-both" : ""}`} aria-label="Over time" data-marks={marks.map((m) => m.text).join(", ")}>
			<div class="timeline-bar">
				<h2 title={data.type?.type}>{meaningOf(data.type?.type ?? "").name}</h2>
				<label class="by">
					by
					<select value={data.by} onChange={(e) => go({ by: e.currentTarget.value })}>
						{choices.map((l) => (
							<option key={l} value={l}>
								{l}
							</option>
						))}
						<option value="">nothing</option>
					</select>
				</label>
				<Segments
					label="Form of the chart"
					value={state.lines ? "lines" : "stack"}
					choices={[
						{ value: "stack", name: "Stacked" },
						{ value: "lines", name: "Lines" },
					]}
					choose={(v) => go({ lines: v === "lines" }, "replace")}
				/>
				{base?.control}
				<InForce state={state} data={data} rate={rate} />
				<span class="legend-head">
					{cursor >= 0 && grid
						? formatSpan(stepSpan(grid, cursor), serverNow())
						: meanText(rate)}
				</span>
			</div>
			<div class="timeline-body">
				<div
					class={`chart ${isAwaited(answer, data.series.error) ? "waits" : ""}`}
					ref={root}
					tabIndex={0}
					role="application"
					data-error={answer || data.series.error?.status === 400 ? undefined : data.series.error?.message}
					aria-label={`Use over time by ${by || "nothing"}. Arrow keys move the selected range.`}
					data-from={toApiTime(span.fromMs)}
					onKeyDown={(e) => grid && moveSelect(e, grid, span)}
				/>
				<ul class="legend" aria-label={`Values of ${by}`}>
					{lines.map((line, k) => (
						<LegendRow
							key={line.other ? "\nother" : line.value}
							line={line}
							by={by}
							colour={colours[k]!}
							value={valueText(line)}
							state={state}
							hover={(on) => setStrong(on ? k : -1)}
						/>
					))}
				</ul>
			</div>
		</section>
	);
}

/** The meaning of the legend's values; bytes and counts have their unit with them. */
function meanText({ label }: Rate): string {
	return label === "cores" || label === "at once" ? `mean, ${label}` : "mean";
}

function stepSpan(grid: Grid, index: number): Span {
	const fromMs = grid.timesS[index]! * 1000;
	return { fromMs, toMs: fromMs + grid.stepMs };
}
