// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	frameColour,
	hueOf,
	isAddress,
	lineColour,
	paintFlame,
	SHADES,
	type Theme,
	toHex,
	toPixel,
	toRgb,
	wordColour,
} from "../src/model/colour.ts";
import { hashString, Kind } from "../src/model/flame.ts";
import { assignSlots, SLOTS } from "../src/model/series.ts";
import { binaryText, mainBinary, packageOf, Words, wordShares } from "../src/model/words.ts";
import { grow, nodeNamed, sample } from "./make.ts";

function luminance(rgb: readonly number[]): number {
	const [r, g, b] = rgb.map((v) => {
		const x = v / 255;
		return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: readonly number[], b: readonly number[]): number {
	const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
	return (light! + 0.05) / (dark! + 0.05);
}

test("OKLCH becomes sRGB", () => {
	assert.equal(toHex({ l: 1, c: 0, h: 0 }), "#ffffff");
	assert.equal(toHex({ l: 0, c: 0, h: 0 }), "#000000");
	const [r, g, b] = toRgb({ l: 0.628, c: 0.2577, h: 29.23 });
	assert.ok(r > 250 && g < 8 && b < 8, `red is ${r} ${g} ${b}`);
	assert.equal(toPixel({ l: 1, c: 0, h: 0 }), 0xffffffff);
});

test("the kernel is warm, and nothing else comes near", () => {
	for (let i = 0; i < 500; i++) {
		const kernel = hueOf(`module${i}`, true);
		const user = hueOf(`lib${i}.so`, false);
		assert.ok(kernel >= 38 && kernel <= 68);
		assert.ok(user < 38 - 25 || user > 68 + 25, `${user}`);
	}
	assert.equal(hueOf("libc.so.6", false), hueOf("libc.so.6", false));
});

test("the commonest binaries can be told apart, from the kernel too, in graph and chart", () => {
	const names = "python3.11 libc.so.6 node libpython3.11.so cc1plus compile openssl libcrypto.so.3 libm.so.6 libstdc++.so.6 java postgres";
	const words = names.split(" ");
	const slots = assignSlots(new Map(), words, hashString);
	const away = (a: readonly number[], b: readonly number[]) =>
		Math.hypot(...a.map((v, i) => v - b[i]!));
	const bytes = (hex: string) => [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
	for (const theme of ["light", "dark"] as const) {
		const frames = words.map((w) => toRgb(wordColour(w, false, theme, slots)));
		frames.push(toRgb(wordColour("", true, theme)));
		const lines = words.map((w) => bytes(lineColour(slots.get(w)!, theme)));
		for (const [colours, least] of [[frames, 30], [lines, 25]] as const) {
			colours.forEach((a, i) => {
				for (const b of colours.slice(0, i)) {
					assert.ok(away(a, b) >= least, `${theme} ${a} ${b}: ${away(a, b)}`);
				}
			});
		}
		const panel = bytes(theme === "light" ? "#ffffff" : "#151a22");
		for (const line of [...lines, bytes(lineColour(-1, theme))]) {
			assert.ok(contrast(line, panel) >= 3, `${theme} ${line}: ${contrast(line, panel)}`);
		}
	}
});

test("text can be read on every frame, in both themes", () => {
	const text: Record<Theme, number[]> = { light: [0x17, 0x20, 0x2b], dark: [0xf2, 0xf5, 0xf9] };
	for (const theme of ["light", "dark"] as const) {
		for (let i = 0; i < 300; i++) {
			for (const kind of [Kind.native, Kind.kernel, Kind.marker]) {
				const slots = new Map([[`bin${i}`, i % SLOTS]].slice(i % 2) as [string, number][]);
				const colour = frameColour(`bin${i}`, kind, i % 3 > 0, i % SHADES, theme, slots);
				const ratio = contrast(toRgb(colour), text[theme]);
				assert.ok(ratio >= 4.5, `${theme} ${toHex(colour)}: ${ratio}`);
			}
		}
	}
});

test("frames without a name are paler, markers are grey", () => {
	const named = frameColour("nginx", Kind.native, true, 1, "light");
	const bare = frameColour("nginx", Kind.native, false, 1, "light");
	assert.ok(bare.c < named.c / 2);
	assert.equal(bare.h, named.h);
	assert.equal(frameColour("", Kind.marker, true, 1, "dark").c, 0);
	assert.ok(isAddress("nginx+0x4c21f"));
	assert.ok(!isAddress("operator+(int)"));
});

test("each node gets a full and a dim pixel, and text can be read on both", () => {
	const f = sample();
	const dimText: Record<Theme, number[]> = { light: [0x50, 0x5b, 0x68], dark: [0x98, 0xa3, 0xb2] };
	for (const theme of ["light", "dark"] as const) {
		const paint = paintFlame(f, new Words(f, ""), theme);
		assert.equal(paint.full.length, f.count);
		assert.ok(paint.full.every((pixel) => pixel >>> 24 === 255));
		assert.ok(paint.full.every((pixel, i) => pixel !== paint.dim[i]));
		for (const pixel of paint.dim) {
			const rgb = [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
			assert.ok(contrast(rgb, dimText[theme]) >= 4.5, `${theme} ${rgb}`);
		}
	}
});

test("shares of words are by self value and sum to the whole", () => {
	const shares = wordShares(sample(), new Words(sample(), ""), 0);
	assert.equal(
		shares.reduce((sum, b) => sum + b.self, 0),
		100,
	);
	assert.notEqual(toHex(wordColour("", false, "light")), toHex(wordColour("a", false, "light")));
	assert.notEqual(lineColour(1, "dark"), lineColour(-1, "dark"));
});

test("one binary, or none, is shown by its packages", () => {
	assert.equal(packageOf("runtime.mallocgc"), "runtime");
	assert.equal(packageOf("python3.11+0x1a2b"), "", "a file is not a package");
	assert.equal(packageOf("github.com/polarsignals/frostdb/dynparquet.(*Schema).Cmp"), "dynparquet");
	assert.equal(packageOf("github.com/grpc-ecosystem/go-grpc-middleware/v2.Unary"), "go-grpc-middleware");
	assert.equal(packageOf("<alloc::vec::Vec<T> as core::ops::Drop>::drop"), "alloc");
	assert.equal(packageOf("std::vector<a::b>::at(int)"), "std");
	assert.equal(packageOf("memcpy"), "");
	assert.equal(packageOf("net.(*conn).Read"), "net");
	assert.equal(packageOf("foo<a.b>(c.d)"), "");
	const f = grow([["main.main", "net.read"], ["main.main", "memcpy"]]);
	const binary = f.strings[f.binary[1]!]!;
	assert.equal(mainBinary(f, false), binary);
	const node = nodeNamed(f, "net.read");
	assert.equal(new Words(f, binary).word(node), "net");
	assert.equal(new Words(f, "").word(node), binary || "net");
	assert.equal(new Words(f, binary).ofRow({ name: "net.read", binary, kind: "native" }).word, "net");
	const kernel = { name: "do_idle", binary: "[kernel.kallsyms]", kind: "native" };
	assert.ok(new Words(f, "").ofRow(kernel).kernel);
});

test("where there is neither binary nor package, each function has its word", () => {
	const f = grow([["main", "net.read"], ["main", "a.out+0x1f"]]);
	f.strings[f.binary[nodeNamed(f, "main")]!] = "";
	const words = new Words(f, "");
	assert.equal(words.word(nodeNamed(f, "main")), "main");
	assert.equal(words.word(nodeNamed(f, "net.read")), "net");
	assert.equal(words.word(nodeNamed(f, "a.out+0x1f")), "", "an address is no word");
	assert.equal(words.ofRow({ name: "main", binary: "", kind: "native" }).word, "main");
});

test("a column names the kernel by its name, and a binary by its file", () => {
	assert.equal(binaryText("[kernel.kallsyms]"), "kernel");
	assert.equal(binaryText("vmlinux"), "kernel");
	assert.equal(binaryText("/usr/lib/libglib-2.0.so.0.7400.6"), "libglib-2.0.so.0.7400.6");
	assert.equal(binaryText("[vdso]"), "[vdso]");
	assert.equal(binaryText(""), "");
});
