// SPDX-License-Identifier: Apache-2.0
/**
 * Colours of frames: the hue says which binary, the same on every machine and every day; the kernel
 * is warm, markers are grey, frames without a name are pale. Lightness is held constant in OKLCH,
 * so text reads equally well on each.
 */
import { type Flame, hashString, Kind } from "./flame.ts";

/** Which of the two palettes. */
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

const BASE: Record<Theme, { l: number; c: number; step: number; pale: number }> = {
	light: { l: 0.86, c: 0.071, step: 0.016, pale: 0.3 },
	dark: { l: 0.46, c: 0.072, step: -0.017, pale: 0.3 },
};

/** Hue of a binary in degrees: kernel code 38..68, everything else 120..360. */
export function hueOf(binary: string, kernel: boolean): number {
	if (kernel) {
		return 38 + (hashString(binary) % 31);
	}
	const spread = (Math.imul(hashString(binary), 0x9e3779b1) >>> 8) % 240;
	return 120 + spread;
}

/** Colour of a binary, as in the legend. */
export function binaryColour(binary: string, kernel: boolean, theme: Theme): Lch {
	const base = BASE[theme];
	if (binary === "" && !kernel) {
		return { l: base.l, c: 0.012, h: 250 };
	}
	const strong = kernel ? 1.25 : 1 + ((hashString(binary) >>> 5) % 3) * 0.16;
	return { l: base.l, c: base.c * strong, h: hueOf(binary, kernel) };
}

/** Shades of one binary, so that neighbours can be told apart. */
export const SHADES = 3;

/** Colour of a frame. `shade` is 0..SHADES-1. */
export function frameColour(
	binary: string,
	kind: number,
	named: boolean,
	shade: number,
	theme: Theme,
): Lch {
	const base = BASE[theme];
	if (kind === Kind.marker) {
		return { l: theme === "light" ? 0.9 : 0.37, c: 0, h: 0 };
	}
	const colour = binaryColour(binary, kind === Kind.kernel, theme);
	return {
		l: colour.l + (shade - 1) * base.step,
		c: named ? colour.c : colour.c * base.pale,
		h: colour.h,
	};
}

/** Colour of a line of the chart. `slot` is one of `slots` hues; below 0: everything else. */
export function lineColour(slot: number, slots: number, theme: Theme): string {
	const l = theme === "light" ? 0.66 : 0.7;
	if (slot < 0) {
		return toHex({ l: theme === "light" ? 0.8 : 0.45, c: 0.008, h: 250 });
	}
	return toHex({ l: l + (slot % 2) * 0.05, c: 0.115, h: (245 + (slot * 360) / slots) % 360 });
}

/** The pixel of each node, full and dimmed (for frames that do not match). */
export interface Paint {
	full: Uint32Array;
	dim: Uint32Array;
}

function dimmed(colour: Lch, theme: Theme): Lch {
	return theme === "light"
		? { l: 0.945, c: colour.c * 0.14, h: colour.h }
		: { l: 0.29, c: colour.c * 0.18, h: colour.h };
}

/** Whether a name stands for an address: "binary+0x1f". */
export function isAddress(name: string): boolean {
	return /\+0x[0-9a-f]+$/.test(name);
}

/** Colours every node of a graph; a few hundred distinct colours, found once each. */
export function paintFlame(f: Flame, theme: Theme): Paint {
	const full = new Uint32Array(f.count);
	const dim = new Uint32Array(f.count);
	const shades = Uint8Array.from(f.strings, (s) => hashString(s) % SHADES);
	const bare = Uint8Array.from(f.strings, (s) => (s === "" || isAddress(s) ? 1 : 0));
	const seen = new Map<number, [number, number]>();
	for (let i = 0; i < f.count; i++) {
		const name = f.name[i]!;
		const group = (f.binary[i]! * 16 + f.kind[i]!) * 2 + bare[name]!;
		const key = group * SHADES + shades[name]!;
		let pair = seen.get(key);
		if (!pair) {
			const binary = f.strings[f.binary[i]!] ?? "";
			const colour = frameColour(binary, f.kind[i]!, !bare[name], shades[name]!, theme);
			pair = [toPixel(colour), toPixel(dimmed(colour, theme))];
			seen.set(key, pair);
		}
		full[i] = pair[0];
		dim[i] = pair[1];
	}
	return { full, dim };
}

/** A binary of a graph, with its share by self value. */
export interface BinaryShare {
	/** Index of `strings`. */
	id: number;
	name: string;
	kernel: boolean;
	/** Sum of self values. */
	self: number;
}

/**
 * The binaries of the subtree of `root`, by descending self value. In a graph of callers the
 * functions that ran are the root's children, so their values count.
 */
export function binaryShares(f: Flame, root: number, callers = false): BinaryShare[] {
	const sums = new Map<number, BinaryShare>();
	const add = (i: number, value: number) => {
		if (value === 0 || f.kind[i] === Kind.marker) {
			return;
		}
		const id = f.binary[i]!;
		const found = sums.get(id);
		if (found) {
			found.self += value;
		} else {
			const kernel = f.kind[i] === Kind.kernel;
			sums.set(id, { id, name: f.strings[id] ?? "", kernel, self: value });
		}
	};
	if (callers) {
		for (let i = 1; i < f.count; i = f.end[i]!) {
			add(i, f.value[i]!);
		}
	} else {
		for (let i = root; i < f.end[root]!; i++) {
			add(i, f.self[i]!);
		}
	}
	return [...sums.values()].sort((a, b) => b.self - a.self || (a.name < b.name ? -1 : 1));
}
