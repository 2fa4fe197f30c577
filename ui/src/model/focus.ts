// SPDX-License-Identifier: Apache-2.0
import type { Flame } from "./flame.ts";

function sibling(f: Flame, node: number, step: number): number {
	const parent = f.parent[node]!;
	if (node === 0) {
		return -1;
	}
	if (step > 0) {
		const next = f.end[node]!;
		return next < f.end[parent]! ? next : -1;
	}
	let before = -1;
	for (let i = parent + 1; i < node; i = f.end[i]!) {
		before = i;
	}
	return before;
}

/**
 * The node to which a key moves the focus: down to the largest callee, up to the caller, left and
 * right to the caller's other callees, Home to the root. -1: the key does nothing. Without a focus,
 * the first key only shows the current node.
 */
export function nextFocus(f: Flame, node: number, key: string, hasFocus: boolean): number {
	const keys = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home"];
	if (!keys.includes(key)) {
		return -1;
	}
	if (!hasFocus) {
		return node;
	}
	if (key === "ArrowDown") {
		return f.end[node]! > node + 1 ? node + 1 : node;
	}
	if (key === "ArrowUp") {
		return f.parent[node]!;
	}
	if (key === "Home") {
		return 0;
	}
	const next = sibling(f, node, key === "ArrowRight" ? 1 : -1);
	return next < 0 ? node : next;
}
