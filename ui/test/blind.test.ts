// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Theme, toRgb } from "../src/model/colour.ts";
import { SAME, STEPS, verdictColour } from "../src/model/verdict.ts";

/** What eyes without one kind of cone see of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1). */
const EYES: Record<string, readonly number[]> = {
	usual: [1, 0, 0, 0, 1, 0, 0, 0, 1],
	protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
	deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
	tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};

function linear(value: number): number {
	const x = value / 255;
	return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
}

/** CIE L*a*b* of linear RGB. */
function toLab([r, g, b]: readonly number[]): number[] {
	const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
	const x = f((0.4124 * r! + 0.3576 * g! + 0.1805 * b!) / 0.95047);
	const y = f(0.2126 * r! + 0.7152 * g! + 0.0722 * b!);
	const z = f((0.0193 * r! + 0.1192 * g! + 0.9505 * b!) / 1.08883);
	return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function seen(verdict: number, theme: Theme, eye: readonly number[]): number[] {
	const rgb = toRgb(verdictColour(verdict, theme)).map(linear);
	return toLab([0, 3, 6].map((row) => Math.max(0, rgb.reduce((sum, v, i) => sum + v * eye[row + i]!, 0))));
}

const distance = (a: number[], b: number[]) => Math.hypot(...a.map((v, i) => v - b[i]!));

test("less and more than the base are told apart by the colour-blind, and so are their steps", () => {
	for (const theme of ["light", "dark"] as const) {
		for (const [name, eye] of Object.entries(EYES)) {
			const colours = STEPS.map((_, verdict) => seen(verdict, theme, eye));
			for (let i = 0; i < SAME; i++) {
				const apart = distance(colours[i]!, colours[STEPS.length - 1 - i]!);
				assert.ok(apart > 30, `${STEPS[i]!.name} and its opposite, ${theme}, ${name}: ${apart}`);
			}
			for (let i = 1; i < colours.length; i++) {
				const apart = distance(colours[i]!, colours[i - 1]!);
				assert.ok(apart > 6, `${STEPS[i - 1]!.name} and ${STEPS[i]!.name}, ${theme}, ${name}: ${apart}`);
			}
		}
	}
});
