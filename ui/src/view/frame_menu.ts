// SPDX-License-Identifier: Apache-2.0
import { copyText } from "../app/copy.ts";
import { go, stateNow } from "../app/store.ts";
import type { FilterField, Op } from "../model/filter.ts";
import { type Flame, nodeBinary, nodeName, pathTo } from "../model/flame.ts";
import { addFilter } from "./Filters.tsx";
import type { MenuItem } from "./Menu.tsx";

/** A filter for exactly this function or binary. */
const exactly = (text: string) => `"${text}"`;

/** Callers above and callees below a function. */
function openSandwich(name: string): void {
	go({ focus: name, sandwich: true, invert: false, zoom: "", ...graph() });
}

/** Items that open the function's source, if the symbols name a file, else its instructions. */
function sourceItems(name: string, binary: string, file: string): MenuItem[] {
	const { group, page } = stateNow();
	if ((file === "" && binary === "") || group === "binary" || page === "compare") {
		return [];
	}
	const asm = file === "";
	const run = () => go({ code: { name, binary, file, asm } });
	return [{ name: asm ? "Its instructions" : "Source and instructions", hint: "v", run }];
}

/** The source file of a function; "": no frame of it has one. */
function fileOf(f: Flame, name: string, binary: string): string {
	for (let i = 1; i < f.count; i++) {
		if (f.strings[f.name[i]!] === name && f.strings[f.binary[i]!] === binary && f.file[i] !== 0) {
			return f.strings[f.file[i]!] ?? "";
		}
	}
	return "";
}

/** Menu items for all frames of a function. */
export function functionItems(name: string, binary: string, file = ""): MenuItem[] {
	const { group } = stateNow();
	// a bar may be a group: the kernel's frames are one in each, and so are those of a binary without files
	const isOne = group === "function" || group === "label";
	const own = isOne ? "name" : name === "kernel" ? "runtime" : group === "file" && file === "" ? "binary" : group;
	const filter = (op: Op, field: FilterField, text: string) => () => addFilter({ op, field, text: exactly(text) });
	const items: MenuItem[] = [
		{ name: "Callers and callees", hint: "s", run: () => openSandwich(name) },
		{
			name: "Show its callers",
			run: () => go({ focus: name, sandwich: false, invert: true, zoom: "", ...graph() }),
		},
		{
			name: "Show its callees, from all callers",
			run: () => go({ focus: name, sandwich: false, invert: false, zoom: "", ...graph() }),
		},
		{ name: "Mark it everywhere", run: () => go({ mark: name }, "replace") },
		{ name: "Search for it", run: () => go({ search: exactly(name) }, "replace") },
		{ name: "Only stacks through it", hint: "o", run: filter("only", own, name) },
		...sourceItems(name, binary, file),
		{ name: "Drop stacks with it", hint: "d", run: filter("drop", own, name) },
		{ name: "Hide its frames", hint: "h", run: filter("hide", own, name) },
	];
	if (isOne && binary !== "" && binary.length < 60) {
		items.push(
			{ name: `Only stacks through ${binary}`, run: filter("only", "binary", binary) },
			{ name: `Hide frames of ${binary}`, run: filter("hide", "binary", binary) },
		);
	}
	return items;
}

/** Runs the menu item of a key on a frame; returns whether there is one. */
export function frameKey(flame: Flame, key: string, node: number): boolean {
	const binary = nodeBinary(flame, node);
	const items = functionItems(nodeName(flame, node), binary, flame.strings[flame.file[node]!]);
	const item = items.find((one) => one.hint === key);
	if (node > 0 && item) {
		item.run();
	}
	return item !== undefined;
}

/** The same for all frames of a function. */
export function functionKey(flame: Flame, key: string, name: string, binary: string): boolean {
	const item = rowItems(flame, name, binary).find((one) => one.hint === key);
	item?.run();
	return item !== undefined;
}

/** Callers and callees are shown in the graph, so a view without it is changed. */
function graph(): { view?: "both" } {
	return ["table", "calls", "time"].includes(stateNow().view) ? { view: "both" } : {};
}

/** Menu items of a row of the table. */
export function rowItems(flame: Flame, name: string, binary: string): MenuItem[] {
	return [...functionItems(name, binary, fileOf(flame, name, binary)), { name: "Copy name", run: () => copyText(name) }];
}

/** Menu items of a frame. */
export function menuItems(flame: Flame, node: number, zoomTo: (node: number) => void): MenuItem[] {
	const name = nodeName(flame, node);
	const all: MenuItem[] = [{ name: "Zoom to this frame", hint: "Enter", run: () => zoomTo(node) }];
	if (node > 0) {
		all.push(...functionItems(name, nodeBinary(flame, node), flame.strings[flame.file[node]!]));
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
