// SPDX-License-Identifier: Apache-2.0
/** Shown where the server's answer is empty: the reason, and what to do. */
import { useEffect, useState } from "preact/hooks";
import { getReason, type Question } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type { Data } from "../app/data.ts";
import { go } from "../app/store.ts";
import { requestOf } from "../model/selector.ts";
import { formatSpan, isLive, toApiTime } from "../model/time.ts";
import { meaningOf, typeName } from "../model/types.ts";
import type { State } from "../model/url.ts";

/** A link with a time range that is not valid. */
export function BadRange({ problem, state }: { problem: string; state: State }) {
	const last = (length: string) => () =>
		go({ range: { from: `now-${length}`, to: "now" }, select: null });
	return (
		<div class="blank" role="alert" data-testid="bad-range">
			<h1>This link's time range is not valid</h1>
			<p>
				{problem}. The link asks for samples from <code>{state.range.from}</code> to{" "}
				<code>{state.range.to}</code>.
			</p>
			<p>
				Understood are <code>now-90m</code>, <code>now-7d/d</code>, <code>2026-01-31 14:05</code>,
				RFC 3339, and unix time in seconds or milliseconds.
			</p>
			<div class="blank-ways">
				<button type="button" class="button primary" onClick={last("15m")}>
					The last 15 minutes
				</button>
				<button type="button" class="button" onClick={last("24h")}>
					The last 24 hours
				</button>
			</div>
		</div>
	);
}

/** A link with a profile type that has no samples. */
function NoType({ type, data }: { type: string; data: Data }) {
	const types = data.types.data ?? [];
	const all = types.map((t) => t.type);
	return (
		<div class="blank in-panel" role="status" data-testid="no-type">
			<h1>No such profile type</h1>
			<p>
				There is no <code>{type}</code> here. There {types.length === 1 ? "is" : "are"}
			</p>
			<div class="blank-ways">
				{types.map((t) => (
					<button
						type="button"
						class="button"
						key={t.type}
						title={t.type}
						onClick={() => go({ type: t.type, zoom: "" })}
					>
						{typeName(t.type, all)}
					</button>
				))}
			</div>
		</div>
	);
}

/** Why no sample matches the question, in the server's words; "" until it is known. */
function useReason(question: Question | null): string {
	const [reason, setReason] = useState("");
	const { query = "", from = "", to = "" } = question ?? {};
	useEffect(() => {
		const control = new AbortController();
		setReason("");
		if (query !== "") {
			getReason({ query, from, to }, control.signal).then(setReason, () => undefined);
		}
		return () => control.abort();
	}, [query, from, to]);
	return reason;
}

/** A question without samples, and ways to find some. */
export function NoSamples({ state, data }: { state: State; data: Data }) {
	const { type, span } = data;
	const now = serverNow();
	const known = type && type.last > 0 ? { fromMs: type.first, toMs: type.last } : null;
	const request = requestOf(state.matchers);
	const outside = known !== null && (span.toMs < known.fromMs || span.fromMs > known.toMs);
	// the server would give the range as the reason again
	const reason = useReason(outside ? null : data.question);
	const ways: { name: string; run: () => void }[] = [];
	if (state.select) {
		ways.push({ name: "Back to the whole range", run: () => go({ select: null }) });
	}
	if (state.matchers !== "") {
		ways.push({ name: "Without the selector", run: () => go({ matchers: "" }) });
	}
	if (outside && known) {
		const toMs = Math.min(now, known.toMs + 60_000);
		const from = toApiTime(Math.max(known.fromMs, toMs - 900_000));
		ways.push({
			name: "Show the latest samples there are",
			run: () => go({ range: { from, to: toApiTime(toMs) }, select: null }),
		});
	}
	if (!isLive(state.range) || state.range.from !== "now-24h") {
		ways.push({
			name: "The last 24 hours",
			run: () => go({ range: { from: "now-24h", to: "now" }, select: null }),
		});
	}
	return (
		<div class="blank in-panel" role="status" data-testid="no-samples">
			<h1>No samples here</h1>
			<p>
				No {type ? meaningOf(type.type).name : ""} sample
				{state.matchers !== "" && (
					<>
						{" with "}
						<code>{`{${state.matchers}}`}</code>
					</>
				)}{" "}
				was taken in {formatSpan(span, now)}.
				{outside && known && ` There are some of ${formatSpan(known, 0)}.`}
			</p>
			{reason && <p data-testid="reason">{reason}</p>}
			{request && (
				<p>
					A {request.what} has samples only if it ran on a CPU at a moment when one was taken: 19 times a second, unless the
					agent was told otherwise.
				</p>
			)}
			<div class="blank-ways">
				{ways.map((way) => (
					<button type="button" class="button" key={way.name} onClick={way.run}>
						{way.name}
					</button>
				))}
			</div>
		</div>
	);
}

/** Shown if the filters leave no samples. */
export function NoneLeft() {
	return (
		<div class="blank in-panel" role="status" data-testid="none-left">
			<h1>The filters leave nothing</h1>
			<p>There are samples in this time, but no stack passes all filters.</p>
			<div class="blank-ways">
				<button type="button" class="button primary" onClick={() => go({ filters: [], group: "function" })}>
					Without filters
				</button>
			</div>
		</div>
	);
}

/** A focused function that is not in the samples. */
export function NotThere({ name }: { name: string }) {
	return (
		<div class="blank in-panel" role="status">
			<h1>Not in these samples</h1>
			<p>
				<code>{name}</code> was not seen in this time range.
			</p>
			<div class="blank-ways">
				<button
					type="button"
					class="button"
					onClick={() => go({ focus: "", invert: false, zoom: "" })}
				>
					Show everything
				</button>
			</div>
		</div>
	);
}

/** Why there is neither graph nor table. */
export function Nothing({ data, state }: { data: Data; state: State }) {
	const none = (data.flame.data?.total ?? 0) <= 0;
	return (
		<section class="panel profile">
			{!none ? (
				<NotThere name={state.focus} />
			) : (data.whole?.total ?? 0) > 0 ? (
				<NoneLeft />
			) : data.type?.last === 0 ? (
				<NoType type={data.type.type} data={data} />
			) : (
				<NoSamples state={state} data={data} />
			)}
		</section>
	);
}
