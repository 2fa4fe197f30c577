// SPDX-License-Identifier: Apache-2.0
/** While the user reads graph or table, newer answers to the same question wait. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Query } from "./use_query.ts";

/** After this time without a movement the user no longer reads, in milliseconds. */
const READING_MS = 60_000;

let reading = false;
let timer = 0;
const listeners = new Set<(on: boolean) => void>();

function set(on: boolean): void {
	clearTimeout(timer);
	if (on !== reading) {
		reading = on;
		for (const listener of listeners) {
			listener(on);
		}
	}
}

/** The user points, types or opens a menu; `forever`: until stopReading() is called. */
export function keepReading(forever = false): void {
	set(true);
	if (!forever) {
		timer = window.setTimeout(() => set(false), READING_MS);
	}
}

/** The pointer left, or the menu was closed. */
export function stopReading(): void {
	set(false);
}

/** Whether the user reads; renders again when that changes. */
export function useReading(): boolean {
	const [on, change] = useState(reading);
	useEffect(() => {
		listeners.add(change);
		return () => {
			listeners.delete(change);
		};
	}, []);
	return on;
}

/**
 * The answer to show. While `on` and the question is the same, it is the one already shown. A
 * change of `pass` lets a newer one through.
 */
export function useHeld<T>(query: Query<T>, on: boolean, pass: number): Query<T> {
	const shown = useRef({ query, pass });
	const before = shown.current;
	const same = before.query.data !== null && before.query.id === query.id && query.data !== null;
	if (!same || !on || (before.pass !== pass && before.query.data !== query.data)) {
		shown.current = { query, pass };
	}
	const { data, id, atMs, tookMs } = shown.current.query;
	return { ...query, data, id, atMs, tookMs };
}
