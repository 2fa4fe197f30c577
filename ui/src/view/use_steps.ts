// SPDX-License-Identifier: Apache-2.0
/** Steps from match to match of a search, and the frame that has the keyboard's focus. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { usePlace } from "../app/place.ts";
import { go, stateNow } from "../app/store.ts";
import { type Flame, nodeKey } from "../model/flame.ts";
import type { Found } from "../model/search.ts";
import { formatCount, formatShare } from "../model/units.ts";
import type { State } from "../model/url.ts";
import { addFilter } from "./Filters.tsx";

/** Zooms so that a node can be seen: out if it is elsewhere, in if it would be too narrow. */
function showNode(f: Flame, zoom: number, node: number, zoomTo: (node: number) => void): void {
	const inside = node >= zoom && node < f.end[zoom]!;
	const root = inside ? zoom : 0;
	if (f.value[node]! >= f.value[root]! * 0.02) {
		if (root !== zoom) {
			zoomTo(root);
		}
		return;
	}
	let up = node;
	while (f.parent[up]! !== root && f.value[f.parent[up]!]! < f.value[node]! * 30) {
		up = f.parent[up]!;
	}
	zoomTo(up);
}

/** "3 of 17", "17 frames", or "". */
function placeText(found: Found | null, match: number): string {
	if (!found) {
		return "";
	}
	const all = formatCount(found.places);
	return match >= 0
		? `${found.outer.indexOf(match) + 1} of ${all}`
		: `${all} ${found.places === 1 ? "frame" : "frames"}`;
}

/** The text beside the search: the share that matched. */
export function shareText(flame: Flame, zoom: number, found: Found | null, inZoom: number): string {
	if (!found) {
		return "";
	}
	const by = found.field === "name" ? "" : ` by ${found.field}`;
	const here = zoom > 0 ? `, ${formatShare(inZoom, flame.value[zoom]!)} here` : "";
	return `${formatShare(found.value, flame.value[0]!)} matched${by}${here}`;
}

/** Keeps only stacks with a match of the search: the search becomes a filter. */
export function keepMatches(state: State, found: Found | null): void {
	const text = state.search.replace(/^\s*(binary|file):\s*/, "");
	addFilter({ op: "only", field: found?.field ?? "name", text });
	go({ search: "" }, "replace");
}

/** Focus, zoom, and steps through the matches of a search. */
export function useSteps(flame: Flame, zoom: number, state: State, found: Found | null) {
	const [focus, setFocus] = usePlace(flame);
	const [match, setMatch] = usePlace(flame);
	/** The zoom before the first step of a search, to go back there. */
	const stepped = useRef({ from: "", to: "" });
	// before the effect of the search box, which may step at once
	useLayoutEffect(() => {
		setFocus(-1);
		setMatch(-1);
		const { from, to } = stepped.current;
		if (state.search === "" && from !== to && state.zoom === to) {
			go({ zoom: from }, "replace");
		}
		stepped.current = { from: "", to: "" };
	}, [state.search]);
	const zoomTo = (node: number) => {
		const key = nodeKey(flame, node);
		if (key !== state.zoom) {
			go({ zoom: key });
		}
	};
	const step = (by: number) => {
		const outer = found?.outer ?? [];
		const next = outer.at((outer.indexOf(match) + (match < 0 && by < 0 ? 0 : by)) % outer.length);
		if (next !== undefined) {
			const { from, to } = stepped.current;
			setMatch(next);
			setFocus(next);
			showNode(flame, zoom, next, zoomTo);
			stepped.current = { from: from === to ? state.zoom : from, to: stateNow().zoom };
		}
	};
	return { focus, setFocus, zoomTo, step, place: placeText(found, match) };
}
