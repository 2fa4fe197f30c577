// SPDX-License-Identifier: Apache-2.0
/** While somebody reads graph or table, newer answers to the same question wait. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Query } from "./use_query.ts";

/** After this long without a movement nobody reads any more, in milliseconds. */
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

/** Somebody points, types or opens a menu; `forever`: until stopReading() is called. */
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

/** Whether somebody reads, and a rendering when that changes. */
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
 * The answer to show: the one that was shown while `on` and the question is the same. A change of
 * `pass` lets the next one through.
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
