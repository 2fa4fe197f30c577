// SPDX-License-Identifier: Apache-2.0
/**
 * The time ranges of a comparison: this side's, its base's, and the one of the chart above both.
 */
import { type Span, spanOf } from "./time.ts";
import type { Shift, State } from "./url.ts";

const SHIFT_MS: Record<Shift, number> = { "": 0, "1h": 3_600_000, "1d": 86_400_000, "7d": 604_800_000 };

/** The range of this side. */
export function sideSpan(state: State, nowMs: number): Span {
	return state.select ?? spanOf(state.range, nowMs);
}

/** The range of the base. */
export function baseSpan(state: State, nowMs: number): Span {
	if (state.baseRange) {
		return spanOf(state.baseRange, nowMs);
	}
	const { fromMs, toMs } = sideSpan(state, nowMs);
	const by = SHIFT_MS[state.shift] || toMs - fromMs;
	return { fromMs: fromMs - by, toMs: toMs - by };
}

/**
 * The chart includes the base, unless that would make the chart more than this many times as long.
 */
const LONGER_MAX = 5;

/** The span of the chart: the range, and that of the base if it is near. */
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
