// SPDX-License-Identifier: Apache-2.0
// A small gzipped profile.proto, as the server keeps one for a snapshot.
import { gzipSync } from "node:zlib";

function varint(n) {
	return n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))];
}

/** Protobuf: fields of numbers, texts and inner messages. */
export function message(...fields) {
	return fields.flatMap(([field, value]) => {
		if (typeof value === "number") return [...varint(field * 8), ...varint(value)];
		const inner = typeof value === "string" ? [...Buffer.from(value)] : value;
		return [...varint(field * 8 + 2), ...varint(inner.length), ...inner];
	});
}

/** main → parse → read 30 ms, main → write 10 ms, of the 15 minutes before `now`. */
export function snapshotOf(type, now) {
	const iso = (ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
	const names = ["main", "parse", "read", "write"];
	const strings = ["", "cpu", "nanoseconds", `firn: ${type}{} from ${iso(now - 9e5)} to ${iso(now)}`, ...names];
	const at = (name) => names.indexOf(name) + 1;
	const stack = (value, ...calls) => [2, message([1, calls.reverse().map(at)], [2, [...varint(value)]])];
	return gzipSync(
		Buffer.from(
			message(
				[1, message([1, 1], [2, 2])],
				stack(30_000_000, "main", "parse", "read"),
				stack(10_000_000, "main", "write"),
				...names.flatMap((name) => [
					[4, message([1, at(name)], [4, message([1, at(name)])])],
					[5, message([1, at(name)], [2, at(name) + 3])],
				]),
				[13, 3],
				...strings.map((text) => [6, text]),
			),
		),
	);
}
