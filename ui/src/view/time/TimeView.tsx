// SPDX-License-Identifier: Apache-2.0
/** The flame chart: a row for each thread, or each value of a label, with its calls one after the other. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { getChart } from "../../api/client.ts";
import type { Data } from "../../app/data.ts";
import { useReading } from "../../app/hold.ts";
import { go } from "../../app/store.ts";
import { useQuery } from "../../app/use_query.ts";
import { paintFlame, type Paint, type Slots, type Theme } from "../../model/colour.ts";
import { magnify } from "../../model/magnify.ts";
import type { Matcher } from "../../model/search.ts";
import { withMatcher } from "../../model/selector.ts";
import { filterStrips } from "../../model/strip_filter.ts";
import { layStrips, type Strip, type Strips } from "../../model/strips.ts";
import { formatClock, type Span, toApiTime } from "../../model/time.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import type { State } from "../../model/url.ts";
import { binaryText, Words } from "../../model/words.ts";
import { Loading } from "../Empty.tsx";
import type { Point } from "../Tooltip.tsx";
import { readColours } from "../use_renderer.ts";
import { CLOSED_PX } from "./strip_canvas.ts";
import { clockText, StripRow, Tip } from "./StripRow.tsx";
import { usePrograms } from "./use_programs.ts";
import { NARROWEST_MS, useAsked, useWindow } from "./use_window.ts";

/** Width of the names beside the rows, in CSS pixels. */
const NAME_PX = 170;
/** The most rows. */
const ROWS_MAX = 50;

interface TimeProps {
	data: Data;
	state: State;
	theme: Theme;
	slots: Slots;
	split: string;
	matcher: Matcher | null;
}

/** A length of time in the unit that suits it. */
function lengthText(ms: number): string {
	return formatValue(ms * 1e6, "nanoseconds");
}

/** Lines and times below the rows. */
function Axis({ win }: { win: Span }) {
	const marks = [0, 0.25, 0.5, 0.75, 1];
	const span = win.toMs - win.fromMs;
	const text = (ms: number) => (span < 20_000 ? clockText(ms) : formatClock(ms));
	return (
		<div class="time-axis" aria-hidden="true">
			{marks.map((share) => (
				<span key={share} style={{ left: `${share * 100}%` }}>
					{text(win.fromMs + share * span)}
				</span>
			))}
		</div>
	);
}

