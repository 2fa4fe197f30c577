// SPDX-License-Identifier: Apache-2.0
/**
 * Ends of a time range as people and other tools write them: "now", "now-15m", "now-1M", "now/d",
 * "now-7d/d", RFC 3339, local time, and unix time in seconds down to nanoseconds.
 */

const UNIT_MS: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3 };

/** 9999-12-31T23:59:59Z: later times are not accepted. */
const MS_MAX = 253_402_300_799_000;

/** "15m" or "1h30m" in milliseconds; NaN for anything else. */
export function parseDuration(text: string): number {
	if (!/^(\d+(\.\d+)?[smhdw])+$/.test(text)) {
		return Number.NaN;
	}
	let sum = 0;
	for (const part of text.match(/\d+(\.\d+)?[smhdw]/g) ?? []) {
		sum += Number.parseFloat(part) * UNIT_MS[part.slice(-1)]!;
	}
	return sum;
}

/** Moves an instant by `count` units; months and years are those of the calendar. */
function shift(ms: number, count: number, unit: string): number {
	const size = UNIT_MS[unit];
	if (size) {
		return ms + count * size;
	}
	const d = new Date(ms);
	if (unit === "M") {
		d.setMonth(d.getMonth() + count);
	} else {
		d.setFullYear(d.getFullYear() + count);
	}
	return d.getTime();
}

/** The local begin of the unit that an instant lies in; weeks begin on Monday. */
function floor(ms: number, unit: string): number {
	const d = new Date(ms);
	d.setMilliseconds(0);
	const steps: Record<string, () => void> = {
		m: () => d.setSeconds(0),
		h: () => d.setMinutes(0, 0),
		d: () => d.setHours(0, 0, 0),
		w: () => {
			d.setHours(0, 0, 0);
			d.setDate(d.getDate() - ((d.getDay() + 6) % 7));
		},
		M: () => {
			d.setHours(0, 0, 0);
			d.setDate(1);
		},
		y: () => {
			d.setHours(0, 0, 0);
			d.setMonth(0, 1);
		},
	};
	steps[unit]?.();
	return d.getTime();
}

/** "now", with shifts and one rounding. The end of a range is rounded up, but not past now. */
function parseNow(text: string, nowMs: number, isEnd: boolean): number {
	const match = /^now((?:[+-](?:\d+(?:\.\d+)?[smhdwMy])+)*)(?:\/([smhdwMy]))?$/.exec(text);
	if (!match) {
		return Number.NaN;
	}
	let ms = nowMs;
	for (const [, sign, parts] of match[1]!.matchAll(/([+-])((?:\d+(?:\.\d+)?[smhdwMy])+)/g)) {
		for (const [, count, unit] of parts!.matchAll(/(\d+(?:\.\d+)?)([smhdwMy])/g)) {
			ms = shift(ms, (sign === "-" ? -1 : 1) * Number(count), unit!);
		}
	}
	const unit = match[2];
	if (unit) {
		ms = floor(ms, unit);
		ms = isEnd ? Math.min(nowMs, shift(ms, 1, unit)) : ms;
	}
	return ms;
}

/**
 * Unix time in seconds; a number with more digits is in milliseconds, microseconds or nanoseconds.
 */
function parseUnix(text: string): number {
	const n = Number.parseFloat(text);
	const digits = text.replace(/\..*/, "").replace(/^0+/, "").length;
	return digits < 12 ? n * 1000 : digits < 15 ? n : digits < 18 ? n / 1e3 : n / 1e6;
}

/**
 * An end of a range in milliseconds since 1970; NaN: it is malformed.
 * @param isEnd the later end: "now/d" is then the end of the day, or now.
 */
export function parseInstant(text: string, nowMs: number, isEnd = false): number {
	const s = text.trim();
	let ms = Number.NaN;
	if (s.startsWith("now")) {
		ms = Math.max(0, parseNow(s, nowMs, isEnd));
	} else if (/^\d+(\.\d+)?$/.test(s)) {
		ms = parseUnix(s);
	} else {
		const local = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?$/.exec(s);
		if (local) {
			ms = new Date(`${local[1]}T${local[2] ?? "00:00"}`).getTime();
		} else if (/^\d{4}-\d\d-\d\d[T ]/.test(s)) {
			ms = Date.parse(s.replace(" ", "T"));
		}
	}
	return ms >= 0 && ms <= MS_MAX ? ms : Number.NaN;
}
