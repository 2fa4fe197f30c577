// SPDX-License-Identifier: Apache-2.0
/** The selected range beside the chart, and the keys that move it. */
import { serverNow } from "../api/clock.ts";
import type { Data } from "../app/data.ts";
import { go, stateNow } from "../app/store.ts";
import type { Grid } from "../model/series.ts";
import { formatClock, formatLength, formatSpan, type Span } from "../model/time.ts";
import type { Rate } from "../model/units.ts";
import type { State } from "../model/url.ts";
import { Icon } from "./icons.tsx";

/** The selected range, and a button back to the whole. */
export function InForce({ state, data, rate }: { state: State; data: Data; rate: Rate }) {
	const { select } = state;
	if (!select && state.page === "compare") {
		return null;
	}
	if (!select) {
		const first = data.type?.first ?? 0;
		const began = first > data.span.fromMs && first < data.span.toMs;
		return (
			<span class="range-note">
				{began && `Recording began at ${formatClock(first)}. `}
				Drag in the chart to look at a part of it
			</span>
		);
	}
	const text = formatSpan(select, serverNow());
	return (
		<span class="focus-chip" data-testid="selection" data-unit={rate.label}>
			<b>{text}</b>
			<span>{formatLength(select.toMs - select.fromMs)}</span>
			<button
				type="button"
				class="bare"
				title="Back to the whole range (Esc, or a double click in the chart)"
				onClick={() => go({ select: null })}
			>
				<Icon name="close" />
			</button>
			{state.page === "explore" && (
				<button
					type="button"
					class="bare chip-link"
					title="What changed since: as long a time right before it. Shift and a drag in the chart choose another"
					onClick={() => go({ page: "compare", baseRange: null, shift: "", zoom: "", sort: "" })}
				>
					Compare with before
				</button>
			)}
			{data.flame.slow && <span class="visually-hidden">loading</span>}
		</span>
	);
}

/** Arrow keys on the chart move the selected range by a step; with Shift they move its end. */
export function moveSelect(e: KeyboardEvent, grid: Grid, span: Span): void {
	const by = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : 0;
	if (by === 0) {
		return;
	}
	e.preventDefault();
	const now = stateNow().select;
	const shift = by * grid.stepMs;
	if (!now) {
		const end = (grid.timesS.at(-1) ?? 0) * 1000 + grid.stepMs;
		go({ select: { fromMs: end - 3 * grid.stepMs, toMs: end } });
		return;
	}
	const fromMs = e.shiftKey ? now.fromMs : now.fromMs + shift;
	const toMs = now.toMs + shift;
	if (fromMs >= span.fromMs - grid.stepMs && toMs <= span.toMs + grid.stepMs && toMs > fromMs) {
		go({ select: { fromMs, toMs } }, "replace");
	}
}
