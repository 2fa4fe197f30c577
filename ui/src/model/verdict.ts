// SPDX-License-Identifier: Apache-2.0
/**
 * Rates the difference of two values: its size, and whether there are enough samples to be sure.
 */
import type { Lch, Paint, Theme } from "./colour.ts";
import { toPixel } from "./colour.ts";
import type { Diff } from "./diff.ts";
import { Kind } from "./flame.ts";

/** Steps from gone to new; `unknown`: the difference may be chance. */
export const STEPS = [
	{ name: "gone", least: -1 },
	{ name: "\u2212 50 %", least: -Infinity },
	{ name: "\u2212 20 %", least: -1 / 3 },
	{ name: "\u2212 5 %", least: -1 / 9 },
	{ name: "same", least: -1 / 41 },
	{ name: "+ 5 %", least: 1 / 41 },
	{ name: "+ 25 %", least: 1 / 9 },
	{ name: "+ 100 %", least: 1 / 3 },
	{ name: "new", least: 1 },
] as const;
export const GONE = 0;
export const SAME = 4;
export const NEW = 8;
export const UNKNOWN = 9;

/** With fewer samples of both sides together a difference is `unknown`. */
const SAMPLES_MIN = 5;
/** The least difference in standard deviations: chance exceeds it once in a hundred cases. */
const DEVIATIONS = 2.58;

/** Whether two values of a comparison differ by more than chance. */
export function isSure(d: Pick<Diff, "total" | "samples" | "absolute">, a: number, b: number): boolean {
	const [n, m] = d.samples;
	if (n === null || m === null || d.total[0] <= 0 || d.total[1] <= 0) {
		return true;
	}
	const x = (a / d.total[0]) * n;
	const y = (b / d.total[1]) * m;
	if (x + y < SAMPLES_MIN) {
		return false;
	}
	if (d.absolute) {
		return Math.abs(x - y) >= DEVIATIONS * Math.sqrt(x + y);
	}
	const p = Math.min((x + y) / (n + m), 1);
	const spread = Math.sqrt(p * (1 - p) * (1 / n + 1 / m));
	return Math.abs(x / n - y / m) >= DEVIATIONS * spread;
}

/** The step of a pair of values, an index of STEPS, or UNKNOWN. */
export function verdictOf(
	d: Pick<Diff, "total" | "samples" | "absolute" | "scale">,
	a: number,
	b: number,
): number {
	const base = b * d.scale;
	if (a + base <= 0) {
		return SAME;
	}
	const ratio = (a - base) / (a + base);
	if (Math.abs(ratio) < STEPS[SAME + 1]!.least) {
		return SAME;
	}
	if (!isSure(d, a, b)) {
		return UNKNOWN;
	}
	if (a === 0 || b === 0) {
		return a === 0 ? GONE : NEW;
	}
	const size = Math.abs(ratio);
	const steps = size < 1 / 9 ? 1 : size < 1 / 3 ? 2 : 3;
	return SAME + (ratio < 0 ? -steps : steps);
}

/** "+25 %", "−50 %", "12 ×", "new", "gone"; "" where both are 0. */
export function formatChange(a: number, base: number): string {
	if (a === 0 && base === 0) {
		return "";
	}
	if (a === 0 || base === 0) {
		return a === 0 ? "gone" : "new";
	}
	const times = a / base;
	if (times >= 10) {
		return `${Math.round(times).toLocaleString("en-US")} \u00d7`;
	}
	const percent = 100 * (times - 1);
	const text = Math.abs(percent).toFixed(Math.abs(percent) < 9.95 ? 1 : 0);
	return text === "0.0" ? "0 %" : `${percent < 0 ? "\u2212" : "+"}${text} %`;
}

/**
 * Less is blue and more is orange, which colour-blind people can distinguish; text is readable on
 * both.
 */
const LESS = 250;
const MORE = 55;
const TONES: Record<Theme, { less: [number, number][]; more: [number, number][]; same: Lch; unknown: Lch }> = {
	light: {
		less: [[0.64, 0.14], [0.73, 0.115], [0.81, 0.085], [0.885, 0.05]],
		more: [[0.905, 0.055], [0.84, 0.1], [0.765, 0.14], [0.69, 0.165]],
		same: { l: 0.915, c: 0.006, h: 250 },
		unknown: { l: 0.96, c: 0.003, h: 250 },
	},
	dark: {
		less: [[0.53, 0.15], [0.475, 0.12], [0.425, 0.09], [0.38, 0.06]],
		more: [[0.39, 0.05], [0.435, 0.08], [0.485, 0.105], [0.535, 0.125]],
		same: { l: 0.335, c: 0.008, h: 250 },
		unknown: { l: 0.27, c: 0.006, h: 250 },
	},
};

/** The colour of a verdict. */
export function verdictColour(verdict: number, theme: Theme): Lch {
	const tones = TONES[theme];
	if (verdict === UNKNOWN || verdict === SAME) {
		return verdict === SAME ? tones.same : tones.unknown;
	}
	const less = verdict < SAME;
	const [l, c] = less ? tones.less[verdict]! : tones.more[verdict - SAME - 1]!;
	return { l, c, h: less ? LESS : MORE };
}

/** Colours the nodes of a comparison by their verdicts. */
export function paintDiff(d: Diff, theme: Theme): { paint: Paint; verdicts: Uint8Array } {
	const { count } = d.flame;
	const verdicts = new Uint8Array(count);
	const full = new Uint32Array(count);
	const dim = new Uint32Array(count);
	const pixels = [...STEPS.keys(), UNKNOWN].map((v) => toPixel(verdictColour(v, theme)));
	const faded = [...STEPS.keys(), UNKNOWN].map((v) => {
		const { c, h } = verdictColour(v, theme);
		return toPixel(theme === "light" ? { l: 0.965, c: c * 0.15, h } : { l: 0.24, c: c * 0.2, h });
	});
	for (let i = 0; i < count; i++) {
		const verdict = d.flame.kind[i] === Kind.marker ? SAME : verdictOf(d, d.value[0][i]!, d.value[1][i]!);
		verdicts[i] = verdict;
		full[i] = pixels[verdict]!;
		dim[i] = faded[verdict]!;
	}
	return { paint: { full, dim }, verdicts };
}
