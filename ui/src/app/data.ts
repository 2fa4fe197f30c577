// SPDX-License-Identifier: Apache-2.0
/** The questions the page asks, made from its state. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getFlame, getSeries, getTop, getTypes, type Question } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type { ProfileType, SeriesAnswer, TopAnswer } from "../api/types.ts";
import type { Flame } from "../model/flame.ts";
import { calleesOf, callersOf } from "../model/merge.ts";
import {
	chartSpan,
	isLive,
	refreshEvery,
	type Span,
	spanOf,
	stepFor,
	toApiTime,
} from "../model/time.ts";
import { joinQuery, type State } from "../model/url.ts";
import { useTicks } from "./ticks.ts";
import { type Query, useQuery } from "./use_query.ts";

/** Frames below this share of the total are not asked for. */
const TRIM = 0.00002;
/** Series of the chart that have a line of their own. */
export const SERIES_MAX = 8;
/** Rows of the table. */
const ROWS_MAX = 20_000;
/** Points of the chart at most. */
const POINTS_MAX = 240;

/** Series with the span they were asked for. */
export interface SeriesData extends SeriesAnswer {
	span: Span;
}

/** Everything the page shows. */
export interface Data {
	types: Query<ProfileType[]>;
	/** The type that is shown; null until there is one. */
	type: ProfileType | null;
	series: Query<SeriesData>;
	flame: Query<Flame>;
	/** What the graph shows: `flame`, or the callers or callees of the focused function. */
	shown: Flame | null;
	top: Query<TopAnswer>;
	/** Samples of this question are shown. */
	question: Question | null;
	/** The instants the question meant when it was last asked. */
	span: Span;
	live: boolean;
	refresh: () => void;
}

/** The profile types; asked each second until there is one, then each minute. */
function useTypes(): Query<ProfileType[]> {
	const [wait, setWait] = useState(1000);
	const [tick] = useTicks(wait, true);
	const types = useQuery("types", tick, getTypes);
	const empty = types.error !== null || (types.data?.length ?? 0) === 0;
	useEffect(() => setWait(empty ? 1000 : 60_000), [empty]);
	return types;
}

/** The types themselves, or those that the URL asks for although nothing is known of them. */
function pickType(types: ProfileType[] | null, wanted: string): ProfileType | null {
	if (!types || types.length === 0) {
		return null;
	}
	const found = types.find((t) => t.type === wanted);
	if (found || wanted === "") {
		return found ?? types.find((t) => t.type.startsWith("parca_agent:")) ?? types[0]!;
	}
	const delta = wanted.endsWith(":delta");
	return { type: wanted, unit: "", delta, first: 0, last: 0 };
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

/** Asks for everything that the state wants to see. */
export function useData(state: State): Data {
	const types = useTypes();
	const type = pickType(types.data, state.type);
	const rangeLive = isLive(state.range);
	const now = serverNow();
	const length = spanOf(state.range, now);
	const spanMs = length.toMs - length.fromMs;
	const running = type !== null && rangeLive && !state.paused;
	const [tick, refresh] = useTicks(refreshEvery(spanMs), running);
	const range = useMemo(() => spanOf(state.range, serverNow()), [state.range, tick]);

	const query = type ? joinQuery(type.type, state.matchers) : "";
	const stepMs = stepFor(spanMs, POINTS_MAX);
	const chart = chartSpan(range, stepMs, rangeLive, type?.first ?? 0);
	const seriesId = JSON.stringify(["series", query, state.by, stepMs, state.range]);
	const series = useQuery(type && seriesId, tick, async (signal) => {
		const asked = { query, from: toApiTime(chart.fromMs), to: toApiTime(chart.toMs) };
		const answer = await getSeries(asked, state.by, stepMs, SERIES_MAX, signal);
		return { ...answer, span: chart };
	});

	const question = useMemo<Question | null>(() => {
		const { select } = state;
		const from = select ? toApiTime(select.fromMs) : apiEnd(state.range.from);
		const to = select ? toApiTime(select.toMs) : apiEnd(state.range.to);
		return query === "" ? null : { query, from, to };
	}, [query, state.select, state.range]);
	const span = state.select ?? range;
	const live = running && state.select === null;
	const still = useRef(tick);
	if (live) {
		still.current = tick;
	}
	const [manual, again] = useState(0);
	const flameTick = still.current + manual * 1e6;
	const id = question && JSON.stringify(question);
	// callers of one function are found in the whole graph, so that they are exact
	const inverted = state.invert && state.focus === "";
	const flame = useQuery(id && `${id}${inverted}`, flameTick, (signal) =>
		getFlame(question!, inverted, TRIM, signal),
	);
	usePending(flame, () => again((n) => n + 1));
	const top = useQuery(id, flameTick, (signal) => getTop(question!, ROWS_MAX, signal));
	const shown = useMemo(() => {
		if (!flame.data || state.focus === "") {
			return flame.data;
		}
		return (state.invert ? callersOf : calleesOf)(flame.data, state.focus);
	}, [flame.data, state.focus, state.invert]);

	const all = () => {
		refresh();
		again((n) => n + 1);
	};
	return { types, type, series, flame, shown, top, question, span, live, refresh: all };
}

/** An end of a range in a form that the API takes: local times become RFC 3339. */
function apiEnd(text: string): string {
	if (text.startsWith("now")) {
		return text;
	}
	const { fromMs } = spanOf({ from: text, to: text }, serverNow());
	return Number.isNaN(fromMs) ? text : toApiTime(fromMs);
}
