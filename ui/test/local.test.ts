// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Flame, pathTo } from "../src/model/flame.ts";
import { invertFlame } from "../src/model/invert.ts";
import { parseFile } from "../src/model/local.ts";
import { grow, sample } from "./make.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function lines(f: Flame): string[] {
	return Array.from(
		{ length: f.count },
		(_, i) => `${" ".repeat(f.depth[i]!)}${f.strings[f.name[i]!]} ${f.self[i]}/${f.value[i]}`,
	);
}

test("folded stacks", async () => {
	const [view] = await parseFile(bytes("# unit: nanoseconds\nmain;a b;c 3\nmain;d 4\n"));
	assert.deepEqual(lines(view!.flame), [" 0/7", " main 0/7", "  d 4/4", "  a b 0/3", "   c 3/3"]);
	assert.equal(view!.flame.unit, "nanoseconds");
});

test("perf script", async () => {
	const text = `perf 123/456 [000] 12.5: 250000 cpu-clock:pppH:
\tffffffff81000000 do_it+0x10 ([kernel.kallsyms])
\t    7f0000001234 read+0x1 (/usr/lib/libc.so.6)
\t    5555000 [unknown] (/usr/bin/perf)

my prog 9 12.6: cycles:
\t 401000 main+0x2 (/tmp/a b)

`;
	const [view] = await parseFile(bytes(text));
	assert.deepEqual(lines(view!.flame), [
		" 0/2", " perf 0/1", "  perf+0x5555000 0/1", "   read 0/1", "    do_it 1/1", " my prog 0/1", "  main 1/1",
	]);
	assert.equal(view!.flame.kind[4], 2);
	assert.equal(view!.flame.samples, 2);
});

test("speedscope, sampled and evented", async () => {
	const file = {
		shared: { frames: [{ name: "a" }, { name: "b", file: "b.js", line: 3 }] },
		profiles: [
			{ type: "sampled", name: "one", unit: "milliseconds", samples: [[0, 1], [0]], weights: [2, 1] },
			{ type: "evented", name: "two", unit: "none", events: [{ type: "O", frame: 0, at: 0 }, { type: "O", frame: 1, at: 2 }, { type: "C", frame: 1, at: 5 }, { type: "C", frame: 0, at: 6 }] },
		],
	};
	const views = await parseFile(bytes(JSON.stringify(file)));
	assert.deepEqual(views.map((v) => v.name), ["one", "two"]);
	assert.deepEqual(lines(views[0]!.flame), [" 0/3000000", " a 1000000/3000000", "  b 2000000/2000000"]);
	assert.deepEqual(lines(views[1]!.flame), [" 0/6", " a 3/6", "  b 3/3"]);
	await assert.rejects(parseFile(bytes('{"a":1}')), /no speedscope file/);
});

/** Protobuf by hand: fields of numbers and of bytes. */
function message(...parts: [number, number | string | number[]][]): number[] {
	const varint = (n: number): number[] => (n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))]);
	return parts.flatMap(([field, value]) => {
		if (typeof value === "number") {
			return [...varint(field * 8), ...varint(value)];
		}
		const inner = typeof value === "string" ? [...bytes(value)] : value;
		return [...varint(field * 8 + 2), ...varint(inner.length), ...inner];
	});
}

const PPROF = message(
	[1, message([1, 1], [2, 2])],
	[1, message([1, 3], [2, 4])],
	[2, message([1, [1, 2]], [2, [1, 30]])],
	[2, message([1, 2], [2, [2, 20]])],
	[3, message([1, 1], [5, 5])],
	[4, message([1, 1], [2, 1], [3, 0x1234])],
	[4, message([1, 2], [2, 1], [4, message([1, 2], [2, 9])], [4, message([1, 1], [2, 7])])],
	[5, message([1, 1], [2, 6], [4, 7])],
	[5, message([1, 2], [2, 8], [4, 7])],
	[9, 3_000_000],
	[10, 2_000_000],
	[13, 6],
	...["", "samples", "count", "cpu", "nanoseconds", "/bin/app", "main", "main.c", "inner"].map(
		(s): [number, string] => [6, s],
	),
);

