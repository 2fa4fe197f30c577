// SPDX-License-Identifier: Apache-2.0
/** The page's state is in the URL. This file reads and changes it, and calls listeners. */
import { useEffect, useState } from "preact/hooks";
import { formatUrl, parseUrl, type State } from "../model/url.ts";

/** Changes the state. `replace` keeps the step out of the browser's history. */
export type Go = (change: Partial<State>, how?: "push" | "replace") => void;

let current: State = parseUrl(location.search);
const listeners = new Set<(s: State) => void>();

function tell(): void {
	for (const listener of listeners) {
		listener(current);
	}
}

window.addEventListener("popstate", () => {
	current = parseUrl(location.search);
	tell();
});

/** Changes parts of the state and the URL with it. */
export const go: Go = (change, how = "push") => {
	const next = { ...current, ...change };
	const url = location.pathname + formatUrl(next);
	current = next;
	if (url !== location.pathname + location.search) {
		if (how === "push") {
			history.pushState(null, "", url);
		} else {
			history.replaceState(null, "", url);
		}
	}
	tell();
};

/** The state as of now, for handlers that outlive a rendering. */
export function stateNow(): State {
	return current;
}

/** The state; renders again whenever it changes. */
export function useAppState(): State {
	const [state, set] = useState(current);
	useEffect(() => {
		listeners.add(set);
		set(current);
		return () => {
			listeners.delete(set);
		};
	}, []);
	return state;
}
