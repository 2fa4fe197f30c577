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

/** As the API writes them in tables. */
const API_NAMES = ",native,kernel,cpython,jvm,v8js,ruby,php,perl,dotnet,beam,go,rust,luajit,jit,marker,lua".split(",");

/** The runtime that the API calls so, in words. */
export function kindOfName(name: string): string {
	return kindName(API_NAMES.indexOf(name));
}

/** The runtime of a kind in words: "kernel", "Python"; "" where it is not known. */
export function kindName(kind: number): string {
	return KINDS[kind] ?? "";
}
