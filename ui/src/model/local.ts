// SPDX-License-Identifier: Apache-2.0
/**
 * Files that are opened in the page: pprof (github.com/google/pprof, proto/profile.proto),
 * speedscope (its file-format-schema), folded stacks, and the text of `perf script`. They are read
 * here and sent nowhere. A bad file throws an Error with a message.
 */
import { type Flame, Kind } from "./flame.ts";
import { parsePprof } from "./local_pprof.ts";
import { Frames, Tree } from "./stacks.ts";
import type { Span } from "./time.ts";

/** The most bytes of a file after decompression. */
export const FILE_BYTES_MAX = 512 * 1024 * 1024;

/** One way to look at a file: a type of samples, a thread. */
export interface View {
	name: string;
	flame: Flame;
	/** Comments in the file, if its format has any. */
	comments?: readonly string[];
	/** When it was taken. */
	span?: Span | undefined;
}

const KERNEL = /^\[(kernel|guest\.kernel|unknown\.kernel)|^\[.*\]$|vmlinux/;

/** "main+0x1f" without the offset. */
const plain = (name: string) => name.replace(/\+0x[0-9a-f]+$/, "");

/** Lines like "root;…;leaf value". */
function parseFolded(text: string): View[] {
	const frames = new Frames();
	const tree = new Tree(frames.all);
	let unit = "samples";
	for (const line of text.split("\n")) {
		const comment = /^#\s*unit:\s*(\w+)/.exec(line);
		if (comment) {
			unit = comment[1]!;
		}
		const [, stack, value] = /^(.*\S)\s+(\d+(?:\.\d+)?)\s*$/.exec(line) ?? [];
		if (stack && !line.startsWith("#")) {
			tree.addStack(stack.split(";").map((name) => frames.number({ name })), Number(value));
		}
	}
	return [{ name: "stacks", flame: tree.build(unit, null) }];
}

/** `perf script`: a line for the sample, an indented one for each frame, the leaf first, an empty line. */
function parsePerf(text: string): View[] {
	const frames = new Frames();
	const tree = new Tree(frames.all);
	let head = "";
	let stack: number[] = [];
	const end = () => {
		if (head !== "") {
			stack.push(frames.number({ name: head }));
			tree.addStack(stack.reverse(), 1);
		}
		head = "";
		stack = [];
	};
	for (const line of text.split("\n")) {
		const [, address, name, binary] = /^\s+([0-9a-f]+)\s+(.*?)(?:\s+\(([^()]*(?:\([^()]*\))?[^()]*)\))?\s*$/.exec(line) ?? [];
		if (line.trim() === "") {
			end();
		} else if (address && head !== "") {
			const isKernel = KERNEL.test(binary ?? "") && !/^\[(vdso|vsyscall|unknown)\]$/.test(binary ?? "");
			const known = name && name !== "[unknown]";
			const short = (binary ?? "").slice((binary ?? "").lastIndexOf("/") + 1);
			stack.push(
				frames.number({
					name: known ? plain(name) : `${short || "?"}+0x${address}`,
					binary: isKernel ? "[kernel]" : short,
					kind: isKernel ? Kind.kernel : Kind.native,
				}),
			);
		} else if (!line.startsWith("#") && /^\S/.test(line)) {
			end();
			head = /^(.*?)\s+-?\d+(?:\/\d+)?\s/.exec(line)?.[1] ?? "";
		}
	}
	end();
	return [{ name: "samples", flame: tree.build("samples", tree.samples) }];
}

interface Speedscope {
	shared?: { frames?: { name?: string; file?: string; line?: number }[] };
	profiles?: {
		type?: string;
		name?: string;
		unit?: string;
		samples?: number[][];
		weights?: number[];
		events?: { type: string; frame: number; at: number }[];
	}[];
}

const UNITS: Record<string, [unit: string, factor: number]> = {
	nanoseconds: ["nanoseconds", 1],
	microseconds: ["nanoseconds", 1e3],
	milliseconds: ["nanoseconds", 1e6],
	seconds: ["nanoseconds", 1e9],
	bytes: ["bytes", 1],
};

function parseSpeedscope(text: string): View[] {
	const file = JSON.parse(text) as Speedscope;
	const frames = new Frames();
	const list = file.shared?.frames;
	if (!Array.isArray(list) || !Array.isArray(file.profiles)) {
		throw new Error("this JSON is no speedscope file: it has no profiles");
	}
	const ids = list.map((f) => frames.number({ name: String(f.name ?? ""), file: f.file ?? "", line: f.line ?? 0 }));
	const idOf = (frame: number) => {
		const id = ids[frame];
		if (id === undefined) {
			throw new Error(`a stack names frame ${frame} of ${ids.length}`);
		}
		return id;
	};
	return file.profiles.map((p, k) => {
		const tree = new Tree(frames.all);
		const [unit, factor] = UNITS[p.unit ?? ""] ?? ["samples", 1];
		if (p.type === "evented") {
			const open: number[] = [];
			let last = p.events?.[0]?.at ?? 0;
			for (const { type, frame, at } of p.events ?? []) {
				if (open.length > 0 && at > last) {
					tree.addStack(open, (at - last) * factor);
				}
				last = at;
				if (type === "O") {
					open.push(idOf(frame));
				} else {
					open.pop();
				}
			}
		} else {
			(p.samples ?? []).forEach((stack, i) => {
				tree.addStack(stack.map(idOf), (p.weights?.[i] ?? 1) * factor);
			});
		}
		return { name: p.name || `profile ${k + 1}`, flame: tree.build(unit, null) };
	});
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
	const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
	const reader = stream.getReader();
	const parts: Uint8Array[] = [];
	let length = 0;
	for (;;) {
		const { done, value } = await reader.read();
		if (done) {
			break;
		}
		length += value.length;
		if (length > FILE_BYTES_MAX) {
			throw new Error("the file is too large once it is decompressed");
		}
		parts.push(value);
	}
	const out = new Uint8Array(length);
	let at = 0;
	for (const part of parts) {
		out.set(part, at);
		at += part.length;
	}
	return out;
}

/** Reads a file of any of these formats; views without samples are left out. */
export async function parseFile(data: Uint8Array): Promise<View[]> {
	const bytes = data[0] === 0x1f && data[1] === 0x8b ? await gunzip(data) : data;
	const head = new TextDecoder().decode(bytes.subarray(0, 4096));
	const isText = !/[\u0000-\u0008\u000e-\u001f\ufffd]/.test(head.slice(0, -4));
	const text = () => new TextDecoder().decode(bytes);
	const views = !isText
		? parsePprof(bytes)
		: /^\s*\{/.test(head)
			? parseSpeedscope(text())
			: /^\s+[0-9a-f]{4,}\s/m.test(head)
				? parsePerf(text())
				: parseFolded(text());
	const found = views.filter((view) => view.flame.total > 0);
	if (found.length === 0) {
		throw new Error("no samples were found: pprof, perf script, speedscope and folded stacks are known");
	}
	return found;
}