/** The rows, with their names. */
function Rows(props: TimeProps & { strips: Strips; win: ReturnType<typeof useWindow>; by: string; programs: Map<string, string> }) {
	const { strips, theme, slots, split, state, matcher, by } = props;
	const { win, moveBy } = props.win;
	const { flame } = strips;
	const box = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(0);
	const [height, setHeight] = useState(0);
	const [open, setOpen] = useState<string | null>(null);
	const [tip, setTip] = useState<{ node: number; at: Point }>({ node: -1, at: { x: 0, y: 0 } });
	const paint: Paint = useMemo(() => paintFlame(flame, new Words(flame, split), theme, slots), [flame, split, theme, slots]);
	const hit = useMemo(() => {
		const names = matcher && Uint8Array.from(flame.strings, (s) => (s !== "" && matcher(s) ? 1 : 0));
		return names && Uint8Array.from(flame.name, (name) => names[name]!);
	}, [flame, matcher]);
	const colours = useMemo(readColours, [theme]);
	useLayoutEffect(() => {
		const fit = () => {
			setWidth(box.current!.querySelector(".strip-room")?.clientWidth ?? 0);
			setHeight(box.current!.clientHeight);
		};
		fit();
		const observer = new ResizeObserver(fit);
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, [strips]);
	const there = strips.rows.filter((row) => row.value === open || (row.fromMs < win.toMs && row.toMs > win.fromMs));
	const shown = there.slice(0, ROWS_MAX);
	// few rows share the available room; on a phone the name is above each row
	const aside = width > 0 && width + NAME_PX > (box.current?.clientWidth ?? 0) ? NAME_PX / 5 : 1;
	const closedPx = Math.max(CLOSED_PX, Math.floor(height / Math.max(1, shown.length)) - aside);
	const nameOf = (row: Strip) => row.value || (by === "" ? "all" : `no ${by}`);
	const programOf = (row: Strip) => {
		const program = props.programs.get(row.value) ?? "";
		return program === row.value ? "" : program;
	};
	return (
		<div class="time-rows" ref={box} role="list" data-by={by}>
			{shown.map((row) => {
				const isOpen = row.value === open;
				const scene = { strips, row, win, open: isOpen, closedPx, paint, hit, text: colours.text, textDim: colours.textDim, font: colours.font };
				const toggle = () => setOpen(isOpen ? null : row.value);
				return (
					<div class="time-row" role="listitem" key={row.value}>
						<button type="button" class="time-name" aria-expanded={isOpen} title={`${[programOf(row), nameOf(row)].join(" ").trim()}: ${isOpen ? "close" : "open"} its calls`} onClick={toggle}>
							<b>{/^\d+$/.test(row.value) ? `${programOf(row)} ${row.value}`.trim() : nameOf(row)}</b>
							<small>
								{formatShare(row.total, flame.total)} {(/^\d+$/.test(row.value) ? "" : programOf(row)) || binaryText(row.busiest)}
							</small>
						</button>
						<div class="strip-room">
							<StripRow scene={scene} width={width} moveBy={moveBy} toggle={toggle} hover={(node, at) => setTip({ node, at })} />
						</div>
						{isOpen && (
							<button
								type="button"
								class="button time-graph"
								title="The flame graph of this row in the time that is seen"
								onClick={() =>
									go({
										select: win,
										view: "both",
										zoom: "",
										matchers: by === "" || row.value === "" ? state.matchers : withMatcher(state.matchers, by, row.value),
									})
								}
							>
								Graph of it
							</button>
						)}
					</div>
				);
			})}
			{there.length > ROWS_MAX && (
				<p class="time-more">{there.length - ROWS_MAX} more with less: choose another label, or narrow the selector down.</p>
			)}
			{shown.some((row) => row.merged && row.total > 0) && (
				<p class="time-more">
					These samples are some minutes old: the store has rounded their times down to 10 seconds. Calls are drawn from there
					on, so a row may be full for a while and empty until the next 10 seconds.
				</p>
			)}
			{there.length === 0 && <p class="time-more">Nothing ran in this stretch: go earlier or later, or show more of it.</p>}
			{tip.node >= 0 && tip.node < flame.count && <Tip strips={strips} node={tip.node} at={tip.at} />}
		</div>
	);
}

/** The label of the rows: threads, if samples have them. */
function labelOf(data: Data, state: State): string {
	return state.timeBy ?? ["thread_id", "cpu"].find((label) => data.labels.includes(label)) ?? data.labels[0] ?? "";
}

/** The view in place of graph and table. */
export function TimeView(props: TimeProps) {
	const { data } = props;
	const { span } = data;
	const by = labelOf(data, props.state);
	const choices = data.labels.includes(by) || by === "" ? data.labels : [by, ...data.labels];
	const query = data.question?.query ?? "";
	/**
	 * The range whose end was taken last: on a live page the window follows, if it is at the end and the user does
	 * not read.
	 */
	const frozen = useRef(span);
	const key = JSON.stringify([query, props.state.range, props.state.select]);
	const reading = useReading();
	const last = useRef(key);
	if (last.current !== key) {
		last.current = key;
		frozen.current = span;
	}
	// the window cannot go before the first sample
	const { fromMs, toMs } = frozen.current;
	const range = { fromMs: Math.min(Math.max(fromMs, data.type?.first ?? 0), toMs - 1000), toMs };
	const window = useWindow(range, data.flame.data?.samples ?? null, key);
	const { win, put, moveBy, zoomBy } = window;
	const [asked, forget] = useAsked(win, range);
	const id = query === "" ? null : JSON.stringify(["chart", query, by, asked]);
	const question = { query, from: toApiTime(asked.fromMs), to: toApiTime(asked.toMs) };
	const chart = useQuery(id, 0, (signal) => getChart(question, by, signal));
	const programs = usePrograms(question, asked, by, data.labels);
	const follows = data.live && !reading && win.toMs >= range.toMs && chart.id === id && !chart.trouble;
	useEffect(() => {
		if (follows && span.toMs > range.toMs) {
			frozen.current = span;
			forget();
			window.follow(span.toMs);
		}
	}, [span]);
	const { filters, group } = props.state;
	const laid = useMemo(() => chart.data && layStrips(chart.data.flame, chart.data.time, chart.data.begin, chart.data.by), [chart.data]);
	const strips = useMemo(() => laid && filterStrips(laid, filters, group), [laid, filters, group]);
	const body = useRef<HTMLDivElement>(null);
	const wheel = useRef((_: WheelEvent) => {});
	wheel.current = (e) => {
		const room = body.current!.querySelector(".strip-room")?.getBoundingClientRect();
		const whole = range.toMs - range.fromMs;
		const part = { from: (win.fromMs - range.fromMs) / whole, to: (win.toMs - range.fromMs) / whole };
		const next = room && magnify(part, Math.min(1, Math.max(0, (e.clientX - room.left) / room.width)), e, room.width);
		if (next) {
			e.preventDefault();
			put(range.fromMs + next.from * whole, (next.to - next.from) * whole);
		}
	};
	useLayoutEffect(() => {
		const listen = (e: WheelEvent) => wheel.current(e);
		body.current!.addEventListener("wheel", listen, { passive: false });
	}, []);
	const width = win.toMs - win.fromMs;
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey || (e.target as HTMLElement).closest("select")) {
			return;
		}
		const keys: Record<string, () => void> = {
			ArrowLeft: () => moveBy(-width / 4),
			ArrowRight: () => moveBy(width / 4),
			"+": () => zoomBy(0.5),
			"=": () => zoomBy(0.5),
			"-": () => zoomBy(2),
		};
		const run = keys[e.key];
		if (run) {
			e.preventDefault();
			run();
		}
	};
	const whole = win.fromMs <= range.fromMs && win.toMs >= range.toMs;
	return (
		<div class={`time ${chart.slow ? "slow" : ""}`} ref={body} onKeyDown={onKeyDown} data-testid="time">
			<div class="time-bar">
				<label class="by">
					a row for each
					<select value={by} aria-label="Rows" onChange={(e) => go({ timeBy: e.currentTarget.value })}>
						{choices.map((label) => (
							<option key={label} value={label}>
								{label}
							</option>
						))}
						<option value="">nothing: one row</option>
					</select>
				</label>
				<span class="time-span" data-testid="time-span">
					{clockText(win.fromMs)} – {clockText(win.toMs)}, {lengthText(width)}
					{whole ? "" : ` of ${lengthText(range.toMs - range.fromMs)}`}
				</span>
				<div class="group">
					<button type="button" class="button square" aria-label="Earlier" title="Earlier (left arrow, or drag)" disabled={win.fromMs <= range.fromMs} onClick={() => moveBy(-width / 2)}>
						‹
					</button>
					<button type="button" class="button square" aria-label="Later" title="Later (right arrow, or drag)" disabled={win.toMs >= range.toMs} onClick={() => moveBy(width / 2)}>
						›
					</button>
					<button type="button" class="button square" aria-label="Shorter stretch" title="Magnify (+, or Ctrl and the wheel)" disabled={width <= NARROWEST_MS} onClick={() => zoomBy(0.5)}>
						+
					</button>
					<button type="button" class="button square" aria-label="Longer stretch" title="Show more (-)" disabled={whole} onClick={() => zoomBy(2)}>
						−
					</button>
				</div>
				<button type="button" class="button" title="The flame graph of the time that is seen" onClick={() => go({ select: win, view: "both", zoom: "" })}>
					Graph of this stretch
				</button>
			</div>
			{chart.error ? (
				<div class="blank in-panel" role="alert">
					<h2>{chart.error.status === 422 ? "Too much for a chart" : "No answer"}</h2>
					<p>{chart.error.message}</p>
					<button type="button" class="button primary" onClick={() => {
							forget();
							put(win.toMs - width / 8, width / 8);
						}}>
						The last {lengthText(width / 8)} of it
					</button>
				</div>
			) : !strips ? (
				<Loading text="Asking for the calls by time" trouble={chart.trouble} />
			) : strips.rows.length === 0 ? (
				<div class="blank in-panel">
					<h2>{laid!.rows.length > 0 ? "The filters leave nothing in this stretch" : "No samples in this stretch"}</h2>
					<button type="button" class="button" disabled={whole} onClick={() => zoomBy(4)}>
						Show more time
					</button>
				</div>
			) : (
				<>
					<Rows {...props} strips={strips} win={window} by={chart.data!.by} programs={programs} />
					<Axis win={win} />
				</>
			)}
		</div>
	);
}
