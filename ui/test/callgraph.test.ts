// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { callGraph } from "../src/model/callgraph.ts";
import { layout } from "../src/model/layers.ts";
import { grow } from "./make.ts";

const named = (graph: ReturnType<typeof callGraph>) => ({
	nodes: graph.nodes.map((n) => [n.name, n.self, n.total]),
	calls: graph.calls.map((c) => [graph.nodes[c.from]!.name, graph.nodes[c.to]!.name, c.total]),
});

test("a function is one node, a recursion counts once", () => {
	const f = grow([["a", "b", "a", "b"], ["a", "c"], ["d", "c"]], [5, 3, 2]);
	const { nodes, calls } = named(callGraph(f, 0, false));
	assert.deepEqual(nodes, [
		["a", 0, 8],
		["b", 5, 5],
		["c", 5, 5],
		["d", 0, 2],
	]);
	assert.deepEqual(
		calls.sort(),
		[
			["a", "b", 5],
			["a", "c", 3],
			["b", "a", 5],
			["d", "c", 2],
		].sort(),
	);
});

test("in a graph of callers the calls are the same", () => {
	const f = grow([["c", "a"], ["c", "d"]], [3, 2]);
	const { nodes, calls } = named(callGraph(f, 0, true));
	assert.deepEqual(nodes[0], ["c", 5, 5]);
	assert.deepEqual(calls, [
		["a", "c", 3],
		["d", "c", 2],
	]);
});

test("what costs least is left out, and counted", () => {
	const f = grow([["a", "b"], ["a", "c"], ["a", "d"]], [500, 300, 1]);
	const graph = callGraph(f, 0, false, 3);
	assert.deepEqual(named(graph).nodes.map(([name]) => name), ["a", "b", "c"]);
	assert.equal(graph.less, 1);
});

test("calls go down, a circle too, and a long one passes each layer", () => {
	const links = [
		{ from: 0, to: 1 },
		{ from: 1, to: 2 },
		{ from: 2, to: 0 },
		{ from: 2, to: 3 },
		{ from: 0, to: 3 },
	];
	const { layer, bends, layers, x, width } = layout(5, links);
	assert.deepEqual(layer, [0, 1, 2, 3, 0]);
	assert.equal(layers, 4);
	assert.deepEqual(bends.map((b) => b.map((one) => one.layer)), [[], [], [], [], [1, 2]]);
	assert.ok(x.every((one) => one > 0 && one < width));
	assert.notEqual(x[0], x[4], "two in a layer stand apart");
	assert.deepEqual(layout(0, []).layer, []);
});
