// SPDX-License-Identifier: Apache-2.0
/**
 * The matchers of a selector while the user types them: the part at the cursor, what may follow,
 * and changes of the text. Only the server decides whether a selector is valid.
 */
import type { ApiSeries } from "./series.ts";

/** A part of a text, `[from, to)`. */
interface Part {
	from: number;
	to: number;
}

/** A matcher, perhaps unfinished. */
export interface Matcher {
	label: Part & { text: string };
	op: (Part & { text: string }) | null;
	/** The value without quotes; `closed`: the second quote is there. */
	value: (Part & { text: string; closed: boolean }) | null;
	/** The comma after it, or the end of the text. */
	to: number;
}

/** The part of a matcher at the cursor. */
export interface Context extends Part {
	kind: "label" | "op" | "value" | "next";
	/** Its text up to the cursor. */
	prefix: string;
	/** Label of the matcher, for `op` and `value`. */
	label: string;
}

/** The operators and their meaning. */
export const OPERATORS: readonly [string, string][] = [
	["=", "is"],
	["!=", "is not"],
	["=~", "matches the expression"],
	["!~", "does not match"],
];

function unquote(text: string): string {
	return text.replace(/\\(.)/g, "$1");
}

/** A text between quotes. */
export function quote(value: string): string {
	return `"${value.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}

function readWhile(text: string, from: number, pattern: RegExp): number {
	let i = from;
	while (i < text.length && pattern.test(text[i]!)) {
		i++;
	}
	return i;
}

function readValue(text: string, from: number): Matcher["value"] {
	if (text[from] !== '"') {
		return null;
	}
	let i = from + 1;
	while (i < text.length && text[i] !== '"') {
		i += text[i] === "\\" ? 2 : 1;
	}
	const closed = i < text.length;
	const inside = unquote(text.slice(from + 1, Math.min(i, text.length)));
	return { from, to: closed ? i + 1 : text.length, text: inside, closed };
}

/** Reads the matchers of a text, also an unfinished one. */
export function parseMatchers(text: string): Matcher[] {
	const matchers: Matcher[] = [];
	let i = readWhile(text, 0, /[\s,]/);
	while (i < text.length) {
		const labelEnd = readWhile(text, i, /[^\s,=!"]/);
		const label = { from: i, to: labelEnd, text: text.slice(i, labelEnd) };
		const opStart = readWhile(text, labelEnd, /\s/);
		const opEnd = readWhile(text, opStart, /[=!~]/);
		const op =
			opEnd > opStart ? { from: opStart, to: opEnd, text: text.slice(opStart, opEnd) } : null;
		const value = op ? readValue(text, readWhile(text, opEnd, /\s/)) : null;
		const end = value ? value.to : Math.max(opEnd, labelEnd);
		const comma = text.indexOf(",", end);
		const to = comma < 0 ? text.length : comma;
		matchers.push({ label, op, value, to });
		i = readWhile(text, Math.max(to, i + 1), /[\s,]/);
	}
	return matchers;
}

/** The part at the cursor, for completion. */
export function contextAt(text: string, cursor: number): Context {
	for (const { label, op, value, to } of parseMatchers(text)) {
		if (cursor < label.from || cursor > to) {
			continue;
		}
		if (cursor <= label.to) {
			const prefix = text.slice(label.from, cursor);
			return { kind: "label", prefix, from: label.from, to: label.to, label: "" };
		}
		if (!op || cursor < op.to) {
			const from = op ? op.from : cursor;
			const prefix = text.slice(from, cursor);
			return { kind: "op", prefix, from, to: op ? op.to : cursor, label: label.text };
		}
		if (!value) {
			return { kind: "value", prefix: "", from: cursor, to: cursor, label: label.text };
		}
		if (cursor <= value.from || (cursor >= value.to && value.closed)) {
			return { kind: "next", prefix: "", from: cursor, to: cursor, label: label.text };
		}
		const prefix = unquote(text.slice(value.from + 1, cursor));
		return { kind: "value", prefix, from: value.from, to: value.to, label: label.text };
	}
	return { kind: "label", prefix: "", from: cursor, to: cursor, label: "" };
}

/** A text and the cursor's position in it. */
export interface Edit {
	text: string;
	cursor: number;
}

/** Inserts a chosen label, operator or value at the cursor. */
export function complete(text: string, context: Context, choice: string): Edit {
	let insert = choice;
	if (context.kind === "label") {
		const follows = /^\s*[=!]/.test(text.slice(context.to));
		insert = follows ? choice : `${choice}=`;
	} else if (context.kind === "value") {
		insert = quote(choice);
	}
	const before = text.slice(0, context.from) + insert;
	return { text: before + text.slice(context.to), cursor: before.length };
}

/** Adds a matcher: `=` replaces the first matcher of the label, other operators add one. */
export function withMatcher(text: string, label: string, value: string, op = "="): string {
	const wanted = `${label}${op}${quote(value)}`;
	for (const m of parseMatchers(text)) {
		if (m.label.text === label && op === "=") {
			return `${text.slice(0, m.label.from)}${wanted}${text.slice(m.to)}`;
		}
	}
	const head = text.trim().replace(/,$/, "");
	return head === "" ? wanted : `${head}, ${wanted}`;
}

/**
 * The labels by which tracing libraries identify samples, the narrowest first, and what a value
 * stands for.
 */
const REQUESTS: readonly [label: string, what: string][] = [
	["span_id", "span"],
	["trace_id", "trace"],
];

/**
 * The one span or trace that a selector chooses, and the selector without it; null: it chooses
 * none.
 */
export function requestOf(text: string): { what: string; id: string; rest: string } | null {
	const matchers = parseMatchers(text);
	for (const [label, what] of REQUESTS) {
		const one = matchers.find((m) => m.label.text === label && m.op?.text === "=" && m.value?.closed && m.value.text !== "");
		if (one) {
			const others = matchers.filter((m) => m !== one).map((m) => text.slice(m.label.from, m.to).trim());
			return { what, id: one.value!.text, rest: others.join(", ") };
		}
	}
	return null;
}

/** A finished matcher. */
export interface Condition {
	label: string;
	op: string;
	value: string;
}

/** The finished matchers of a text. */
export function readConditions(text: string): Condition[] {
	return parseMatchers(text)
		.filter((m) => m.op && m.value?.closed)
		.map((m) => ({ label: m.label.text, op: m.op!.text, value: m.value!.text }));
}

/** The text of conditions; those without a label or a value are left out. */
export function formatConditions(conditions: readonly Condition[]): string {
	return conditions
		.filter(({ label, value }) => label !== "" && value !== "")
		.map(({ label, op, value }) => `${label}${op}${quote(value)}`)
		.join(", ");
}

/** Values of a label: first those of the given series (largest first), then the others. */
export function costliestFirst(
	values: readonly string[],
	label: string,
	series: readonly ApiSeries[],
): string[] {
	const known = new Set(values);
	const own = series.filter((one) => !one.other).map((one) => one.labels?.[label] ?? "");
	const large = own.filter((value) => known.delete(value));
	return [...large, ...known];
}

/** Candidates that begin with the prefix, then those that contain it; at most `limit`. */
export function rank(candidates: readonly string[], prefix: string, limit: number): string[] {
	const wanted = prefix.toLowerCase();
	const begin: string[] = [];
	const contain: string[] = [];
	for (const candidate of candidates) {
		const at = candidate.toLowerCase().indexOf(wanted);
		if (at === 0) {
			begin.push(candidate);
		} else if (at > 0) {
			contain.push(candidate);
		}
	}
	return [...begin, ...contain].slice(0, limit);
}

/**
 * The server's message about a selector `type{matchers}`, with its columns changed to those of the
 * matchers that the user typed.
 */
export function ofMatchers(message: string, type: string, typed = ""): string {
	const word = typed.trim();
	if (word !== "" && !/[=!~{},"]/.test(word)) {
		return `"${word}" is no condition: ${withMatcher("", "comm", word)} is a program of this name`;
	}
	const before = type.length + 1;
	const end = typed === "" ? Infinity : typed.length + 1; // the brace behind it is ours
	return message.replace(/\b(column|byte) (\d+)\b/g, (all, word: string, n: string) =>
		Number(n) > before ? `${word} ${Math.min(Number(n) - before, end)}` : all,
	);
}
