// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, flameSvg, folded } from "../src/model/svg.ts";
import { grow, sample } from "./make.ts";

test("a picture has each frame with its name, figures and place", () => {
	const f = grow([["main", 'a<b>&"c"'], ["main", "d\u0001"]], [3, 1]);
	const paint = { full: new Uint32Array(f.count).fill(0xff332211), dim: new Uint32Array(f.count) };
	const text = flameSvg(
		{ flame: f, paint, hit: null, zoom: 0, title: "a & b", back: "#ffffff", text: "#000000" },
		420,
	);
	assert.equal(text.match(/<g>/g)?.length, 4);
	assert.equal(text.match(/<g>/g)?.length, text.match(/<\/g>/g)?.length);
	assert.match(text, /<title>a&lt;b&gt;&amp;&quot;c&quot;\nbin\n3.00 ns, 75.0 %\nself 3.00 ns<\/title>/);
	assert.match(text, /x="10.0" y="74" width="299.0" height="19" fill="#112233"/);
	assert.doesNotMatch(text, /\u0001/);
});

test("folded stacks are those of the graph", () => {
	assert.deepEqual(folded(sample()).trim().split("\n").sort(), [
		"# unit: nanoseconds", "idle;wait 30", "main 5", "main;parse 10", "main;parse;read 40", "main;write 15",
	]);
});

test("cells of a table: quotes, commas, and what looks like a formula", () => {
	assert.equal(csv([["a,b", 'c"d', 5], ["=1+1", "-x", -2]]), '"a,b","c""d",5\r\n\'=1+1,\'-x,-2\r\n');
});
