// SPDX-License-Identifier: Apache-2.0
/** The state of the page and its form in the URL, which leaves out defaults. */
import { type Filter, formatFilter, type Group, GROUPS, parseFilter, FILTERS_MAX } from "./filter.ts";
import type { Range } from "./time.ts";

/** The views, "both" being graph and table. */
export const VIEWS = ["both", "flame", "table", "calls", "time"] as const;
export type View = (typeof VIEWS)[number];

/** The pages of the navigation bar. */
export const PAGES = ["explore", "compare", "fleet", "agents", "targets", "symbols", "store"] as const;
export type Page = (typeof PAGES)[number];

/** How long before the range its base is; "": directly before it. */
export const SHIFTS = ["", "1h", "1d", "7d"] as const;
export type Shift = (typeof SHIFTS)[number];

/** A function whose source is shown. */
export interface Code {
	name: string;
	binary: string;
	/** Its source file; "": unknown. */
	file: string;
	/** Show its instructions, not its source. */
	asm: boolean;
}

/** In place of a snapshot's id, if the id in the link is malformed. */
export const NO_SNAPSHOT = "?";

/** Everything that is in a link. */
export interface State {
	page: Page;
	/** Profile type; "": the default. */
	type: string;
	/** Matchers between the braces of the selector. */
	matchers: string;
	range: Range;
	/** The label by which the chart is split; "": none. */
	by: string;
	/** Lines instead of stacked areas. */
	lines: boolean;
	/** The selected part of the chart, in milliseconds since 1970. */
	select: { fromMs: number; toMs: number } | null;
	/** Key of the frame to which the graph is zoomed. */
	zoom: string;
	search: string;
	view: View;
	/** The label of the rows of the chart over time; "": one row; null: the usual label. */
	timeBy: string | null;
	/** Callers first. */
	invert: boolean;
	/** The focused function, from all its callers; "": none. */
	focus: string;
	/** Show callers above and callees below the focused function. */
	sandwich: boolean;
	/** The filters of stacks and frames. */
	filters: readonly Filter[];
	/** What a bar stands for. */
	group: Group;
	/** The function that is marked in graph and table. */
	mark: string;
	/** The binary that is marked. */
	binary: string;
	sort: string;
	/** The function whose source is shown in place of graph and table; null: none. */
	code: Code | null;
	/** The snapshot that is shown instead of the server's samples; "": none. */
	shared: string;
	/** Refreshing is paused. */
	paused: boolean;
	/** Matchers of the base; null: the same as those of this side. */
	baseMatchers: string | null;
	/** The range of the base; null: as `shift` says. */
	baseRange: Range | null;
	shift: Shift;
	/** Compare values, not shares of each side. */
	absolute: boolean;
	/** Order the comparison by total, not by self value. */
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

/** The selector for the API. */
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

/** The text if it is in the list, else the list's first. */
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

/** Reads the parameters of a URL; malformed ones become their default. */
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
