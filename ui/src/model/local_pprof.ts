// SPDX-License-Identifier: Apache-2.0
/** profile.proto of pprof, as far as graphs need it; uncompressed. */
import { Kind } from "./flame.ts";
import type { View } from "./local.ts";
import { Frames, Tree } from "./stacks.ts";

/** The most frames of one stack. */
const STACK_MAX = 10_000;

/** The latest time of a Date, in milliseconds since 1970. */
const TIME_MAX_MS = 8.64e15;

/** A bounded reader over one message. */
class Message {
	private at: number;
	private readonly end: number;
	private readonly bytes: Uint8Array;
	/** Number and wire type of the field that next() found. */
	field = 0;
	wire = 0;

	constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
		this.bytes = bytes;
		this.at = at;
		this.end = end;
	}

	private fail(what: string): never {
		throw new Error(`this is no pprof file: ${what} at byte ${this.at}`);
	}

	/** A number; above 2^53 its low bits are lost. */
	varint(): number {
		let value = 0;
		let factor = 1;
		for (let i = 0; i < 10; i++) {
			if (this.at >= this.end) {
				this.fail("a number is cut off");
			}
			const byte = this.bytes[this.at++]!;
			value += (byte & 0x7f) * factor;
			if (byte < 0x80) {
				return value;
			}
			factor *= 128;
		}
		return this.fail("a number is too long");
	}

	/** A number in hexadecimal, exact. */
	hex(): string {
		const from = this.at;
		this.varint();
		let value = 0n;
		for (let i = this.at - 1; i >= from; i--) {
			value = (value << 7n) | BigInt(this.bytes[i]! & 0x7f);
		}
		return BigInt.asUintN(64, value).toString(16);
	}

	/** Whether there is another field. */
	next(): boolean {
		if (this.at >= this.end) {
			return false;
		}
		const key = this.varint();
		this.field = Math.floor(key / 8);
		this.wire = key % 8;
		return true;
	}

	/** The message or text of this field. */
	inner(): Message {
		if (this.wire !== 2) {
			this.fail(`field ${this.field} is no message`);
		}
		const length = this.varint();
		if (length > this.end - this.at) {
			this.fail(`field ${this.field} is longer than the file`);
		}
		const inner = new Message(this.bytes, this.at, this.at + length);
		this.at += length;
		return inner;
	}

	text(): string {
		return new TextDecoder().decode(this.bytes.subarray(this.at, this.end));
	}

	/** Skips the field. */
	skip(): void {
		if (this.wire === 0) {
			this.varint();
		} else if (this.wire === 2) {
			this.inner();
		} else if (this.wire === 1 || this.wire === 5) {
			this.at += this.wire === 1 ? 8 : 4;
		} else {
			this.fail(`field ${this.field} has no known form`);
		}
	}

	/** A repeated number, packed or not. */
	numbers(into: number[]): void {
		if (this.wire === 0) {
			into.push(this.varint());
			return;
		}
		const inner = this.inner();
		while (inner.at < inner.end) {
			into.push(inner.varint());
			if (into.length > STACK_MAX) {
				this.fail(`a stack of more than ${STACK_MAX} frames`);
			}
		}
	}
}

/** The numbers of a message by their fields; other fields are skipped. */
function fields(m: Message): Record<number, number> {
	const out: Record<number, number> = {};
	while (m.next()) {
		if (m.wire === 0) {
			out[m.field] = m.varint();
		} else {
			m.skip();
		}
	}
	return out;
}

interface Location {
	mapping: number;
	address: string;
	lines: { function: number; line: number }[];
}

function location(m: Message): [number, Location] {
	const out: Location = { mapping: 0, address: "", lines: [] };
	let id = 0;
	while (m.next()) {
		if (m.field === 1) {
			id = m.varint();
		} else if (m.field === 2) {
			out.mapping = m.varint();
		} else if (m.field === 3) {
			out.address = m.hex();
		} else if (m.field === 4) {
			const line = fields(m.inner());
			out.lines.push({ function: line[1] ?? 0, line: line[2] ?? 0 });
		} else {
			m.skip();
		}
	}
	return [id, out];
}

