// SPDX-License-Identifier: Apache-2.0
/** Renderings by the clock. */
import { useEffect, useState } from "preact/hooks";

/** Counts up each `everyMs` while `active`, and not while the page is hidden. */
export function useTicks(everyMs: number, active: boolean): [number, () => void] {
	const [tick, set] = useState(0);
	const more = () => set((n) => n + 1);
	useEffect(() => {
		if (!active) {
			return;
		}
		const timer = setInterval(() => {
			if (!document.hidden) {
				more();
			}
		}, everyMs);
		const wake = () => {
			if (!document.hidden) {
				more();
			}
		};
		document.addEventListener("visibilitychange", wake);
		return () => {
			clearInterval(timer);
			document.removeEventListener("visibilitychange", wake);
		};
	}, [everyMs, active]);
	return [tick, more];
}
