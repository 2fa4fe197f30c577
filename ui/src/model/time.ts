// SPDX-License-Identifier: Apache-2.0
/** Time ranges. An end of a range is a text (instant.ts); instants are milliseconds since 1970. */
import { parseInstant } from "./instant.ts";

/** A range with the texts of the URL. */
export interface Range {
	from: string;
	to: string;
}

/** A range in instants. */
export interface Span {
	fromMs: number;
	toMs: number;
}

/** The ranges of the menu, with their lengths in the API's form. */
export const PRESETS: readonly { length: string; name: string }[] = [
	{ length: "5m", name: "5 minutes" },
	{ length: "15m", name: "15 minutes" },
	{ length: "1h", name: "1 hour" },
	{ length: "6h", name: "6 hours" },
	{ length: "24h", name: "24 hours" },
	{ length: "7d", name: "7 days" },
];

/** Whether the range moves with the clock. */
export function isLive(range: Range): boolean {
	return /^now(\/[smhdwMy])?$/.test(range.to);
}

/** The range in instants. */
export function spanOf(range: Range, nowMs: number): Span {
	return { fromMs: parseInstant(range.from, nowMs), toMs: parseInstant(range.to, nowMs, true) };
}

/** The error in a range, or "". */
export function rangeProblem(range: Range, nowMs: number): string {
	const { fromMs, toMs } = spanOf(range, nowMs);
	if (Number.isNaN(fromMs)) {
		return `not a time: "${range.from}"`;
	}
	if (Number.isNaN(toMs)) {
		return `not a time: "${range.to}"`;
	}
	return fromMs < toMs ? "" : "the range ends before it begins";
}

/** A time in the form of the API and the URL; "" for none. */
export function toApiTime(ms: number): string {
	if (Number.isNaN(ms)) {
		return "";
	}
	return new Date(Math.round(ms)).toISOString().replace(".000Z", "Z");
}

const two = (n: number) => String(n).padStart(2, "0");

/** An end of a range for the API: a moving end that the API knows stays a text. */
export function apiEnd(text: string, nowMs: number, isEnd: boolean): string {
	const known = /^now(-(\d+[smhd])+)?$/.test(text) && parseInstant(text, nowMs) > 0;
	return known ? text : toApiTime(parseInstant(text, nowMs, isEnd));
}

/** "2026-11-21 08:14:05", local time, for the fields of the range menu. */
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

/** "08:14:05 – 08:15:00", with the day if it is not today. */
export function formatSpan({ fromMs, toMs }: Span, nowMs: number): string {
	const today = toLocalText(nowMs).slice(0, 10);
	const day = (ms: number) => toLocalText(ms).slice(0, 10);
	const show = (ms: number) => (day(ms) === today ? formatClock(ms) : toLocalText(ms));
	const to = day(fromMs) === day(toMs) ? formatClock(toMs) : show(toMs);
	return `${show(fromMs)} – ${to}`;
}

/** A length as a short text: "45 s", "12 min", "3.5 h". */
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
	const length = /^now-(\d+[smhd])$/.exec(range.from)?.[1];
	if (range.to === "now" && length) {
		const preset = PRESETS.find((p) => p.length === length);
		return `Last ${preset ? preset.name : length}`;
	}
	if (rangeProblem(range, nowMs) !== "") {
		return `${range.from} – ${range.to}`;
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

/** How long until the chart of a live range is requested again, in milliseconds. */
export function refreshEvery(spanMs: number): number {
	return Math.min(60e3, Math.max(5e3, spanMs / 180));
}

/**
 * The same for graph and table, which are large: a sixtieth of the range is new then. If an answer
 * took long, the next request waits longer, to spare the server and the network.
 */
export function graphEvery(spanMs: number, tookMs: number): number {
	return Math.max(Math.min(300e3, Math.max(10e3, spanMs / 60)), 5 * tookMs);
}

/**
 * The length of the part of a range that can have samples, in milliseconds: a live range counts
 * from the first sample, and as two minutes at least.
 */
export function usedMs({ fromMs, toMs }: Span, live: boolean, firstMs: number): number {
	return live ? Math.max(120e3, toMs - Math.max(fromMs, Math.min(firstMs, toMs))) : toMs - fromMs;
}

/**
 * How long it takes until a sample is stored, in milliseconds, as agents send every few seconds.
 */
const LAG_MS = 7000;
/** The chart shows at least this many steps. */
const STEPS_MIN = 12;

/**
 * The span of the chart. A live range is moved to complete steps, and begins no earlier than the
 * first sample. In the first seconds, when no step is complete, it has the current one.
 */
export function chartSpan(span: Span, stepMs: number, live: boolean, firstMs: number): Span {
	if (!live) {
		return span;
	}
	const down = (ms: number) => Math.floor(ms / stepMs) * stepMs;
	const whole = down(span.toMs - LAG_MS);
	const isYoung = firstMs >= whole && firstMs <= span.toMs;
	const toMs = isYoung ? down(span.toMs) + stepMs : whole;
	const begin = Math.min(firstMs, toMs - STEPS_MIN * stepMs);
	return { fromMs: down(Math.max(span.fromMs, begin)), toMs };
}
