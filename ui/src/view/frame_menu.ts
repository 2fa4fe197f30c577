// SPDX-License-Identifier: Apache-2.0
import { copyText } from "../app/copy.ts";
import { go, stateNow } from "../app/store.ts";
import { type Flame, nodeName, pathTo } from "../model/flame.ts";
import type { MenuItem } from "./Menu.tsx";

/** What can be done with a function, wherever it occurs. */
export function functionItems(name: string): MenuItem[] {
	return [
		{
			name: "Show its callers",
			run: () => go({ focus: name, invert: true, zoom: "", ...graph() }),
		},
		{
			name: "Show its callees, from all callers",
			run: () => go({ focus: name, invert: false, zoom: "", ...graph() }),
		},
		{ name: "Mark it everywhere", run: () => go({ mark: name }, "replace") },
		{ name: "Search for it", run: () => go({ search: `"${name}"` }, "replace") },
	];
}

/** Callers and callees are seen in the graph: it is shown when only the table was. */
function graph(): { view?: "both" } {
	return stateNow().view === "table" ? { view: "both" } : {};
}

/** What can be done with a row of the table. */
export function rowItems(name: string): MenuItem[] {
	return [...functionItems(name), { name: "Copy name", run: () => copyText(name) }];
}

/** What can be done with a frame. */
export function menuItems(flame: Flame, node: number, zoomTo: (node: number) => void): MenuItem[] {
	const name = nodeName(flame, node);
	const all: MenuItem[] = [{ name: "Zoom to this frame", hint: "Enter", run: () => zoomTo(node) }];
	if (node > 0) {
		all.push(...functionItems(name));
	}
	const stack = () => pathTo(flame, node).slice(1).reverse();
	all.push(
		{ name: "Copy name", hint: "c", run: () => copyText(name) },
		{
			name: "Copy stack",
			run: () =>
				copyText(
					stack()
						.map((i) => nodeName(flame, i))
						.join("\n"),
				),
		},
	);
	return all;
}
