// SPDX-License-Identifier: Apache-2.0
/** The questions of the chart. */
import { useMemo } from "preact/hooks";
import { getLabels, getSeries } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type { ProfileType, SeriesAnswer } from "../api/types.ts";
import { seenSpan } from "../model/sides.ts";
import { chartSpan, isLive, type Span, spanOf, stepFor, toApiTime, usedMs } from "../model/time.ts";
import { orderLabels } from "../model/types.ts";
import { DEFAULTS, type State } from "../model/url.ts";
import { useQuery } from "./use_query.ts";

/** The most series of the chart with a line of their own. */
export const SERIES_MAX = 8;
/** The most points of the chart. */
const POINTS_MAX = 240;

/** Series with the span for which they were requested. */
export interface SeriesData extends SeriesAnswer {
	span: Span;
	/** The range of this side if the chart shows a longer one; else null. */
	side: Span | null;
}

/** Labels of a type, and the one by which the chart is split; null while they are unknown. */
export function useLabels(state: State, type: string): { labels: string[]; by: string | null } {
	const minute = Math.floor(serverNow() / 60_000);
	const query = useQuery(type ? `labels ${type}` : null, minute, (signal) =>
		getLabels({ query: type, from: "now-7d", to: "now" }, signal),
	);
	const labels = useMemo(() => orderLabels(query.data ?? []), [query.data]);
	if (state.by !== DEFAULTS.by || type.startsWith("parca_agent:") || labels.includes(state.by)) {
		return { labels, by: state.by };
	}
	return { labels, by: query.data || query.error ? (labels[0] ?? "") : null };
}

/** The values over time. */
export function useSeries(
	state: State,
	type: ProfileType | null,
	query: string,
	by: string | null,
	tick: number,
) {
	const rangeLive = isLive(state.range);
	const stepMs = stepFor(usedMs(seenSpan(state, serverNow()), rangeLive, type?.first ?? 0), POINTS_MAX);
	const base = state.page === "compare" && [state.baseRange, state.shift, state.select];
	const id = query && by !== null && JSON.stringify(["series", query, by, stepMs, state.range, base]);
	return useQuery<SeriesData>(id || null, tick, async (signal) => {
		const [range, seen] = [spanOf(state.range, serverNow()), seenSpan(state, serverNow())];
		const span = chartSpan(seen, stepMs, rangeLive, type?.first ?? 0);
		const side = seen.fromMs < range.fromMs || seen.toMs > range.toMs ? range : null;
		const asked = { query, from: toApiTime(span.fromMs), to: toApiTime(span.toMs) };
		return { ...(await getSeries(asked, by!, stepMs, SERIES_MAX, signal)), span, side };
	});
}
