// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { getSeries, type Question } from "../../api/client.ts";
import { useQuery } from "../../app/use_query.ts";
import type { Span } from "../../model/time.ts";
import { programsOf } from "../../model/strips.ts";

/** The label that has a program's name. */
const PROGRAM = "comm";
/** The most pairs of value and program. */
const PAIRS_MAX = 200;
/** Labels of threads: a name or number alone does not tell the program. */
const OF_THREADS = ["thread_id", "thread_name", "pid", "tid"];

/** Names of programs by value of the rows' label; empty if the label needs none. */
export function usePrograms(question: Question, span: Span, by: string, labels: readonly string[]): Map<string, string> {
	const wanted = OF_THREADS.includes(by) && labels.includes(PROGRAM);
	const id = wanted && question.query !== "" ? JSON.stringify(["programs", by, question]) : null;
	const stepMs = Math.max(1000, Math.ceil((span.toMs - span.fromMs) / 1000) * 1000);
	const answer = useQuery(id, 0, (signal) => getSeries(question, [by, PROGRAM], stepMs, PAIRS_MAX, signal));
	return useMemo(() => programsOf(answer.id === id ? (answer.data?.series ?? []) : [], by, PROGRAM), [answer.data, answer.id === id, by]);
}
