// SPDX-License-Identifier: Apache-2.0
/** Selectors `type{matchers}` that this browser used recently, the latest first. */
import { readSetting, writeSetting } from "./theme.ts";

const KEY = "firn.recent";
const RECENT_MAX = 8;
/** Longer ones are not kept, in characters. */
const LENGTH_MAX = 2000;

/** The selectors. */
export function recentQueries(): string[] {
	try {
		const kept: unknown = JSON.parse(readSetting(KEY) || "[]");
		return Array.isArray(kept) ? kept.filter((one) => typeof one === "string").slice(0, RECENT_MAX) : [];
	} catch {
		return [];
	}
}

/** Puts a selector that had samples on top. */
export function rememberQuery(query: string): void {
	const kept = recentQueries();
	if (query.length <= LENGTH_MAX && kept[0] !== query) {
		writeSetting(KEY, JSON.stringify([query, ...kept.filter((one) => one !== query)].slice(0, RECENT_MAX)));
	}
}
