// SPDX-License-Identifier: Apache-2.0
import { copyText } from "../app/copy.ts";
import { go } from "../app/store.ts";
import { type Flame, nodeName, pathTo } from "../model/flame.ts";
import type { MenuItem } from "./Menu.tsx";

/** What can be done with a frame. */
export function menuItems(flame: Flame, node: number, zoomTo: (node: number) => void): MenuItem[] {
	const name = nodeName(flame, node);
	const all: MenuItem[] = [{ name: "Zoom to this frame", hint: "Enter", run: () => zoomTo(node) }];
	if (node > 0) {
		all.push(
			{
				name: "Show its callers",
				run: () => go({ focus: name, invert: true, zoom: "" }),
			},
			{
				name: "Show its callees, from all callers",
				run: () => go({ focus: name, invert: false, zoom: "" }),
			},
			{ name: "Mark it everywhere", run: () => go({ mark: name }, "replace") },
			{ name: "Search for it", run: () => go({ search: `"${name}"` }, "replace") },
		);
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
