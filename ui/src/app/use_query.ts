// SPDX-License-Identifier: Apache-2.0
/**
 * A question to the server that is sent again when it changes. The last answer stays until the next
 * one comes, so that nothing flickers; only one request runs at a time. A request that was refused
 * or lost is repeated; `error` has errors that last, or that repeating cannot mend.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { isPassing, LASTING_MS, LATE_MS, retryWait } from "../model/retry.ts";

/** The state of a question. */
export interface Query<T> {
	data: T | null;
	/** The question that `data` answers. */
	id: string;
	/** An error of the question, or trouble that lasts. */
	error: ApiError | null;
	/** The last attempt failed and is repeated. */
	trouble: ApiError | null;
	/**
	 * The answer takes so long that the page must show that it waits; `data` is of another question.
	 */
	slow: boolean;
	/** When `data` came, in milliseconds since 1970 by the browser's clock. */
	atMs: number;
	/** How long it took, in milliseconds. */
	tookMs: number;
}

/** How long an answer may take before the page shows that it waits, in milliseconds. */
const SLOW_MS = 250;

/** A question that is being sent, with its repetitions. */
interface Attempt {
	id: string;
	busy: boolean;
	abort: AbortController;
	timer: number;
	failures: number;
	sinceMs: number;
}

const attempt = (id: string): Attempt => ({
	id,
	busy: false,
	abort: new AbortController(),
	timer: 0,
	failures: 0,
	sinceMs: 0,
});

const nothing = {
	data: null,
	id: "",
	error: null,
	trouble: null,
	slow: false,
	atMs: 0,
	tookMs: 0,
};

/** The answer, or an error when it does not come in time. */
async function inTime<T>(
	run: (signal: AbortSignal) => Promise<T>,
	outer: AbortSignal,
	lateMs: number,
): Promise<T> {
	const abort = new AbortController();
	const stop = () => abort.abort();
	outer.addEventListener("abort", stop);
	const timer = setTimeout(stop, lateMs);
	try {
		return await run(abort.signal);
	} catch (e) {
		if (e instanceof ApiError) {
			throw e;
		}
		throw abort.signal.aborted
			? new ApiError("The server does not answer.", 0, "LATE")
			: new ApiError(String(e), 0, e instanceof TypeError ? "LOST" : "CLIENT");
	} finally {
		clearTimeout(timer);
		outer.removeEventListener("abort", stop);
	}
}

/**
 * Calls `run` whenever `id` changes, and again for the same id when `tick` changes. Without an id
 * nothing is requested, and the last answer is dropped.
 */
export function useQuery<T>(
	id: string | null,
	tick: number,
	run: (signal: AbortSignal) => Promise<T>,
	lateMs = LATE_MS,
): Query<T> {
	const [query, set] = useState<Query<T>>(nothing);
	const latest = useRef(run);
	latest.current = run;
	const asked = useRef(attempt(""));
	const ask = (mine: Attempt) => {
		clearTimeout(mine.timer);
		mine.busy = true;
		const begun = Date.now();
		const isCurrent = () => asked.current === mine;
		const slow = setTimeout(() => {
			if (isCurrent()) {
				set((q) => (q.id === mine.id ? q : { ...q, slow: true }));
			}
		}, SLOW_MS);
		const settle = (next: (q: Query<T>) => Query<T>) => {
			mine.busy = false;
			clearTimeout(slow);
			if (isCurrent()) {
				set(next);
			}
		};
		const fail = (error: ApiError) => {
			if (!isPassing(error.status, error.code)) {
				settle((q) => ({ ...q, error, trouble: null, slow: false }));
				return;
			}
			const now = Date.now();
			mine.sinceMs = mine.failures++ === 0 ? begun : mine.sinceMs;
			const lasts = now - mine.sinceMs >= LASTING_MS;
			settle((q) => ({ ...q, trouble: error, error: lasts ? error : q.id === mine.id ? q.error : null }));
			if (isCurrent()) {
				const wait = retryWait(mine.failures, Math.random(), error.retryMs);
				mine.timer = window.setTimeout(() => ask(mine), wait);
			}
		};
		inTime(latest.current, mine.abort.signal, lateMs).then((data) => {
			mine.failures = 0;
			const atMs = Date.now();
			settle(() => ({ ...nothing, data, id: mine.id, atMs, tookMs: atMs - begun }));
		}, fail);
	};
	const drop = () => {
		asked.current.abort.abort();
		clearTimeout(asked.current.timer);
	};
	useEffect(() => {
		if (id === null) {
			drop();
			asked.current = attempt("");
			set(nothing);
			return;
		}
		if (asked.current.id !== id) {
			drop();
			asked.current = attempt(id);
		}
		if (!asked.current.busy) {
			ask(asked.current);
		}
	}, [id, tick]);
	useEffect(() => drop, []);
	return query;
}
