// SPDX-License-Identifier: Apache-2.0
/** The questions the page asks, made from its state. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getFlame, getTop, type Question } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type { ProfileType, TopAnswer } from "../api/types.ts";
import { transform } from "../model/filter.ts";
import { type Flame, findKey, relocateNear } from "../model/flame.ts";
import { calleesOf, callersOf } from "../model/merge.ts";
import {
	apiEnd,
	graphEvery,
	isLive,
	rangeProblem,
	refreshEvery,
	type Span,
	spanOf,
	toApiTime,
	usedMs,
} from "../model/time.ts";
import { joinQuery, type State } from "../model/url.ts";
import { useHeld, useReading } from "./hold.ts";
import { type SeriesData, useLabels, useSeries } from "./series.ts";
import { useTicks } from "./ticks.ts";
import { useType } from "./type.ts";
import { type Query, useQuery } from "./use_query.ts";

/** Frames below this share of the total are not asked for; of a zoomed part, below its eighths. */
const TRIM = 0.00002;
const TRIM_STEP = 8;
const LEVEL_MAX = 7;
/** Rows of the table. */
const ROWS_MAX = 20_000;
/** A range moves also where nothing new comes: then it is asked for this often. */
const MOVED_MS = 60_000;

/** Everything the page shows. */
export interface Data {
	types: Query<ProfileType[]>;
	/** The type that is shown; null until there is one. */
	type: ProfileType | null;
	/** What is wrong with the range, or "". */
	problem: string;
	/** Labels that samples of the type have, the usual ones first. */
	labels: string[];
	/** The label the chart is split by: the one of the state, or one that there is. */
	by: string;
	series: Query<SeriesData>;
	/** The graph through the filters, and as it came. */
	flame: Query<Flame>;
	whole: Flame | null;
	/** What the graph shows: `flame`, or the callers or callees of the focused function. */
	shown: Flame | null;
	/** The node that `shown` is zoomed to. */
	zoom: number;
	top: Query<TopAnswer>;
	/** Frames below this share of the total are not in `flame`. */
	trim: number;
	/** Tells how many times wider than the zoomed frame the graph is seen: small frames are asked for then. */
	magnified: (times: number) => void;
	/** Newer answers wait because somebody reads. */
	held: boolean;
	/** Samples of this question are shown. */
	question: Question | null;
	/** The instants the question meant when it was last asked. */
	span: Span;
	live: boolean;
	refresh: () => void;
}

/** Asks again while the server is still reading symbols: after 2 s, then less and less often. */
function usePending(flame: Query<Flame>, ask: () => void): void {
	const tries = useRef({ id: "", count: 0 });
	useEffect(() => {
		if (tries.current.id !== flame.id) {
			tries.current = { id: flame.id, count: 0 };
		}
		if (!flame.data || flame.data.pending === 0) {
			tries.current.count = 0;
			return;
		}
		const wait = Math.min(30_000, 2000 * 1.5 ** tries.current.count);
		const timer = setTimeout(() => {
			tries.current.count++;
			ask();
		}, wait);
		return () => clearTimeout(timer);
	}, [flame.data, flame.id]);
}

/** A tick of the clock that counts only when there is something new to ask for. */
function useNews(tick: number, newestMs: number): number {
	const last = useRef({ tick, newestMs, atMs: Date.now() });
	const due = last.current.tick !== tick;
	if (due && (newestMs > last.current.newestMs || Date.now() - last.current.atMs >= MOVED_MS)) {
		last.current = { tick, newestMs, atMs: Date.now() };
	}
	return last.current.tick;
}

/** How deep a graph must be asked for, so that what is zoomed to, and magnified, can be seen: in steps of the trim. */
export function levelFor(f: Flame, zoom: number, times = 1): number {
	const level = Math.log((f.value[0]! / f.value[zoom]!) * times) / Math.log(TRIM_STEP);
	return Math.min(LEVEL_MAX, Math.max(0, Math.round(level) || 0));
}

/** The node with the key of the URL; where a newer graph has lost it, its nearest caller. */
export function useZoom(flame: Flame | null, key: string): number {
	const last = useRef<{ flame: Flame; key: string; node: number } | null>(null);
	return useMemo(() => {
		if (!flame) {
			return 0;
		}
		let node = findKey(flame, key);
		if (node < 0) {
			const old = last.current;
			node = old?.key === key ? relocateNear(old.flame, old.node, flame) : 0;
		} else {
			last.current = { flame, key, node };
		}
		return node;
	}, [flame, key]);
}

/** What graph and table are about, with its ends as they are now. */
function questionOf(state: State, query: string): Question {
	const now = serverNow();
	const { select, range } = state;
	const from = select ? toApiTime(select.fromMs) : apiEnd(range.from, now, false);
	const to = select ? toApiTime(select.toMs) : apiEnd(range.to, now, true);
	return { query, from, to };
}

