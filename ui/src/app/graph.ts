// SPDX-License-Identifier: Apache-2.0
/** The graph of a question: in one answer, or one for each of the largest values of a label. */
import { getFlame, getSeries, type Question } from "../api/client.ts";
import type { Flame } from "../model/flame.ts";
import { withMatcher } from "../model/selector.ts";
import { joinQuery, splitQuery } from "../model/url.ts";

/** Values that have a graph of their own; the others are one together. */
const VALUES_MAX = 10;
/** A step that is longer than any range: one sum for each value. */
const STEP_MS = 366 * 86_400_000;

/** What is asked for, besides the question. */
export interface Form {
	inverted: boolean;
	trim: number;
	/** The label whose values are frames below the root; "": none. */
	by: string;
}

/** Asks for the graph; for a label its values one after the other, which is kind to the server. */
export async function getGraph(q: Question, form: Form, signal: AbortSignal): Promise<Flame> {
	const { inverted, trim, by } = form;
	if (by === "") {
		return getFlame(q, inverted, trim, signal);
	}
	const { joinFlames } = await import("../model/join.ts");
	const { series } = await getSeries(q, by, STEP_MS, VALUES_MAX, signal);
	const { type, matchers } = splitQuery(q.query);
	const of = (text: string) => getFlame({ ...q, query: joinQuery(type, text) }, inverted, trim, signal);
	const parts: { name: string; flame: Flame }[] = [];
	let rest = matchers;
	for (const one of series.filter((s) => !s.other)) {
		const value = one.labels?.[by] ?? "";
		// a second condition, also where the selector has one for this label
		const only = [matchers.trim(), withMatcher("", by, value)].filter(Boolean).join(", ");
		parts.push({ name: value || `no ${by}`, flame: await of(only) });
		rest = withMatcher(rest, by, value, "!=");
	}
	if (series.some((s) => s.other)) {
		parts.push({ name: "everything else", flame: await of(rest) });
	}
	return joinFlames(parts);
}
