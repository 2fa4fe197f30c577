// SPDX-License-Identifier: Apache-2.0
/**
 * A question to the server that is asked again when it changes. The last answer stays until the
 * next one is there, so nothing flashes; one question is on its way at a time.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";

/** How a question stands. */
export interface Query<T> {
	data: T | null;
	/** The question that `data` answers. */
	id: string;
	/** The error of the last attempt. */
	error: ApiError | null;
	/** An answer to another question is shown meanwhile, and it takes long enough to say so. */
	slow: boolean;
}

/** How long an answer may take before the page shows that it waits, in milliseconds. */
const SLOW_MS = 250;

/**
 * Asks `run` whenever `id` changes, and again for the same id when `tick` changes. No id: nothing
 * is asked, and the last answer is forgotten.
 */
export function useQuery<T>(
	id: string | null,
	tick: number,
	run: (signal: AbortSignal) => Promise<T>,
): Query<T> {
	const [query, set] = useState<Query<T>>({ data: null, id: "", error: null, slow: false });
	const latest = useRef(run);
	latest.current = run;
	const asked = useRef({ id: "", busy: false, abort: new AbortController() });
	useEffect(() => {
		if (asked.current.id !== id) {
			asked.current.abort.abort();
		}
		if (id === null) {
			asked.current = { id: "", busy: false, abort: new AbortController() };
			set({ data: null, id: "", error: null, slow: false });
			return;
		}
		if (asked.current.id === id && asked.current.busy) {
			return;
		}
		const abort = new AbortController();
		const mine = { id, busy: true, abort };
		asked.current = mine;
		const current = () => asked.current === mine;
		const timer = setTimeout(() => {
			if (current() && mine.busy) {
				set((q) => (q.id === id ? q : { ...q, slow: true }));
			}
		}, SLOW_MS);
		const settle = (next: (q: Query<T>) => Query<T>) => {
			mine.busy = false;
			clearTimeout(timer);
			if (current()) {
				set(next);
			}
		};
		latest.current(abort.signal).then(
			(data) => settle(() => ({ data, id, error: null, slow: false })),
			(e: unknown) => {
				const error = e instanceof ApiError ? e : new ApiError(String(e), 0, "CLIENT");
				settle((q) => ({ ...q, error, slow: false }));
			},
		);
	}, [id, tick]);
	useEffect(() => () => asked.current.abort.abort(), []);
	return query;
}
