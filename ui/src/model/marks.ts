// SPDX-License-Identifier: Apache-2.0
/** Instants that the chart marks. */
import type { ApiSeries } from "./series.ts";

/** A time, in milliseconds since 1970, and what happened then. */
export interface Mark {
	ms: number;
	text: string;
}

/** The begins of versions: the first step of each that is not there from the start. */
export function versionMarks(answer: { series: readonly ApiSeries[]; step: number }, fromMs: number): Mark[] {
	const marks: Mark[] = [];
	for (const one of answer.series) {
		const version = one.labels?.["version"] ?? "";
		const first = one.points[0]?.[0] ?? 0;
		if (version !== "" && first >= fromMs + 2 * answer.step) {
			marks.push({ ms: first, text: version });
		}
	}
	return marks;
}
