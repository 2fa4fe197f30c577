// SPDX-License-Identifier: Apache-2.0
/** The state of the page and its form in the URL. What is at its default is left out. */
import { type Filter, formatFilter, type Group, GROUPS, parseFilter, FILTERS_MAX } from "./filter.ts";
import type { Range } from "./time.ts";

/** What stands beside what. */
export const VIEWS = ["both", "flame", "table", "calls", "time"] as const;
export type View = (typeof VIEWS)[number];

/** The pages of the navigation bar. */
export const PAGES = ["explore", "compare", "fleet", "agents", "targets", "symbols", "store"] as const;
export type Page = (typeof PAGES)[number];

/** How long before the range its base lies; "": right before it. */
export const SHIFTS = ["", "1h", "1d", "7d"] as const;
export type Shift = (typeof SHIFTS)[number];

/** A function whose source is shown. */
export interface Code {
	name: string;
	binary: string;
	/** Its source file; "": not known. */
	file: string;
	/** Its instructions, not its source. */
	asm: boolean;
}

/** In the place of a snapshot's id: the link names one, but not as ids are. */
export const NO_SNAPSHOT = "?";

/** Everything that a link carries. */
export interface State {
	page: Page;
	/** Profile type; "" until the server's types are known. */
	type: string;
	/** Matchers between the braces of the selector. */
	matchers: string;
	range: Range;
	/** The label the chart is split by; "" for none. */
	by: string;
	/** Lines instead of stacked areas. */
	lines: boolean;
	/** The part of the chart that is in force, in milliseconds since 1970. */
	select: { fromMs: number; toMs: number } | null;
	/** Key of the frame the graph is zoomed to. */
	zoom: string;
	search: string;
	view: View;
	/** The label that the chart over time has a row for each value of; "": one row; null: the usual one. */
	timeBy: string | null;
	/** Callers first. */
	invert: boolean;
	/** The function that the graph is about, from wherever it is called; "" for all. */
	focus: string;
	/** Callers above and callees below the function that the graph is about. */
	sandwich: boolean;
	/** What of the stacks is kept. */
	filters: readonly Filter[];
	/** What a bar is. */
	group: Group;
	/** The function that is marked in graph and table. */
	mark: string;
	/** The binary that is marked. */
	binary: string;
	sort: string;
	/** Its source stands in the place of graph and table; null: they are there. */
	code: Code | null;
	/** The snapshot that is open in the place of the server's samples; "" for none. */
	shared: string;
	/** Refreshing is paused. */
	paused: boolean;
	/** Matchers of what is compared with; null: the same as those of this side. */
	baseMatchers: string | null;
	/** The range that is compared with; null: as `shift` says. */
	baseRange: Range | null;
	shift: Shift;
	/** Values are compared as they are, not as shares of their side. */
	absolute: boolean;
	/** Rows of the comparison are by total, not by self value. */
	byTotal: boolean;
}

/** The state of a URL without parameters. */
export const DEFAULTS: State = {
	page: "explore",
	type: "",
	matchers: "",
	range: { from: "now-15m", to: "now" },
	by: "comm",
	lines: false,
	select: null,
	zoom: "",
	search: "",
	view: "both",
	timeBy: null,
	invert: false,
	focus: "",
	sandwich: false,
	filters: [],
	group: "function",
	mark: "",
	binary: "",
	sort: "",
	code: null,
	shared: "",
	paused: false,
	baseMatchers: null,
	baseRange: null,
	shift: "",
	absolute: false,
	byTotal: false,
};

/** Splits `type{matchers}`; either part may be missing. */
export function splitQuery(text: string): { type: string; matchers: string } {
	const s = text.trim();
	const brace = s.indexOf("{");
	if (brace >= 0) {
		const inside = s.slice(brace + 1);
		return {
			type: s.slice(0, brace).trim(),
			matchers: (inside.endsWith("}") ? inside.slice(0, -1) : inside).trim(),
		};
	}
	return /^[\w.]+(:[\w./]+){2,}$/.test(s) ? { type: s, matchers: "" } : { type: "", matchers: s };
}

/** The selector as the API takes it. */
export function joinQuery(type: string, matchers: string): string {
	const inside = matchers.trim();
	return inside === "" ? type : `${type}{${inside}}`;
}

function parseSelect(text: string | null): State["select"] {
	const [from, to] = (text ?? "").split("~").map((part) => Date.parse(part));
	if (from === undefined || to === undefined || !(from < to)) {
		return null;
	}
	return { fromMs: from, toMs: to };
}

