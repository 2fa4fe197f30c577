// SPDX-License-Identifier: Apache-2.0
/** The times of a comparison: of this side, of its base, and of the chart above both. */
import { type Span, spanOf } from "./time.ts";
import type { Shift, State } from "./url.ts";

const SHIFT_MS: Record<Shift, number> = { "": 0, "1h": 3_600_000, "1d": 86_400_000, "7d": 604_800_000 };

/** The range of this side. */
export function sideSpan(state: State, nowMs: number): Span {
	return state.select ?? spanOf(state.range, nowMs);
}

/** The range that is compared with. */
export function baseSpan(state: State, nowMs: number): Span {
	if (state.baseRange) {
		return spanOf(state.baseRange, nowMs);
	}
	const { fromMs, toMs } = sideSpan(state, nowMs);
	const by = SHIFT_MS[state.shift] || toMs - fromMs;
	return { fromMs: fromMs - by, toMs: toMs - by };
}

/** The base is in the chart unless that would make it more than so many times as long. */
const LONGER_MAX = 5;

/** What the chart shows: the range, and what it is compared with where that is near. */
export function seenSpan(state: State, nowMs: number): Span {
	const span = spanOf(state.range, nowMs);
	if (state.page !== "compare") {
		return span;
	}
	const base = baseSpan(state, nowMs);
	const fromMs = Math.min(span.fromMs, base.fromMs);
	const toMs = Math.max(span.toMs, base.toMs);
	return toMs - fromMs <= LONGER_MAX * (span.toMs - span.fromMs) ? { fromMs, toMs } : span;
}
