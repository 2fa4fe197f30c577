// SPDX-License-Identifier: Apache-2.0
// Made profiles for the benchmarks of the page, as pprof: a tree of about so many frames, of 6,000 functions,
// at most 60 deep. One number gives the same profile each time.
import { gzipSync } from "node:zlib";

/** Numbers that look random and are the same in each run. */
function chance(seed) {
	let state = seed;
	return (below) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

/** Bytes of protobuf, appended one by one. */
class Writer {
	bytes = new Uint8Array(256);
	length = 0;

	room(more) {
		if (this.length + more > this.bytes.length) {
			const wider = new Uint8Array(2 * (this.length + more));
			wider.set(this.bytes.subarray(0, this.length));
			this.bytes = wider;
		}
	}

	varint(value) {
		this.room(10);
		for (; value >= 128; value = Math.floor(value / 128)) {
			this.bytes[this.length++] = (value % 128) + 128;
		}
		this.bytes[this.length++] = value;
	}

	number(field, value) {
		this.varint(field * 8);
		this.varint(value);
	}

	/** A text, bytes, or what a function writes. */
	inner(field, what) {
		let bytes = typeof what === "string" ? Buffer.from(what) : what;
		if (typeof what === "function") {
			const own = new Writer();
			what(own);
			bytes = own.done();
		}
		this.varint(field * 8 + 2);
		this.varint(bytes.length);
		this.room(bytes.length);
		this.bytes.set(bytes, this.length);
		this.length += bytes.length;
	}

	packed(field, values) {
		this.inner(field, (own) => {
			for (const value of values) {
				own.varint(value);
			}
		});
	}

	done() {
		return this.bytes.subarray(0, this.length);
	}
}

const FUNCTIONS = 6000;
const DEPTH_MAX = 60;

/** Stacks, the root first, as numbers of functions; each keeps most of the one before it. */
function makeStacks(count) {
	const next = chance(7);
	const stacks = [];
	const children = [new Map()];
	let stack = [];
	let path = [0];
	for (let nodes = 0; nodes < count; ) {
		const keep = Math.min(stack.length, next(4) === 0 ? next(stack.length + 1) : Math.max(0, stack.length - 1 - next(4)));
		stack = stack.slice(0, keep);
		path = path.slice(0, keep + 1);
		for (let more = 1 + next(8); more > 0 && stack.length < DEPTH_MAX; more--) {
			const frame = (stack.length * 101 + next(40) * 7 + (path.at(-1) % 50)) % FUNCTIONS;
			const known = children[path.at(-1)].get(frame);
			if (known === undefined) {
				children[path.at(-1)].set(frame, children.length);
				children.push(new Map());
				nodes++;
			}
			path.push(known ?? children.length - 1);
			stack.push(frame);
		}
		stacks.push([stack, 1 + next(20)]);
	}
	return { stacks, nodes: children.length - 1 };
}

/** A gzipped CPU profile taken at `atMs`, and how many frames and stacks it has. */
export function makeProfile(count, atMs) {
	const { stacks, nodes } = makeStacks(count);
	const w = new Writer();
	const type = (own) => {
		own.number(1, 1);
		own.number(2, 2);
	};
	w.inner(1, type);
	for (const [stack, value] of stacks) {
		w.inner(2, (own) => {
			own.packed(1, [...stack].reverse().map((frame) => frame + 1));
			own.packed(2, [value * 1_000_000]);
		});
	}
	for (let i = 1; i <= FUNCTIONS; i++) {
		w.inner(4, (own) => {
			own.number(1, i);
			own.inner(4, (line) => line.number(1, i));
		});
		w.inner(5, (own) => {
			own.number(1, i);
			own.number(2, i + 2);
		});
	}
	for (const text of ["", "cpu", "nanoseconds"]) {
		w.inner(6, text);
	}
	for (let i = 0; i < FUNCTIONS; i++) {
		w.inner(6, `module${i % 97}::Type${i % 331}::work_${i}`);
	}
	w.number(9, atMs * 1_000_000);
	w.number(10, 10_000_000_000);
	w.inner(11, type);
	w.number(12, 1_000_000);
	return { bytes: gzipSync(w.done(), { level: 1 }), nodes, stacks: stacks.length };
}
