// SPDX-License-Identifier: Apache-2.0
/** Shown while there is no answer yet, also without a server: the reason, and what to do. */
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import type { Data } from "../app/data.ts";
import { go } from "../app/store.ts";
import { ofMatchers } from "../model/selector.ts";
import { formatClock, formatLength } from "../model/time.ts";
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

/** A message at once that something is loading, and more text the longer it takes. */
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

/** The first request failed, so there is no older answer to show. */
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

/** Trouble that lasts, and the age of what is shown; it floats, so that nothing else moves. */
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
