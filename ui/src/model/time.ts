// SPDX-License-Identifier: Apache-2.0
/**
 * Time ranges. An end of a range is a text as the API takes it: "now", "now-15m", RFC 3339, or
 * unix seconds. Instants are milliseconds since 1970.
 */

/** A range as it stands in the URL and goes to the API. */
export interface Range {
	from: string;
	to: string;
}

/** A range in instants. */
export interface Span {
	fromMs: number;
	toMs: number;
}

/** The ranges that are offered, with their lengths as the API writes them. */
export const PRESETS: readonly { length: string; name: string }[] = [
	{ length: "5m", name: "5 minutes" },
	{ length: "15m", name: "15 minutes" },
	{ length: "1h", name: "1 hour" },
	{ length: "6h", name: "6 hours" },
	{ length: "24h", name: "24 hours" },
	{ length: "7d", name: "7 days" },
];

const UNIT_MS: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };

/** "15m" or "1h30m" in milliseconds; NaN for anything else. */
export function parseDuration(text: string): number {
	if (!/^(\d+(\.\d+)?[smhd])+$/.test(text)) {
		return Number.NaN;
	}
	let sum = 0;
	for (const part of text.match(/\d+(\.\d+)?[smhd]/g) ?? []) {
		sum += Number.parseFloat(part) * UNIT_MS[part.slice(-1)]!;
	}
	return sum;
}

/** An end of a range as an instant; NaN where it is none. */
export function parseInstant(text: string, nowMs: number): number {
	const s = text.trim();
	if (s === "now") {
		return nowMs;
	}
	if (s.startsWith("now-")) {
		return nowMs - parseDuration(s.slice(4));
	}
	if (/^\d+(\.\d+)?$/.test(s)) {
		return Number.parseFloat(s) * 1000;
	}
	const local = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?$/.exec(s);
	if (local) {
		return new Date(`${local[1]}T${local[2] ?? "00:00"}`).getTime();
	}
	return Date.parse(s);
}

/** Whether the range moves with the clock. */
export function isLive(range: Range): boolean {
	return range.to === "now";
}

/** The range in instants. */
export function spanOf(range: Range, nowMs: number): Span {
	return { fromMs: parseInstant(range.from, nowMs), toMs: parseInstant(range.to, nowMs) };
}

/** What is wrong with a range in words, or "". */
export function rangeProblem(range: Range, nowMs: number): string {
	const { fromMs, toMs } = spanOf(range, nowMs);
	if (Number.isNaN(fromMs)) {
		return `"${range.from}" is not a time`;
	}
	if (Number.isNaN(toMs)) {
		return `"${range.to}" is not a time`;
	}
	return fromMs < toMs ? "" : "the range ends before it begins";
}

/** An instant as the API and the URL take it. */
export function toApiTime(ms: number): string {
	return new Date(Math.round(ms)).toISOString().replace(".000Z", "Z");
}

const two = (n: number) => String(n).padStart(2, "0");

/** "2026-11-21 08:14:05", local time; what the fields of the range menu hold. */
export function toLocalText(ms: number): string {
	const d = new Date(ms);
	const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
	return `${day} ${formatClock(ms)}`;
}

/** "08:14:05", local time. */
export function formatClock(ms: number): string {
	const d = new Date(ms);
	return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** "08:14:05 – 08:15:00", with the day where it is not today. */
export function formatSpan({ fromMs, toMs }: Span, nowMs: number): string {
	const today = toLocalText(nowMs).slice(0, 10);
	const day = (ms: number) => toLocalText(ms).slice(0, 10);
	const show = (ms: number) => (day(ms) === today ? formatClock(ms) : toLocalText(ms));
	const to = day(fromMs) === day(toMs) ? formatClock(toMs) : show(toMs);
	return `${show(fromMs)} – ${to}`;
}

/** A length in words that fit a chip: "45 s", "12 min", "3.5 h". */
export function formatLength(ms: number): string {
	const s = ms / 1000;
	const fit = (x: number) => String(Math.round(x * 10) / 10);
	if (s < 120) {
		return `${fit(s)} s`;
	}
	if (s < 7200) {
		return `${fit(s / 60)} min`;
	}
	return s < 172800 ? `${fit(s / 3600)} h` : `${fit(s / 86400)} d`;
}

/** The name of a range: "Last 15 minutes", or its ends. */
export function rangeName(range: Range, nowMs: number): string {
	if (isLive(range) && range.from.startsWith("now-")) {
		const length = range.from.slice(4);
		const preset = PRESETS.find((p) => p.length === length);
		return `Last ${preset ? preset.name : length}`;
	}
	return formatSpan(spanOf(range, nowMs), nowMs);
}

/** Multiples of ten seconds, the resolution of older samples. */
const STEPS_S = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** The step of a series so that about `points` fit the span; in milliseconds, 10 s or longer. */
export function stepFor(spanMs: number, points: number): number {
	const least = spanMs / 1000 / points;
	return 1000 * (STEPS_S.find((s) => s >= least) ?? Math.ceil(least / 86400) * 86400);
}

/** How long to wait before a live range is asked for again, in milliseconds. */
export function refreshEvery(spanMs: number): number {
	return Math.min(60e3, Math.max(5e3, spanMs / 180));
}

/** How long after it was taken a sample is here, in milliseconds: agents send every few seconds. */
const LAG_MS = 7000;
/** The chart shows at least this many steps. */
const STEPS_MIN = 12;

/**
 * The span of the chart. A live range is moved to whole steps that are complete, and does not reach
 * back before the first sample there is.
 */
export function chartSpan(span: Span, stepMs: number, live: boolean, firstMs: number): Span {
	if (!live) {
		return span;
	}
	const down = (ms: number) => Math.floor(ms / stepMs) * stepMs;
	const toMs = down(span.toMs - LAG_MS);
	const begin = Math.min(firstMs, toMs - STEPS_MIN * stepMs);
	return { fromMs: down(Math.max(span.fromMs, begin)), toMs };
}
