// SPDX-License-Identifier: Apache-2.0
/** The source of a function: the whole file, with what each line costs beside it. */
import { useMemo, useState } from "preact/hooks";
import { getSource, type Question } from "../../api/client.ts";
import type { SourceAnswer } from "../../api/types.ts";
import type { Data } from "../../app/data.ts";
import { go } from "../../app/store.ts";
import { type Query, useQuery } from "../../app/use_query.ts";
import { codeRows, isShort } from "../../model/code.ts";
import type { Flame } from "../../model/flame.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import type { Code } from "../../model/url.ts";
import { Loading } from "../Empty.tsx";
import { Icon } from "../icons.tsx";
import { Listing } from "./Listing.tsx";

/** The line where the function begins, as the graph has it; 0: not known. */
function lineOf(f: Flame | null, code: Code): number {
	for (let i = 1; f && i < f.count; i++) {
		if (f.strings[f.name[i]!] === code.name && f.strings[f.file[i]!] === code.file) {
			return f.line[i]!;
		}
	}
	return 0;
}

/** Where the text is from, and what may be wrong with it. */
function Origin({ answer, question }: { answer: SourceAnswer; question: Question }) {
	const { origin, modified = 0, builds, places } = answer;
	const short = isShort(answer.text ?? null, places);
	const begin = Date.parse(question.from);
	if (!origin) {
		return (
			<p class="code-note" data-testid="code-origin">
				The text of this file is not here; these are the lines with samples. To have it, where the
				program was built: <code>firn debuginfo source PROGRAM</code>, then{" "}
				<code>firn debuginfo upload --type=sources --build-id={builds[0] || "BUILDID"} source.tar.zstd</code>
			</p>
		);
	}
	const younger = origin === "host" && modified > begin;
	return (
		<p class={`code-note ${short || younger ? "doubt" : ""}`} data-testid="code-origin">
			{origin === "upload" ? "The text as it was uploaded for this build." : "The file of this path on the server's host."}
			{younger && " It was changed after these samples began: lines may have moved."}
			{short && " It has fewer lines than the program was built from."}
		</p>
	);
}

/** Of which builds lines are shown. */
function Builds(props: { builds: readonly string[]; build: string; choose: (build: string) => void }) {
	if (props.builds.length < 2) {
		return null;
	}
	return (
		<label class="by">
			Build
			<select value={props.build} onChange={(e) => props.choose(e.currentTarget.value)}>
				<option value="">all {props.builds.length}</option>
				{props.builds.map((id) => (
					<option key={id} value={id}>
						{id.slice(0, 12) || "without an id"}
					</option>
				))}
			</select>
		</label>
	);
}

/** What stands below the bar. */
function Body(props: { query: Query<SourceAnswer>; code: Code; data: Data; question: Question }) {
	const { query, code, data } = props;
	const answer = query.data;
	const rows = useMemo(() => (answer ? codeRows(answer.text ?? null, answer.places) : []), [answer]);
	const begin = useMemo(() => lineOf(data.flame.data, code), [data.flame.data === null, code.name, code.file]);
	if (!answer) {
		return query.error ? (
			<div class="blank in-panel" role="alert">
				<h2>No answer</h2>
				<p>{query.error.message}</p>
			</div>
		) : (
			<Loading text="Asking for the source" trouble={query.trouble} />
		);
	}
	if (rows.length === 0) {
		return (
			<div class="blank in-panel">
				<h2>No samples in this file</h2>
				<p>None of the samples in this time has a line of it. Choose a longer time.</p>
			</div>
		);
	}
	return (
		<>
			<Listing
				note={<Origin answer={answer} question={props.question} />}
				rows={rows}
				unit={answer.unit}
				whole={answer.total}
				begin={begin}
				id={`${code.file} ${code.name}`}
			/>
		</>
	);
}

/** The panel in the place of graph and table. */
export function CodeView(props: { code: Code; data: Data; question: Question }) {
	const { code, data, question } = props;
	const [build, setBuild] = useState("");
	const id = JSON.stringify([code.file, build, question.query, data.flame.id]);
	const query = useQuery(id, data.flame.atMs, (signal) => getSource(question, code.file, build, signal));
	const self = query.data?.places.reduce((sum, [, own]) => sum + own, 0) ?? 0;
	return (
		<section class="panel profile code" aria-label="Source">
			<div class="profile-bar code-bar">
				<button type="button" class="button" title="Back to the graph (Esc)" onClick={() => go({ code: null })}>
					<Icon name="left" />
					Graph
				</button>
				<div class="code-title">
					<h2 title={code.name}>{code.name}</h2>
					<p title={code.file}>{code.file}</p>
				</div>
				{query.data && (
					<p class="code-sum">
						<b>{formatValue(self, query.data.unit)}</b> in lines of this file themselves,{" "}
						{formatShare(self, query.data.total)}
					</p>
				)}
				<Builds builds={query.data?.builds ?? []} build={build} choose={setBuild} />
			</div>
			<Body query={query} code={code} data={data} question={question} />
		</section>
	);
}
