// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseUrl } from "../src/model/url.ts";

/** The text of what a component returns, without its buttons' own components. */
function textOf(node: unknown): string {
	if (Array.isArray(node)) {
		return node.map(textOf).join("");
	}
	const props = (node as { props?: { children?: unknown } } | null)?.props;
	return props ? textOf(props.children) : typeof node === "string" ? node : "";
}

test("a link with a time range that is not valid says so", async () => {
	Object.assign(globalThis, { location: { search: "" }, window: { addEventListener: () => {} } });
	const { BadRange } = await import("../src/view/Blank.tsx");
	const text = textOf(BadRange({ problem: "not a time: \"abc\"", state: parseUrl("?from=abc") }));
	assert.match(text, /^This link's time range is not valid/);
	assert.match(text, /not a time: "abc"\. The link asks for samples from abc to now/);
});
