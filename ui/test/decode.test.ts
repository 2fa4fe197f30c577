// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { apiUrl } from "../src/api/client.ts";
import { decodeFlame, decodeTop } from "../src/api/decode.ts";
import { answerOf } from "./make.ts";

const good = () => answerOf([["a", "b"], ["a", "c"], ["d"]]);

test("a good answer is taken", () => {
	const f = decodeFlame(good());
	assert.equal(f.count, 5);
	assert.equal(f.total, 3);
});

test("a broken answer is an error with a sentence, not a broken page", () => {
	const broken: [RegExp, (a: ReturnType<typeof good>) => void][] = [
		[/0 nodes/, (a) => a.nodes.name.splice(0)],
		[/column parent does not have 5/, (a) => a.nodes.parent.splice(0)],
		[/column self does not have 5/, (a) => a.nodes.self.pop()],
		[/name 99 of/, (a) => a.nodes.name.splice(1, 1, 99)],
		[/binary -1 of/, (a) => a.nodes.binary.splice(1, 1, -1)],
		[/node 2 is not in depth-first order/, (a) => a.nodes.parent.splice(2, 1, 4)],
		[/node 4 is not in depth-first order/, (a) => a.nodes.parent.splice(4, 1, 2)],
		[/node 1 is not in depth-first order/, (a) => a.nodes.parent.splice(1, 1, -5)],
		[/no strings/, (a) => Object.assign(a, { strings: null })],
		[/0 nodes/, (a) => Object.assign(a, { nodes: undefined })],
	];
	for (const [message, breakIt] of broken) {
		const answer = good();
		breakIt(answer);
		assert.throws(() => decodeFlame(answer), message);
	}
});

test("depths say the same as parents", () => {
	const deep = (depth: number[]) => {
		const answer = good();
		return decodeFlame({ ...answer, nodes: { ...answer.nodes, parent: [], depth } });
	};
	const { parent, depth } = decodeFlame(good());
	assert.deepEqual([...deep([...depth]).parent], [...parent]);
	assert.throws(() => deep([0, 2, 1, 1, 1]), /node 1 is not in depth-first order/);
	assert.throws(() => deep([0, 1, 2, 4, 1]), /node 3 is not in depth-first order/);
	assert.throws(() => deep([0, 1, 0, 1, 1]), /node 2 is not in depth-first order/);
	assert.throws(() => deep([0, 1]), /column depth does not have 5/);
});

test("a question becomes a URL", () => {
	assert.equal(apiUrl("api/x", {}), "api/x");
	const url = apiUrl("api/x", { query: 'a{b="c&d"}', by: ["e", "f"], limit: 3, none: undefined });
	assert.equal(url, "api/x?query=a%7Bb%3D%22c%26d%22%7D&by=e&by=f&limit=3");
});

test("the runtimes of a table have the names that the graph uses", () => {
	const row = { name: "main", binary: "", file: "", self: 1, total: 1 };
	const kinds = ["", "native", "kernel", "cpython", "v8js", "dotnet", "marker", "lua", "of a later server"];
	const { rows } = decodeTop({ unit: "count", total: 1, rows: kinds.map((kind) => ({ ...row, kind })) });
	const names = ["", "native", "kernel", "Python", "JavaScript", ".NET", "marker", "Lua", ""];
	assert.deepEqual(rows.map((r) => r.kind), names);
});
