// SPDX-License-Identifier: Apache-2.0
/** What stands where there is nothing to show, with the reason and what to do. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, getReason, type Question } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type { Data } from "../app/data.ts";
import { go } from "../app/store.ts";
import { ofMatchers, requestOf } from "../model/selector.ts";
import { formatClock, formatLength, formatSpan, isLive, toApiTime } from "../model/time.ts";
import { meaningOf, typeName } from "../model/types.ts";
import type { State } from "../model/url.ts";

/** After this the page says what may be wrong, in seconds. */
const LONG_S = 20;

function useSeconds(): number {
	const [seconds, set] = useState(0);
	useEffect(() => {
		const timer = setInterval(() => set((n) => n + 1), 1000);
		return () => clearInterval(timer);
	}, []);
	return seconds;
}

/** Something is on its way: said at once, and more of it the longer it takes. */
export function Loading({ text, trouble }: { text: string; trouble: ApiError | null }) {
	const seconds = useSeconds();
	const why = trouble?.status === 0 ? "The server does not answer yet." : "The server is busy.";
	return (
		<div class="blank in-panel" role="status" data-testid="loading">
			<Bars />
			<p>
				{text}
				{seconds >= 3 ? ` (${seconds} s)` : "…"}
			</p>
			<p class="loading-more">{trouble ? `${why} The page asks again by itself.` : ""}</p>
		</div>
	);
}

function Bars() {
	return (
		<div class="bars" aria-hidden="true">
			<i />
			<i />
			<i />
			<i />
		</div>
	);
}

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

/** Before the first batch. */
export function Waiting({ error }: { error: ApiError | null }) {
	const seconds = useSeconds();
	if (error) {
		return (
			<div class="blank" role="status">
				<h1>{error.status === 0 ? "The server does not answer" : "The server has a problem"}</h1>
				<p>{error.status === 0 ? "Is firn still running?" : error.message}</p>
				<p class="quiet">This page tries again every second.</p>
			</div>
		);
	}
	return (
		<div class="blank" role="status" data-testid="waiting">
			<Bars />
			<h1>Nothing has arrived yet</h1>
			<p>
				The agent looks at every CPU 19 times a second and sends what it saw every few seconds. The
				first samples are expected within ten seconds; this page fills by itself.
			</p>
			{seconds >= LONG_S && (
				<div class="quiet">
					<p>It has been {seconds} seconds. On the host to be profiled, run one of</p>
					<code>firn up</code>
					<code>firn agent --remote-store-address {location.host}</code>
					<p>and look at what it says.</p>
				</div>
			)}
		</div>
	);
}

/** A link with a profile type that there is none of. */
export function NoType({ type, data }: { type: string; data: Data }) {
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

/** What of the question nothing meets, in the server's words; "" until it is known. */
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

/** A question without samples: which, and how to ask for more. */
export function NoSamples({ state, data }: { state: State; data: Data }) {
	const { type, span } = data;
	const now = serverNow();
	const reason = useReason(data.question);
	const known = type && type.last > 0 ? { fromMs: type.first, toMs: type.last } : null;
	const request = requestOf(state.matchers);
	const outside = known !== null && (span.toMs < known.fromMs || span.fromMs > known.toMs);
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
				{outside && known && ` Samples of this type exist from ${formatSpan(known, now)}.`}
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

/** The first question failed: there is nothing older to show. */
export function NoAnswer({ error, state, data }: { error: ApiError; state: State; data: Data }) {
	const bad = error.status === 400;
	const large = error.status === 422;
	const said = bad ? ofMatchers(error.message, data.type?.type ?? "", state.matchers) : error.message;
	const { fromMs, toMs } = data.span;
	const part = (toMs - fromMs) / 8;
	return (
		<div class="blank in-panel" role="status">
			<h1>{bad ? "The server did not understand the question" : large ? "Too much for one graph" : "No answer yet"}</h1>
			<p>{said}</p>
			{!bad && !large && <p class="quiet">The page asks again by itself.</p>}
			{large && (
				<div class="blank-ways">
					<button type="button" class="button primary" onClick={() => go({ select: { fromMs: toMs - part, toMs }, zoom: "" })}>
						The last {formatLength(part)} of it
					</button>
				</div>
			)}
			{bad && (
				<div class="blank-ways">
					<button type="button" class="button" onClick={() => go({ matchers: "" })}>
						Without the selector
					</button>
				</div>
			)}
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

/** Trouble that lasts, and how old what is still shown is; it floats, so that nothing moves. */
export function Problem(props: { error: ApiError; shownMs: number; retry: () => void }) {
	const { error, shownMs, retry } = props;
	useSeconds();
	const age = formatLength(Math.round((Date.now() - shownMs) / 1000) * 1000);
	return (
		<div class="problem floating" role="alert" data-testid="problem">
			<span>
				{error.message} What is shown is from {formatClock(shownMs)}, {age} ago.
			</span>
			<button type="button" class="button" onClick={retry}>
				Try now
			</button>
		</div>
	);
}
