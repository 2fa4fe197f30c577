// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from "preact/hooks";
import { type Flame, relocate } from "../model/flame.ts";

/** A node of a graph that is kept when the graph is replaced by a newer one; -1: none. */
export function usePlace(flame: Flame): [number, (node: number) => void] {
	const place = useRef({ flame, node: -1 });
	const [, render] = useState(0);
	if (place.current.flame !== flame) {
		const { flame: old, node } = place.current;
		place.current = { flame, node: relocate(old, node, flame) };
	}
	const set = (node: number) => {
		if (place.current.node !== node || place.current.flame !== flame) {
			place.current = { flame, node };
			render((n) => n + 1);
		}
	};
	return [place.current.node, set];
}
