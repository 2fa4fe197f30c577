// SPDX-License-Identifier: Apache-2.0
/**
 * The words by which frames are coloured: the binary; without one, or if nearly all frames are of
 * one binary, the package of the function; without either, as in a file of folded stacks, the
 * function.
 */
import { type Flame, Kind } from "./flame.ts";
import { placeOf } from "./names.ts";

/** A binary with more than this share of the samples is shown by its packages. */
const ONE_BINARY = 0.75;
/** The kernel's names in pprof files of other profilers. */
const KERNEL = /^(\[kernel|\[vmlinux|vmlinux$|\[guest\.kernel)/;

/** "grpc" of "google.golang.org/grpc.(*Server).Serve", "std" of "std::vector<int>::at"; or "". */
export function packageOf(name: string): string {
	if (placeOf(name)) {
		return "";
	}
	const base = /^[<&*\s]*(?:(?:mut|dyn) )?([^\s<([]*)/.exec(name)?.[1] ?? "";
	const path = base.split("/");
	const first = /^([\w~$-]+?)(?:::|\.)./.exec(`${path.at(-1)}.`)?.[1] ?? "";
	if (path.length > 1 && /^v\d+$/.test(first)) {
		return path.at(-2) ?? first;
	}
	return /(::|\.)/.test(path.at(-1) ?? "") ? first : "";
}

/** The word of a function without binary and package: its name, unless that is an address. */
function placeless(name: string): string {
	return placeOf(name) ? "" : name;
}

/** The last part of a path, as in labels. */
export function baseName(path: string): string {
	return path.slice(path.lastIndexOf("/") + 1);
}

/** A binary in a column: its file, or "kernel". */
export function binaryText(binary: string): string {
	return /^(\[kernel|\[?vmlinux)/.test(binary) ? "kernel" : baseName(binary);
}

/** The words of the nodes of a graph. */
export class Words {
	private readonly f: Flame;
	/** By index of `strings`: the package of a name, if it was computed. */
	private readonly packages: (number | undefined)[] = [];
	private readonly ids = new Map<string, number>();
	private readonly texts: string[] = [];
	private readonly binaries: Int32Array;
	private readonly kernels: Uint8Array;
	private readonly split: string;

	/** `split`: the binary that is shown by its packages. */
	constructor(f: Flame, split: string) {
		this.f = f;
		this.split = split;
		this.binaries = Int32Array.from(f.strings, (s) => this.idOf(s));
		this.kernels = Uint8Array.from(f.strings, (s) => (KERNEL.test(s) ? 1 : 0));
	}

	private idOf(text: string): number {
		let id = this.ids.get(text);
		if (id === undefined) {
			id = this.texts.push(text) - 1;
			this.ids.set(text, id);
		}
		return id;
	}

	/** A number for the word of a node. */
	id(i: number): number {
		const { f } = this;
		const binary = f.strings[f.binary[i]!]!;
		const whole = f.kind[i] === Kind.kernel || f.kind[i] === Kind.marker || i === 0;
		if (whole || (binary !== "" && binary !== this.split)) {
			return this.binaries[f.binary[i]!]!;
		}
		const name = f.name[i]!;
		const text = f.strings[name]!;
		this.packages[name] ??= this.idOf(packageOf(text) || binary || placeless(text));
		return this.packages[name]!;
	}

	word(i: number): string {
		return this.texts[this.id(i)]!;
	}

	isKernel(i: number): boolean {
		return this.f.kind[i] === Kind.kernel || this.kernels[this.f.binary[i]!] === 1;
	}

	/** The same for a row of the table. */
	ofRow(row: { name: string; binary: string; kind: string }): { word: string; kernel: boolean } {
		const kernel = row.kind === "kernel" || KERNEL.test(row.binary);
		const isSplit = !kernel && row.kind !== "marker" && (row.binary === "" || row.binary === this.split);
		return { word: (isSplit && (packageOf(row.name) || row.binary || placeless(row.name))) || row.binary, kernel };
	}
}

/** A word with its share by self value. */
export interface WordShare {
	word: string;
	kernel: boolean;
	/** Sum of self values. */
	self: number;
}

/**
 * The words of the subtree of `root`, by descending self value. In a graph of callers the functions
 * that ran are the root's children, so their values count.
 */
export function wordShares(f: Flame, words: Words, root: number, callers = false): WordShare[] {
	const sums = new Map<number, WordShare>();
	const add = (i: number, value: number) => {
		if (value === 0 || f.kind[i] === Kind.marker) {
			return;
		}
		const id = words.id(i);
		const found = sums.get(id);
		if (found) {
			found.self += value;
		} else {
			sums.set(id, { word: words.word(i), kernel: words.isKernel(i), self: value });
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
	return [...sums.values()].sort((a, b) => b.self - a.self || (a.word < b.word ? -1 : 1));
}

/**
 * The words that get distinguishable colours, by self value. Packages of one binary take more room
 * in the graph than their self values, so half of these colours go by total value.
 */
export function commonWords(f: Flame, words: Words, callers: boolean, split: string): string[] {
	const usable = (w: WordShare) => w.word !== "" && !w.kernel;
	const bySelf = wordShares(f, words, 0, callers).filter(usable).map((w) => w.word);
	if (split === "") {
		return bySelf;
	}
	const area = new Map<string, number>();
	for (let i = 1; i < f.count; i++) {
		if (f.kind[i] !== Kind.marker && !words.isKernel(i)) {
			const word = words.word(i);
			area.set(word, (area.get(word) ?? 0) + f.value[i]!);
		}
	}
	area.delete("");
	const byArea = [...area].sort((a, b) => b[1] - a[1]).map(([word]) => word);
	return [...bySelf.slice(0, 6), ...byArea];
}

/** The binary that has nearly all samples of a graph, or "". */
export function mainBinary(f: Flame, callers: boolean): string {
	const [first] = wordShares(f, new Words(f, "\n"), 0, callers).filter((w) => !w.kernel);
	return first && first.self > ONE_BINARY * f.value[0]! ? first.word : "";
}
