// SPDX-License-Identifier: Apache-2.0
/** Runtimes of frames, by the numbers of the API. */

const KINDS = [
	"",
	"native",
	"kernel",
	"Python",
	"JVM",
	"JavaScript",
	"Ruby",
	"PHP",
	"Perl",
	".NET",
	"BEAM",
	"Go",
	"Rust",
	"LuaJIT",
	"JIT",
	"marker",
	"Lua",
];

/** The runtime of a kind in words: "kernel", "Python"; "" where it is not known. */
export function kindName(kind: number): string {
	return KINDS[kind] ?? "";
}
