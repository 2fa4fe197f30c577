// SPDX-License-Identifier: Apache-2.0
/**
 * Colours of frames and of lines of the chart: a word (a binary, a package, a value of a label) has
 * the same hue everywhere; the kernel is warm, markers are grey, frames without a name are pale.
 * Colours are made in OKLCH, with lightnesses on which text is readable.
 */
import { type Flame, hashString, Kind } from "./flame.ts";
import { SLOTS } from "./series.ts";
import type { Words } from "./words.ts";

/** One of the two palettes. */
export type Theme = "light" | "dark";

/** A colour of OKLCH: lightness 0..1, chroma, hue in degrees. */
export interface Lch {
	l: number;
	c: number;
	h: number;
}

function gamma(x: number): number {
	const y = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
	return Math.round(Math.min(Math.max(y, 0), 1) * 255);
}

/** OKLCH to sRGB bytes, cut to the gamut. */
export function toRgb({ l, c, h }: Lch): [number, number, number] {
	const a = c * Math.cos((h * Math.PI) / 180);
	const b = c * Math.sin((h * Math.PI) / 180);
	const x = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const y = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const z = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
	return [
		gamma(4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z),
		gamma(-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z),
		gamma(-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z),
	];
}

/** "#rrggbb". */
export function toHex(colour: Lch): string {
	return `#${toRgb(colour)
		.map((v) => v.toString(16).padStart(2, "0"))
		.join("")}`;
}

/** A pixel as ImageData keeps it on little-endian machines: 0xAABBGGRR. */
export function toPixel(colour: Lch): number {
	const [r, g, b] = toRgb(colour);
	return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

/**
 * Lightness and chroma of the palette's tones, for frames (with text on them) and lines of the
 * chart.
 */
const TONES: Record<Theme, { frame: [number, number][]; line: number[]; lineChroma: number }> = {
	light: { frame: [[0.91, 0.07], [0.83, 0.1], [0.755, 0.105]], line: [0.63, 0.6, 0.5], lineChroma: 0.13 },
	dark: { frame: [[0.4, 0.075], [0.465, 0.09], [0.525, 0.09]], line: [0.76, 0.7, 0.64], lineChroma: 0.12 },
};
const BASE: Record<Theme, { l: number; kernel: number; step: number; grey: number }> = {
	light: { l: 0.86, kernel: 0.84, step: 0.016, grey: 0.86 },
	dark: { l: 0.46, kernel: 0.47, step: -0.013, grey: 0.43 },
};

/**
 * Hue and tone of each slot, chosen so that the distances among them and to the kernel's colour are
 * as large as possible in both themes.
 */
const PALETTE: readonly [hue: number, tone: number][] = [
	[215, 0], [145, 2], [325, 2], [230, 2], [125, 0], [340, 0],
	[105, 2], [275, 2], [10, 1], [165, 1], [300, 1], [180, 2],
];

/** The slot of each word; words that are not in it are rare and get a pale colour. */
export type Slots = ReadonlyMap<string, number>;

const NO_SLOTS: Slots = new Map();

/** Hue in degrees: 48..68 for kernel code, and no other is near to that. */
export function hueOf(word: string, kernel: boolean, slots: Slots = NO_SLOTS): number {
	const hash = hashString(word);
	return kernel ? 48 + (hash % 21) : PALETTE[slots.get(word) ?? hash % SLOTS]![0];
}

/** Colour of a word (a binary, or a package of one), as in the legend. */
export function wordColour(word: string, kernel: boolean, theme: Theme, slots = NO_SLOTS): Lch {
	const h = hueOf(word, kernel, slots);
	if (kernel) {
		return { l: BASE[theme].kernel, c: 0.105, h };
	}
	if (word === "") {
		return { l: BASE[theme].grey, c: 0.012, h: 250 };
	}
	const slot = slots.get(word);
	if (slot === undefined) {
		return { l: BASE[theme].l, c: 0.035, h };
	}
	const [l, c] = TONES[theme].frame[PALETTE[slot]![1]]!;
	return { l, c, h };
}

/** Number of shades of one binary, so that neighbours can be distinguished. */
export const SHADES = 3;

/** Factor of the chroma of frames without a name. */
const PALE = 0.3;

/** Colour of a frame. `shade` is 0..SHADES-1. */
export function frameColour(
	word: string,
	kind: number,
	named: boolean,
	shade: number,
	theme: Theme,
	slots = NO_SLOTS,
): Lch {
	if (kind === Kind.marker) {
		return { l: theme === "light" ? 0.9 : 0.37, c: 0, h: 0 };
	}
	const { l, c, h } = wordColour(word, kind === Kind.kernel, theme, slots);
	const away = theme === "light" ? shade - 1 : shade;
	return { l: l + away * BASE[theme].step, c: named ? c : c * PALE, h };
}

/**
 * Colour of a line of the chart: the hue of its slot, with enough contrast; slot below 0: the rest.
 */
export function lineColour(slot: number, theme: Theme): string {
	if (slot < 0) {
		return toHex({ l: theme === "light" ? 0.62 : 0.6, c: 0.008, h: 250 });
	}
	const [h, tone] = PALETTE[slot]!;
	return toHex({ l: TONES[theme].line[tone]!, c: TONES[theme].lineChroma, h });
}

/** The pixel of each node, full and dimmed (for frames that do not match). */
export interface Paint {
	full: Uint32Array;
	dim: Uint32Array;
}

function dimmed(colour: Lch, theme: Theme): Lch {
	return theme === "light"
		? { l: 0.95, c: colour.c * 0.14, h: colour.h }
		: { l: 0.27, c: colour.c * 0.18, h: colour.h };
}

/** Whether a name is an address: "binary+0x1f". */
export function isAddress(name: string): boolean {
	return /\+0x[0-9a-f]+$/.test(name);
}

/** Colours every node of a graph; a few hundred distinct colours, found once each. */
export function paintFlame(f: Flame, words: Words, theme: Theme, slots = NO_SLOTS): Paint {
	const full = new Uint32Array(f.count);
	const dim = new Uint32Array(f.count);
	const shades = Uint8Array.from(f.strings, (s) => hashString(s) % SHADES);
	const bare = Uint8Array.from(f.strings, (s) => (s === "" || isAddress(s) ? 1 : 0));
	const seen = new Map<number, [number, number]>();
	for (let i = 0; i < f.count; i++) {
		const name = f.name[i]!;
		const kind = words.isKernel(i) ? Kind.kernel : f.kind[i]!;
		const group = (words.id(i) * 32 + kind) * 2 + bare[name]!;
		const key = group * SHADES + shades[name]!;
		let pair = seen.get(key);
		if (!pair) {
			const colour = frameColour(words.word(i), kind, !bare[name], shades[name]!, theme, slots);
			pair = [toPixel(colour), toPixel(dimmed(colour, theme))];
			seen.set(key, pair);
		}
		full[i] = pair[0];
		dim[i] = pair[1];
	}
	return { full, dim };
}