/** A graph for each type of samples; the last one first, as pprof shows it. */
export function parsePprof(bytes: Uint8Array): View[] {
	const types: Record<number, number>[] = [];
	const samples: { stack: number[]; values: number[] }[] = [];
	const mappings = new Map<number, Record<number, number>>();
	const locations = new Map<number, Location>();
	const functions = new Map<number, Record<number, number>>();
	const strings: string[] = [];
	const comments: number[] = [];
	let fromMs = 0;
	let lengthMs = 0;
	const m = new Message(bytes);
	while (m.next()) {
		if (m.field === 1) {
			types.push(fields(m.inner()));
		} else if (m.field === 2) {
			const inner = m.inner();
			const sample = { stack: [] as number[], values: [] as number[] };
			while (inner.next()) {
				if (inner.field === 1 || inner.field === 2) {
					inner.numbers(inner.field === 1 ? sample.stack : sample.values);
				} else {
					inner.skip();
				}
			}
			samples.push(sample);
		} else if (m.field === 3 || m.field === 5) {
			const one = fields(m.inner());
			(m.field === 3 ? mappings : functions).set(one[1] ?? 0, one);
		} else if (m.field === 4) {
			locations.set(...location(m.inner()));
		} else if (m.field === 6) {
			strings.push(m.inner().text());
		} else if (m.field === 13) {
			m.numbers(comments);
		} else if (m.field === 9 && m.wire === 0) {
			fromMs = m.varint() / 1e6;
		} else if (m.field === 10 && m.wire === 0) {
			lengthMs = m.varint() / 1e6;
		} else {
			m.skip();
		}
	}
	const text = (i: number | undefined) => strings[i ?? 0] ?? "";
	const frames = new Frames();
	/** Frames of a location, the outermost first. */
	const framesOf = new Map<number, number[]>();
	for (const [id, one] of locations) {
		const path = text(mappings.get(one.mapping)?.[5]);
		const binary = path.slice(path.lastIndexOf("/") + 1);
		const kind = /^\[(kernel|guest)|vmlinux/.test(binary) ? Kind.kernel : Kind.native;
		const lines = one.lines.map(({ function: f, line }, i) => {
			const fn = functions.get(f);
			const name = text(fn?.[2]) || text(fn?.[3]);
			return frames.number({ name, binary, kind, file: text(fn?.[4]), line, inlined: i < one.lines.length - 1 });
		});
		const bare = () => [frames.number({ name: `${binary || "?"}+0x${one.address || "0"}`, binary, kind })];
		framesOf.set(id, lines.length > 0 ? lines.reverse() : bare());
	}
	const span = fromMs > 0 && fromMs + lengthMs <= TIME_MAX_MS ? { fromMs, toMs: fromMs + lengthMs } : undefined;
	const about = { comments: comments.map(text), span };
	const views = types.map((type, k) => {
		const tree = new Tree(frames.all);
		for (const { stack, values } of samples) {
			// negative numbers are encoded as very large ones: a difference cannot be a graph
			const value = values[k] ?? 0;
			if (value > 0 && value < 2 ** 63) {
				tree.addStack(outermostFirst(stack, framesOf), value);
			}
		}
		return { name: `${text(type[1])} (${text(type[2])})`, flame: tree.build(text(type[2]), null), ...about };
	});
	return views.reverse();
}

/** The frames of a stack whose leaf comes first. */
function outermostFirst(stack: readonly number[], framesOf: ReadonlyMap<number, number[]>): number[] {
	const out: number[] = [];
	for (let i = stack.length - 1; i >= 0; i--) {
		out.push(...(framesOf.get(stack[i]!) ?? []));
	}
	return out;
}
