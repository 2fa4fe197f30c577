// SPDX-License-Identifier: Apache-2.0
/** The lines of a source file, or the instructions of a function, with their values, as rows of a listing. */

/** A row of the listing; values in the unit of the profile. */
export interface CodeRow {
	/** Number of the line, or of the instruction in the function. */
	at: number;
	/** The line's number or the instruction's address, as text. */
	label: string;
	text: string;
	/** It is a source line between instructions, without values of its own. */
	between?: boolean;
	self: number;
	total: number;
}

/** A place with values: line, self, total. */
export type Place = readonly [at: number, self: number, total: number];

/** The most lines of a file that are shown; of further ones only those with values. */
export const LINES_MAX = 200_000;

/** Removes the carriage return at the end. */
const expand = (line: string) => line.replace(/\r$/, "");

/**
 * All lines of the text, or without a text those that have values. Places beyond its end are rows
 * without text.
 */
export function codeRows(text: string | null, places: readonly Place[]): CodeRow[] {
	const rows: CodeRow[] = [];
	if (text !== null) {
		const lines = text.split("\n");
		if (lines.length > 1 && lines[lines.length - 1] === "") {
			lines.pop();
		}
		for (const line of lines.slice(0, LINES_MAX)) {
			const at = rows.length + 1;
			rows.push({ at, label: String(at), text: expand(line), self: 0, total: 0 });
		}
	}
	const there = rows.length;
	for (const [at, self, total] of places) {
		const row = at >= 1 && at <= there ? rows[at - 1]! : null;
		if (row) {
			row.self = self;
			row.total = total;
		} else {
			rows.push({ at, label: String(at), text: "", self, total });
		}
	}
	return rows;
}

/**
 * An instruction: address in hex, text, self, total, and its innermost source line if that is
 * known.
 */
export type Instruction = readonly [
	address: string,
	text: string,
	self: number,
	total: number,
	file?: string,
	line?: number,
	name?: string,
];

/** Instructions, with the source line above the first of each run of its instructions. */
export function instructionRows(list: readonly Instruction[], file: string, text: string | null): CodeRow[] {
	const lines = text?.split("\n") ?? [];
	const rows: CodeRow[] = [];
	let last = "";
	for (const [i, [address, code, self, total, from = "", line = 0, name = ""]] of list.entries()) {
		const place = line > 0 ? `${from.slice(from.lastIndexOf("/") + 1)}:${line}` : "";
		if (place !== "" && `${place} ${name}` !== last) {
			const source = from === file ? (lines[line - 1] ?? "").trim() : "";
			rows.push({ at: 0, label: place, text: source || name, self: 0, total: 0, between: true });
		}
		last = `${place} ${name}`;
		rows.push({ at: i + 1, label: address, text: code, self, total });
	}
	return rows;
}

/** Whether lines with values are missing in the text, as another version of the file ran. */
export function isShort(text: string | null, places: readonly Place[]): boolean {
	const last = places[places.length - 1];
	return text !== null && last !== undefined && last[0] > text.split("\n").length;
}

/**
 * How many lines after the one that the program gives for a function its name may be: decorators
 * and a long type may come before it.
 */
const NEAR_LINES = 12;

/**
 * The line where the text defines a function, if the program has it at another line, and so is of
 * another version. 0: the line is the same, or unknown (a function made by a macro, an operator).
 */
export function movedTo(text: string | null, name: string, line: number): number {
	const plain = name.replace(/<[^<>]*>|\([^()]*\)/g, "").trim();
	const word = /(?:^|[^\w$])([A-Za-z_]\w{2,})$/.exec(plain)?.[1] ?? "";
	if (text === null || word === "" || line <= 0) {
		return 0;
	}
	const lines = text.split("\n");
	const has = new RegExp(`\\b${word}\\b`);
	if (lines.slice(Math.max(0, line - 3), line + NEAR_LINES).some((one) => has.test(one))) {
		return 0;
	}
	// a definition: its name before its arguments, and no statement
	const defines = new RegExp(`^(?!\\s*(?:return|else|if|while|for)\\b)[^;="'#]*\\b${word}\\s*(?:<[^>]*>)?\\([^;]*$`);
	let best = 0;
	for (const [i, one] of lines.entries()) {
		if (defines.test(one) && (best === 0 || Math.abs(i + 1 - line) < Math.abs(best - line))) {
			best = i + 1;
		}
	}
	return best;
}

/** Indexes of the rows with the largest self values, in descending order. */
export function hotRows(rows: readonly CodeRow[], count = 20): number[] {
	const weight = (row: CodeRow) => row.self * 1e6 + row.total;
	return rows
		.map((row, i) => ({ i, weight: weight(row) }))
		.filter((one) => one.weight > 0)
		.sort((a, b) => b.weight - a.weight || a.i - b.i)
		.slice(0, count)
		.map((one) => one.i);
}

/** The row to show first: where the function begins, else the one with the largest value. */
export function firstRow(rows: readonly CodeRow[], functionLine: number): number {
	const begin = functionLine > 0 ? rows.findIndex((row) => row.at >= functionLine) : -1;
	return begin >= 0 ? begin : (hotRows(rows, 1)[0] ?? 0);
}