test("pprof, compressed or not, inlined functions and addresses", async () => {
	for (const data of [Uint8Array.from(PPROF), new Uint8Array(gzipSync(Uint8Array.from(PPROF)))]) {
		const views = await parseFile(data);
		assert.deepEqual(views.map((v) => v.name), ["cpu (nanoseconds)", "samples (count)"]);
		assert.deepEqual(views[1]!.comments, ["main"]);
		assert.deepEqual(views[1]!.span, { fromMs: 3, toMs: 5 });
		assert.deepEqual(lines(views[0]!.flame), [" 0/50", " main 0/50", "  inner 20/50", "   app+0x1234 30/30"]);
	}
});

test("a pprof file that is cut or changed anywhere is an answer or a sentence", async () => {
	for (let i = 0; i < PPROF.length; i++) {
		for (const data of [PPROF.slice(0, i), PPROF.map((b, k) => (k === i ? b ^ 0xff : b))]) {
			await parseFile(Uint8Array.from(data)).catch((e) => assert.ok(e instanceof Error && e.message.length > 10));
		}
	}
	await assert.rejects(parseFile(bytes("hello")), /no samples were found/);
});

test("a graph turned around", () => {
	const f = invertFlame(sample());
	assert.equal(f.total, 100);
	assert.deepEqual(lines(f).slice(0, 5), [" 0/100", " read 0/40", "  parse 0/40", "   main 40/40", " wait 0/30"]);
});

test("a graph that is too large turned around keeps what costs most, and loses no value", () => {
	const stacks = Array.from({ length: 40 }, (_, i) => ["main", `caller${i}`, `f${i % 4}`]);
	const flame = grow(stacks, stacks.map((_, i) => 100 - i));
	const whole = invertFlame(flame);
	const part = invertFlame(flame, 30);
	assert.equal(whole.count, 1 + 4 + 40 * 2);
	assert.equal(part.count, 30);
	assert.equal(part.total, whole.total);
	assert.equal(part.value[0], part.total);
	assert.equal(whole.trimmed, 0);
	assert.equal(part.trimmed, part.total - part.self.reduce((sum, one) => sum + one, 0));
	assert.ok(part.trimmed > 0);
	assert.equal(part.inner[1], part.value[1], "all callers of the dearest function");
	const rooms = [1, 2, 5, 44, 45, 46, 84, 85].map((room) => invertFlame(flame, room));
	for (const one of rooms) {
		assert.equal(one.trimmed, one.total - one.self.reduce((sum, own) => sum + own, 0));
	}
	assert.deepEqual(rooms.map((one) => one.count), [1, 2, 5, 44, 45, 46, 84, 85]);
	assert.equal(rooms.at(-1)!.trimmed, 0);
});

test("each stack of a graph is there, from its end, once it is turned around", () => {
	const next = (() => {
		let seed = 7;
		return (below: number) => {
			seed = (Math.imul(seed, 1103515245) + 12345) >>> 1;
			return (seed >>> 8) % below;
		};
	})();
	const stacks = Array.from({ length: 300 }, () => Array.from({ length: 1 + next(9) }, () => `f${next(6)}`));
	const flame = grow(stacks, stacks.map(() => 1 + next(50)));
	const paths = (f: Flame, invert: boolean) => {
		const sums = new Map<string, number>();
		for (let i = 1; i < f.count; i++) {
			if (f.self[i]! > 0) {
				const names = pathTo(f, i).slice(1).map((node) => f.strings[f.name[node]!]!);
				const key = (invert ? names.reverse() : names).join(";");
				sums.set(key, (sums.get(key) ?? 0) + f.self[i]!);
			}
		}
		return [...sums].sort();
	};
	const inverted = invertFlame(flame);
	assert.deepEqual(paths(inverted, true), paths(flame, false));
	for (let i = 2; i < inverted.count; i++) {
		const before = i - 1;
		if (inverted.parent[before] === inverted.parent[i]) {
			assert.ok(inverted.value[before]! >= inverted.value[i]!);
		}
	}
});