/** Whether graph and table are about a part of what the server answers. */
export function isFiltered(state: State): boolean {
	return state.filters.length > 0 || state.group !== "function";
}

/** Whether the table needs rows that the graph does not have. */
function needsTop(state: State, flame: Flame | null): boolean {
	if (state.view === "flame" || !flame) {
		return false;
	}
	const isPart = isFiltered(state) || (!state.invert && (state.focus !== "" || state.zoom !== ""));
	return flame.trimmed > 0 && !isPart;
}

/** Graph and table of what the state selects. */
function useGraph(state: State, query: string, by: string | null, tick: number) {
	const [manual, again] = useState(0);
	const level = useRef(0);
	const levels = useRef(new WeakMap<Flame, number>());
	const id = query && JSON.stringify([query, state.select ?? state.range]);
	// callers of one function are found in the whole graph, so that they are exact
	const inverted = state.invert && state.focus === "";
	const split = state.group === "label" ? (by ?? "") : "";
	const flame = useQuery(id ? `${id}${inverted}${split}` : null, tick + manual * 1e6, async (signal) => {
		const asked = level.current;
		const trim = TRIM / TRIM_STEP ** asked;
		const answer = await getFlame(questionOf(state, query), { inverted, trim, by: split }, signal);
		levels.current.set(answer, asked);
		return answer;
	});
	const more = () => again((n) => n + 1);
	usePending(flame, more);
	const reading = useReading();
	const raw = useHeld(flame, reading, manual);
	const filtered = useMemo(
		() => raw.data && transform(raw.data, state.filters, state.group),
		[raw.data, state.filters, state.group],
	);
	const held = { ...raw, data: filtered };
	const shown = useMemo(() => {
		if (!held.data || state.focus === "") {
			return held.data;
		}
		return (state.invert ? callersOf : calleesOf)(held.data, state.focus);
	}, [held.data, state.focus, state.invert]);
	const zoom = useZoom(shown, state.zoom);
	const [times, magnified] = useState(1);
	// what is left out of a graph is in no filter, group or sandwich: they are asked for more of it
	const isWhole = state.focus === "" && !isFiltered(state);
	level.current = Math.max(shown ? levelFor(shown, zoom, times) : 0, isWhole ? 0 : 1);
	useEffect(() => {
		const { data } = flame;
		if (data && data.trimmed > 0 && (levels.current.get(data) ?? 0) < level.current) {
			more();
		}
	}, [flame.data, level.current]);
	// after the graph: what it has suffices for most tables, and one question at a time is kinder
	const table = useRef("");
	const answered = id !== "" && flame.id === `${id}${inverted}${split}`;
	const tableTick = useRef(0);
	if (answered && needsTop(state, flame.data)) {
		table.current = id;
		tableTick.current = flame.atMs;
	}
	const top = useQuery(table.current === id && id ? id : null, tableTick.current, (signal) =>
		getTop(questionOf(state, query), ROWS_MAX, signal),
	);
	const asked = raw.data ? (levels.current.get(raw.data) ?? 0) : 0;
	return {
		flame: held,
		trim: TRIM / TRIM_STEP ** asked,
		whole: raw.data,
		newer: flame.data !== raw.data,
		shown,
		zoom,
		magnified,
		top: useHeld(top, reading, manual),
		more,
	};
}

/** Asks for everything that the state wants to see. */
export function useData(state: State): Data {
	const { types, type } = useType(state);
	const now = serverNow();
	const problem = rangeProblem(state.range, now);
	const whole = spanOf(state.range, now);
	const used = usedMs(whole, isLive(state.range), type?.first ?? 0);
	const running = type !== null && problem === "" && isLive(state.range) && !state.paused;
	const query = type && problem === "" ? joinQuery(type.type, state.matchers) : "";
	const [tick, refresh] = useTicks(refreshEvery(used), running);
	const { labels, by } = useLabels(state, type?.type ?? "");
	const series = useSeries(state, type, query, by, tick);
	const live = running && state.select === null;
	const took = useRef(0);
	const [graphTick, refreshGraph] = useTicks(graphEvery(used, took.current), live);
	const { flame, whole: graph, trim, newer, shown, zoom, magnified, top, more } = useGraph(
		state,
		query,
		by,
		useNews(graphTick, type?.last ?? 0),
	);
	took.current = flame.tookMs;
	// also with the first type: a page that is opened before it, and paused, would keep a time without samples
	const range = useMemo(() => spanOf(state.range, serverNow()), [query, state.range, tick]);
	const question = useMemo(
		() => (query === "" ? null : questionOf(state, query)),
		[query, state.select, state.range, tick],
	);
	const all = () => {
		refresh();
		refreshGraph();
		more();
	};
	return {
		types,
		type,
		problem,
		labels,
		by: by ?? state.by,
		series,
		flame,
		whole: graph,
		trim,
		magnified,
		shown,
		zoom,
		top,
		held: newer,
		question,
		span: state.select ?? range,
		live,
		refresh: all,
	};
}
