// SPDX-License-Identifier: Apache-2.0
/** Renderings by the clock. */
import { useEffect, useRef, useState } from "preact/hooks";

/**
 * Counts up every `everyMs` while `active`, but not while the page is hidden; when it is shown
 * again, an overdue tick comes at once.
 */
export function useTicks(everyMs: number, active: boolean): [number, () => void] {
	const [tick, set] = useState(0);
	const last = useRef(Date.now());
	const more = () => {
		last.current = Date.now();
		set((n) => n + 1);
	};
	useEffect(() => {
		if (!active) {
			return;
		}
		let timer = 0;
		const wait = () => {
			clearTimeout(timer);
			timer = window.setTimeout(
				() => {
					if (!document.hidden) {
						more();
						wait();
					}
				},
				Math.max(0, last.current + everyMs - Date.now()),
			);
		};
		const wake = () => document.hidden || wait();
		wait();
		document.addEventListener("visibilitychange", wake);
		return () => {
			clearTimeout(timer);
			document.removeEventListener("visibilitychange", wake);
		};
	}, [everyMs, active]);
	return [tick, more];
}
