// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	binaryColour,
	binaryShares,
	frameColour,
	hueOf,
	isAddress,
	lineColour,
	paintFlame,
	type Theme,
	toHex,
	toPixel,
	toRgb,
} from "../src/model/colour.ts";
import { Kind } from "../src/model/flame.ts";
import { sample } from "./make.ts";

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

test("the kernel is warm, everything else is not", () => {
	for (let i = 0; i < 500; i++) {
		const kernel = hueOf(`module${i}`, true);
		const user = hueOf(`lib${i}.so`, false);
		assert.ok(kernel >= 38 && kernel <= 68);
		assert.ok(user >= 120 && user < 360);
	}
	assert.equal(hueOf("libc.so.6", false), hueOf("libc.so.6", false));
});

test("text can be read on every frame, in both themes", () => {
	const text: Record<Theme, number[]> = { light: [0x17, 0x20, 0x2b], dark: [0xf2, 0xf5, 0xf9] };
	for (const theme of ["light", "dark"] as const) {
		for (let i = 0; i < 300; i++) {
			for (const kind of [Kind.native, Kind.kernel, Kind.marker]) {
				const colour = frameColour(`bin${i}`, kind, i % 2 === 0, i % 3, theme);
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

test("each node gets a full and a dim pixel", () => {
	const f = sample();
	const paint = paintFlame(f, "dark");
	assert.equal(paint.full.length, f.count);
	assert.ok(paint.full.every((pixel) => pixel >>> 24 === 255));
	assert.ok(paint.full.every((pixel, i) => pixel !== paint.dim[i]));
});

test("shares of binaries are by self value and sum to the whole", () => {
	const shares = binaryShares(sample(), 0);
	assert.equal(
		shares.reduce((sum, b) => sum + b.self, 0),
		100,
	);
	assert.notEqual(
		toHex(binaryColour("", false, "light")),
		toHex(binaryColour("a", false, "light")),
	);
	assert.notEqual(lineColour(1, 12, "dark"), lineColour(-1, 12, "dark"));
});
