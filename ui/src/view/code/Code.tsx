// SPDX-License-Identifier: Apache-2.0
/** The source of a function, the whole file, or its instructions, with the value of each line. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { getInstructions, getSource, type Question } from "../../api/client.ts";
import type { Data } from "../../app/data.ts";
import { go } from "../../app/store.ts";
import { type Query, useQuery } from "../../app/use_query.ts";
import { type CodeRow, codeRows, instructionRows } from "../../model/code.ts";
import type { Flame } from "../../model/flame.ts";
import { isMachineCode } from "../../model/kinds.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import type { Code } from "../../model/url.ts";
import { Loading } from "../Empty.tsx";
import { Icon } from "../icons.tsx";
import { Segments } from "../Segments.tsx";
import { Listing } from "./Listing.tsx";
import { Missing, Origin } from "./notes.tsx";

const FORMS = [
	{ value: "source", name: "Source" },
	{ value: "asm", name: "Instructions" },
] as const;

/** The common part of both answers. */
interface Answer {
	unit: string;
	total: number;
	builds: string[];
	binary?: string;
}

interface CodeProps {
	code: Code;
	data: Data;
	question: Question;
}

/** The function in the graph: the line where it begins, and its kind; 0: unknown. */
function placeOf(f: Flame | null, code: Code): { line: number; kind: number } {
	for (let i = 1; f && i < f.count; i++) {
		if (f.strings[f.name[i]!] === code.name && f.strings[f.file[i]!] === code.file) {
			return { line: f.line[i]!, kind: f.kind[i]! };
		}
	}
	return { line: 0, kind: 0 };
}

/** The choice of a build. */
function Builds(props: { builds: readonly string[]; build: string; choose: (build: string) => void; all: string }) {
	if (props.builds.length < 2) {
		return null;
	}
	return (
		<label class="by">
			Build
			<select value={props.build} onChange={(e) => props.choose(e.currentTarget.value)}>
				<option value="">{props.all}</option>
				{props.builds.map((id) => (
					<option key={id} value={id}>
						{id.slice(0, 12) || "without an id"}
					</option>
				))}
			</select>
		</label>
	);
}

/** Below the bar: the listing, or why there is none. */
function Body(props: { query: Query<Answer>; rows: readonly CodeRow[]; none: ComponentChildren; children: ComponentChildren }) {
	const { query } = props;
	if (!query.data) {
		return query.error ? (
			<div class="blank in-panel" role="alert">
				<h2>No answer</h2>
				<p>{query.error.message}</p>
			</div>
		) : (
			<Loading text="Asking for the code" trouble={query.trouble} />
		);
	}
	return <>{props.rows.length === 0 ? <div class="blank in-panel">{props.none}</div> : props.children}</>;
}

/** The panel with its bar. */
function Frame(props: {
	code: Code;
	/** The function's kind; 0: unknown. */
	kind: number;
	query: Query<Answer>;
	rows: readonly CodeRow[];
	build: string;
	setBuild: (build: string) => void;
	children: ComponentChildren;
}) {
	const { code, query } = props;
	const answer = query.data;
	const self = props.rows.reduce((sum, row) => sum + row.self, 0);
	return (
		<section class="panel profile code" aria-label={code.asm ? "Instructions" : "Source"}>
			<div class="profile-bar code-bar">
				<button type="button" class="button" title="Back to the graph (Esc)" onClick={() => go({ code: null })}>
					<Icon name="left" />
					Graph
				</button>
				<div class="code-title">
					<h2 title={code.name}>{code.name}</h2>
					<p title={code.file}>{code.asm ? code.binary || answer?.binary : code.file}</p>
				</div>
				{answer && (
					<p class="code-sum">
						<b>{formatValue(self, answer.unit)}</b> in {code.asm ? "its instructions" : "lines of this file"} themselves,{" "}
						{formatShare(self, answer.total)}
					</p>
				)}
				<Builds
					builds={answer?.builds ?? []}
					build={props.build}
					choose={props.setBuild}
					all={code.asm ? "that costs most" : `all ${answer?.builds.length}`}
				/>
				{code.file !== "" && code.binary !== "" && isMachineCode(props.kind) && (
					<Segments
						label="Code"
						value={code.asm ? "asm" : "source"}
						choices={FORMS}
						choose={(form) => go({ code: { ...code, asm: form === "asm" } })}
					/>
				)}
			</div>
			{props.children}
		</section>
	);
}

function Source({ code, data, question }: CodeProps) {
	const [build, setBuild] = useState("");
	const id = JSON.stringify([code.file, build, question.query, data.flame.id]);
	const query = useQuery(id, data.flame.atMs, (signal) => getSource(question, code.file, build, signal));
	const answer = query.data;
	const rows = useMemo(() => (answer ? codeRows(answer.text ?? null, answer.places) : []), [answer]);
	const place = useMemo(() => placeOf(data.flame.data, code), [data.flame.data === null, code.name, code.file]);
	const none = (
		<>
			<h2>No samples in this file</h2>
			<p>None of the samples in this time has a line of it. Choose a longer time.</p>
		</>
	);
	return (
		<Frame code={code} kind={place.kind} query={query} rows={rows} build={build} setBuild={setBuild}>
			<Body query={query} rows={rows} none={none}>
				<Listing
					note={answer && <Origin answer={answer} question={question} name={code.name} line={place.line} build={build} />}
					rows={rows}
					unit={answer?.unit ?? ""}
					whole={answer?.total ?? 0}
					heads={["Line", "Source"]}
					begin={place.line}
					id={`${code.file} ${code.name}`}
				/>
			</Body>
		</Frame>
	);
}

function Instructions({ code, data, question }: CodeProps) {
	const [build, setBuild] = useState("");
	const id = JSON.stringify([code.name, code.binary, build, question.query, data.flame.id]);
	const one = { name: code.name, binary: code.binary, build };
	const query = useQuery(id, data.flame.atMs, (signal) => getInstructions(question, one, signal));
	const answer = query.data;
	const file = code.file || answer?.instructions[0]?.[4] || "";
	const source = useQuery(file === "" ? null : `${id}${file}`, 0, (signal) => getSource(question, file, build, signal));
	const text = source.data?.text ?? null;
	const rows = useMemo(() => (answer ? instructionRows(answer.instructions, file, text) : []), [answer, text]);
	return (
		<Frame code={code} kind={0} query={query} rows={rows} build={build} setBuild={setBuild}>
			<Body query={query} rows={rows} none={answer && <Missing answer={answer} code={code} />}>
				<Listing
					note={null}
					rows={rows}
					unit={answer?.unit ?? ""}
					whole={answer?.total ?? 0}
					heads={["Address", "Instruction"]}
					begin={0}
					id={`${code.binary} ${code.name}`}
				/>
			</Body>
		</Frame>
	);
}

/** The panel in the place of graph and table. */
export function CodeView(props: CodeProps) {
	return props.code.asm ? <Instructions {...props} /> : <Source {...props} />;
}
