// SPDX-License-Identifier: Apache-2.0
/** The questions that the page sends, made from its state. */
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

/**
 * Frames below this share of the total are not requested; each level of zoom divides it by
 * TRIM_STEP.
 */
const TRIM = 0.00002;
const TRIM_STEP = 8;
const LEVEL_MAX = 7;
/** The most rows of the table. */
const ROWS_MAX = 20_000;
/** Without new samples a moving range is requested this often. */
const MOVED_MS = 60_000;

/** Everything the page shows. */
export interface Data {
	types: Query<ProfileType[]>;
	/** The shown type; null until there is one. */
	type: ProfileType | null;
	/** What is wrong with the range, or "". */
	problem: string;
	/** Labels of the type's samples, the usual ones first. */
	labels: string[];
	/** The label by which the chart is split: the state's, or one that samples have. */
	by: string;
	series: Query<SeriesData>;
	/** The graph after the filters, and as the server sent it. */
	flame: Query<Flame>;
	whole: Flame | null;
	/** What the graph shows: `flame`, or the callers or callees of the focused function. */
	shown: Flame | null;
	/** The node that `shown` is zoomed to. */
	zoom: number;
	top: Query<TopAnswer>;
	/** Frames below this share of the total are not in `flame`. */
	trim: number;
	/**
	 * To be called with the magnification of the zoomed frame, so that smaller frames are requested.
	 */
	magnified: (times: number) => void;
	/** Newer answers are held back, because the user is reading. */
	held: boolean;
	/** The question whose samples are shown. */
	question: Question | null;
	/** The time range of the question when it was last sent. */
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

/** A tick of the clock that counts up only if there are new samples. */
function useNews(tick: number, newestMs: number): number {
	const last = useRef({ tick, newestMs, atMs: Date.now() });
	const due = last.current.tick !== tick;
	if (due && (newestMs > last.current.newestMs || Date.now() - last.current.atMs >= MOVED_MS)) {
		last.current = { tick, newestMs, atMs: Date.now() };
	}
	return last.current.tick;
}

/**
 * The level of detail at which a graph must be requested for a zoom and magnification, in steps of
 * TRIM_STEP.
 */
export function levelFor(f: Flame, zoom: number, times = 1): number {
	const level = Math.log((f.value[0]! / f.value[zoom]!) * times) / Math.log(TRIM_STEP);
	return Math.min(LEVEL_MAX, Math.max(0, Math.round(level) || 0));
}

/** The node with the key in the URL; if a newer graph does not have it, its nearest caller. */
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

/** The question of graph and table, with the current ends of the range. */
function questionOf(state: State, query: string): Question {
	const now = serverNow();
	const { select, range } = state;
	const from = select ? toApiTime(select.fromMs) : apiEnd(range.from, now, false);
	const to = select ? toApiTime(select.toMs) : apiEnd(range.to, now, true);
	return { query, from, to };
}

/** Whether graph and table show only a part of the server's answer, or group it. */
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

/** Graph and table of the samples that the state selects. */
function useGraph(state: State, query: string, by: string | null, tick: number) {
	const [manual, again] = useState(0);
	const level = useRef(0);
	const levels = useRef(new WeakMap<Flame, number>());
	const id = query && JSON.stringify([query, state.select ?? state.range]);
	// callers of a focused function are taken from the graph that is not inverted, so that they are
	// exact
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
	// frames left out of a graph are missing in filters, groups and sandwiches, so these request more
	// detail
	const isWhole = state.focus === "" && !isFiltered(state);
	level.current = Math.max(shown ? levelFor(shown, zoom, times) : 0, isWhole ? 0 : 1);
	useEffect(() => {
		const { data } = flame;
		if (data && data.trimmed > 0 && (levels.current.get(data) ?? 0) < level.current) {
			more();
		}
	}, [flame.data, level.current]);
	// after the graph, which suffices for most tables; and the server gets one request at a time
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

/** Requests everything that the state needs. */
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
	// also when the first type appears: else a page that was opened before it and is paused would keep
	// a range without samples
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
