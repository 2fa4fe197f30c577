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

/** The API's names in tables. */
const API_NAMES = ",native,kernel,cpython,jvm,v8js,ruby,php,perl,dotnet,beam,go,rust,luajit,jit,marker,lua".split(",");

/** The shown name of a runtime, from the API's name. */
export function kindOfName(name: string): string {
	return kindName(API_NAMES.indexOf(name));
}

/** The shown name of a kind's runtime: "kernel", "Python"; "": unknown. */
export function kindName(kind: number): string {
	return KINDS[kind] ?? "";
}

const MACHINE_CODE: readonly number[] = ["", "native", "kernel", "Go", "Rust"].map((name) => KINDS.indexOf(name));

/** Whether code of this kind is in an executable, so that its instructions can be listed. */
export function isMachineCode(kind: number): boolean {
	return MACHINE_CODE.includes(kind);
}