/** One of a list, or its first. */
function oneOf<T extends string>(text: string | null, known: readonly T[]): T {
	return known.find((k) => k === text) ?? known[0]!;
}

function parseBaseRange(from: string | null, to: string | null): Range | null {
	return from && to ? { from, to } : null;
}

function parseCode(p: URLSearchParams): Code | null {
	const name = p.get("code");
	const file = p.get("code_file") ?? "";
	return name === null ? null : { name, binary: p.get("code_binary") ?? "", file, asm: p.get("code_as") === "asm" };
}

function parseShared(id: string | null): string {
	return id === null || /^[a-z2-7]{22}([a-z2-7]{6})?$/.test(id) ? (id ?? "") : NO_SNAPSHOT;
}

/** Reads the parameters of a URL; what makes no sense is left at its default. */
export function parseUrl(search: string): State {
	const p = new URLSearchParams(search);
	const { type, matchers } = splitQuery(p.get("query") ?? "");
	const base = p.get("base_query");
	return {
		page: oneOf(p.get("page"), PAGES),
		type,
		matchers,
		range: {
			from: p.get("from") || DEFAULTS.range.from,
			to: p.get("to") || DEFAULTS.range.to,
		},
		by: p.get("by") ?? DEFAULTS.by,
		lines: p.get("chart") === "lines",
		select: parseSelect(p.get("select")),
		zoom: p.get("zoom") ?? "",
		search: p.get("search") ?? "",
		view: oneOf(p.get("view"), VIEWS),
		timeBy: p.get("time_by"),
		invert: p.get("invert") === "1",
		focus: p.get("focus") ?? "",
		sandwich: p.get("sandwich") === "1",
		filters: p.getAll("filter").map(parseFilter).filter((f) => f !== null).slice(0, FILTERS_MAX),
		group: oneOf(p.get("group"), GROUPS),
		mark: p.get("mark") ?? "",
		binary: p.get("binary") ?? "",
		sort: p.get("sort") ?? "",
		code: parseCode(p),
		shared: parseShared(p.get("shared")),
		paused: p.get("paused") === "1",
		baseMatchers: base === null ? null : splitQuery(base).matchers,
		baseRange: parseBaseRange(p.get("base_from"), p.get("base_to")),
		shift: oneOf(p.get("base_shift"), SHIFTS),
		absolute: p.get("values") === "absolute",
		byTotal: p.get("rows") === "total",
	};
}

/** The parameters for a state, "" or with the leading "?". */
export function formatUrl(s: State): string {
	const p = new URLSearchParams();
	const put = (name: string, value: string, usual = "") => {
		if (value !== usual) {
			p.set(name, value);
		}
	};
	put("page", s.page, DEFAULTS.page);
	put("query", joinQuery(s.type, s.matchers));
	put("from", s.range.from, DEFAULTS.range.from);
	put("to", s.range.to, DEFAULTS.range.to);
	put("by", s.by, DEFAULTS.by);
	put("chart", s.lines ? "lines" : "");
	if (s.select) {
		const iso = (ms: number) => new Date(ms).toISOString();
		put("select", `${iso(s.select.fromMs)}~${iso(s.select.toMs)}`);
	}
	put("view", s.view, DEFAULTS.view);
	if (s.timeBy !== null) {
		p.set("time_by", s.timeBy);
	}
	put("invert", s.invert ? "1" : "");
	put("focus", s.focus);
	put("sandwich", s.sandwich ? "1" : "");
	for (const filter of s.filters) {
		p.append("filter", formatFilter(filter));
	}
	put("group", s.group, DEFAULTS.group);
	put("zoom", s.zoom);
	put("search", s.search);
	put("mark", s.mark);
	put("binary", s.binary);
	put("sort", s.sort);
	if (s.code) {
		p.set("code", s.code.name);
		put("code_binary", s.code.binary);
		put("code_file", s.code.file);
		put("code_as", s.code.asm ? "asm" : "");
	}
	put("shared", s.shared);
	put("paused", s.paused ? "1" : "");
	if (s.baseMatchers !== null) {
		p.set("base_query", `{${s.baseMatchers}}`);
	}
	put("base_from", s.baseRange?.from ?? "");
	put("base_to", s.baseRange?.to ?? "");
	put("base_shift", s.shift);
	put("values", s.absolute ? "absolute" : "");
	put("rows", s.byTotal ? "total" : "");
	const text = p.toString();
	return text === "" ? "" : `?${text}`;
}
