// SPDX-License-Identifier: Apache-2.0
/** The base of a comparison: its question and graph. */
import { useMemo } from "preact/hooks";
import { getFlame, type Question } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import { transform } from "../model/filter.ts";
import type { Flame } from "../model/flame.ts";
import { baseSpan } from "../model/sides.ts";
import { rangeProblem, type Span, toApiTime } from "../model/time.ts";
import { joinQuery, type State } from "../model/url.ts";
import type { Data } from "./data.ts";
import { type Query, useQuery } from "./use_query.ts";

/** The base. */
export interface Base {
	flame: Query<Flame>;
	span: Span;
	matchers: string;
	/** What is wrong with its range, or "". */
	problem: string;
	question: Question;
}

/** Requests the base; requests it again whenever this side is. */
export function useBase(state: State, data: Data): Base {
	const matchers = state.baseMatchers ?? state.matchers;
	const query = joinQuery(data.type?.type ?? state.type, matchers);
	const problem = state.baseRange ? rangeProblem(state.baseRange, serverNow()) : "";
	const inverted = state.invert && state.focus === "";
	const by = state.group === "label" ? data.by : "";
	const about = [query, state.baseRange ?? [state.shift, state.select ?? state.range]];
	const ask = (): Question => {
		const { fromMs, toMs } = baseSpan(state, serverNow());
		return { query, from: toApiTime(fromMs), to: toApiTime(toMs) };
	};
	const id = problem === "" && data.type ? JSON.stringify(["base", about, inverted, data.trim, by]) : null;
	const whole = useQuery(id, data.flame.atMs, (signal) => getFlame(ask(), { inverted, trim: data.trim, by }, signal));
	const through = useMemo(
		() => whole.data && transform(whole.data, state.filters, state.group),
		[whole.data, state.filters, state.group],
	);
	const flame = { ...whole, data: through };
	return { flame, matchers, problem, span: baseSpan(state, serverNow()), question: ask() };
}
