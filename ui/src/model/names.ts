// SPDX-License-Identifier: Apache-2.0
/** Shortens names of functions, beginning with the least useful parts. */

/** Cuts a text to at most `room` characters; if it was cut, it ends with "…". */
export function fitText(text: string, room: number): string {
	if (text.length <= room) {
		return text;
	}
	return room < 2 ? "" : `${text.slice(0, room - 1)}…`;
}

/**
 * A place in a file without a known function: "libc.so.6+0x1234". Its dots belong to the file's
 * name.
 */
const PLACE = /^(?:.*\/)?([^/]+)(\+0x[0-9a-f]+)$/i;
/** With less room than this for the file, the offset is left out. */
const FILE_MIN = 6;

/** File and offset of a name that is a place in a file; else null. */
export function placeOf(name: string): { file: string; offset: string } | null {
	const [, file, offset] = PLACE.exec(name) ?? [];
	return file && offset ? { file, offset } : null;
}

/** Shortens a place: it keeps the begin of the file's name and the offset, or only the file. */
function fitPlace(file: string, offset: string, room: number): string {
	if (file.length + offset.length <= room) {
		return file + offset;
	}
	const left = room - offset.length;
	return left > FILE_MIN ? fitText(file, left) + offset : fitText(file, room);
}

/**
 * Whether a group in brackets is part of the name: Go's receivers, Python's "f.<locals>.<lambda>",
 * Ruby's "block in <main>", Lua's "function <app.lua:12>", namespaces and JavaScript's functions
 * without a name.
 */
function isPartOfName(name: string, at: number): boolean {
	const before = name[at - 1];
	return (
		before === "." ||
		name.startsWith(" in <", at - 4) ||
		name.startsWith("function <", at - 9) ||
		name.startsWith("(anonymous", at)
	);
}

/** The end of the group that opens at `at`; the end of the text if it is not closed. */
function groupEnd(name: string, at: number): number {
	let depth = 0;
	for (let i = at; i < name.length; i++) {
		const char = name[i]!;
		if (char === "<" || char === "(") {
			depth++;
		} else if ((char === ">" && name[i - 1] !== "-") || char === ")") {
			depth--;
			if (depth === 0) {
				return i + 1;
			}
		}
	}
	return name.length;
}

/**
 * A function name without its arguments and template arguments: "a::b<int>(char)" is "a::b". Go's
 * receivers stay: "net.(*conn).Read".
 */
export function shortName(name: string): string {
	if (/(^|[^\w])operator\b/.test(name) || name.startsWith("<") || placeOf(name)) {
		return name;
	}
	let out = "";
	for (let i = 0; i < name.length; ) {
		const char = name[i]!;
		if (char !== "<" && char !== "(") {
			out += char;
			i++;
			continue;
		}
		const end = groupEnd(name, i);
		if (isPartOfName(name, i) || (i === 0 && end === name.length)) {
			out += name.slice(i, end);
		}
		i = end;
	}
	return out.replace(/ (const|volatile|&&?)$/, "").trim() || name;
}

/** Names of closures, in Go and others, mean nothing without the function that contains them. */
const CLOSURE = /^(((func|gowrap|deferwrap)?\d+\.?)+|\{\{?closure.*|\{lambda.*|<.*)$/;

/** Where a shorter form of a name may begin, from the left: at "/", after "::" and ".". */
function starts(name: string): number[] {
	const places: number[] = [];
	let depth = 0;
	for (let i = 0; i < name.length - 1; i++) {
		const char = name[i]!;
		if ("<([{".includes(char)) {
			depth++;
		} else if (">)]}".includes(char)) {
			depth--;
		} else if (depth === 0) {
			const at = char === "/" ? i : char === "." ? i + 1 : name.startsWith("::", i) ? i + 2 : 0;
			if (at > 0 && at < name.length && !".:".includes(name[at]!)) {
				places.push(at);
			}
		}
	}
	while (places.length > 0 && CLOSURE.test(name.slice(places.at(-1)))) {
		places.pop();
	}
	return places;
}

/**
 * A name in at most `room` characters: complete, without arguments, or without the begin of its
 * path: "…/grpc.(*Server).handleStream". Only the function's own name is cut at its end.
 */
export function fitName(name: string, room: number, short = shortName(name)): string {
	if (name.length <= room) {
		return name;
	}
	if (short.length <= room) {
		return short;
	}
	const place = placeOf(name);
	if (place) {
		return fitPlace(place.file, place.offset, room);
	}
	const places = starts(short);
	for (const at of places) {
		if (short.length - at + 1 <= room) {
			return `…${short.slice(at)}`;
		}
	}
	return fitText(short.slice(places.at(-1) ?? 0).replace(/^\//, ""), room);
}

/**
 * A name in two parts, for elements that CSS cuts to their width: the first part may be cut, the
 * second identifies the function.
 */
export function splitName(name: string): [string, string] {
	const place = placeOf(name);
	if (place) {
		return [place.file, place.offset];
	}
	const short = shortName(name);
	const places = starts(short);
	const slash = short.lastIndexOf("/");
	const at = places.includes(slash) ? slash + 1 : (places.at(-2) ?? 0);
	return [short.slice(0, at), short.slice(at)];
}

/** The same for values of labels: names of pods differ at their ends. */
export function splitValue(value: string, tail = 14): [string, string] {
	return value.length <= 2 * tail ? ["", value] : [value.slice(0, -tail), value.slice(-tail)];
}
