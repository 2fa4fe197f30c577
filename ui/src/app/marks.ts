// SPDX-License-Identifier: Apache-2.0
/** Times that the chart marks: annotations, and the first samples of each new version. */
import { useMemo } from "preact/hooks";
import { getAnnotations, getSeries } from "../api/client.ts";
import { type Mark, versionMarks } from "../model/marks.ts";
import { type Span, toApiTime } from "../model/time.ts";
import { useQuery } from "./use_query.ts";

/** The label whose values are versions. */
const VERSION = "version";
const VERSIONS_MAX = 20;

/** Asks again once a minute, and when the range moves by more than a minute. */
export function useMarks(span: Span, stepMs: number, query: string, labels: readonly string[]): Mark[] {
	const minute = Math.floor(span.toMs / 60_000);
	// annotations just after the end, so that they show as soon as the chart reaches them
	const times = { from: toApiTime(span.fromMs), to: toApiTime(span.toMs + 60_000) };
	const width = Math.round((span.toMs - span.fromMs) / 60_000);
	const id = query === "" ? null : JSON.stringify(["marks", width, minute]);
	const noted = useQuery(id, 0, (signal) => getAnnotations(times, signal));
	const versions = useQuery(
		id && labels.includes(VERSION) ? `${id}${query}` : null,
		0,
		(signal) => getSeries({ query, ...times }, VERSION, stepMs, VERSIONS_MAX, signal),
	);
	return useMemo(
		() => [...(noted.data ?? []), ...(versions.data ? versionMarks(versions.data, span.fromMs) : [])],
		[noted.data, versions.data],
	);
}
