// SPDX-License-Identifier: Apache-2.0
/** Notes about a text, or why there is none. */
import type { Question } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import type { InstructionsAnswer, SourceAnswer } from "../../api/types.ts";
import { isShort, movedTo } from "../../model/code.ts";
import { parseInstant } from "../../model/instant.ts";
import type { Code } from "../../model/url.ts";

const ORIGINS = {
	upload: "The text as it was uploaded for this build.",
	debuginfod: "The text that a debuginfod server has for this build.",
	host: "The file of this path on the server's host.",
};

/** The origin of the text, and warnings about it. */
export function Origin(props: { answer: SourceAnswer; question: Question; name: string; line: number; build: string }) {
	const { answer, question, name, line } = props;
	const { origin, modified = 0, builds, places } = answer;
	const text = answer.text ?? null;
	const short = isShort(text, places);
	const moved = movedTo(text, name, line);
	const mixed = props.build === "" && builds.length > 1;
	if (!origin) {
		return (
			<p class="code-note" data-testid="code-origin">
				The text of this file is not here; these are the lines with samples. To have it, where the
				program was built: <code>firn debuginfo source PROGRAM</code>, then{" "}
				<code>firn debuginfo upload --type=sources --build-id={builds[0] || "BUILDID"} source.tar.zstd</code>
			</p>
		);
	}
	const younger = origin === "host" && modified > parseInstant(question.from, serverNow());
	return (
		<p class={`code-note ${short || younger || moved > 0 || mixed ? "doubt" : ""}`} data-testid="code-origin">
			{ORIGINS[origin]}
			{younger && " It was changed after these samples began: lines may have moved."}
			{short && " It has fewer lines than the program was built from."}
			{moved > 0 &&
				` It is not the version that ran: the program has this function at line ${line}, the text at line ${moved}. Values stand beside wrong lines.`}
			{mixed && ` The values are of ${builds.length} builds, the text is of one: choose a build.`}
		</p>
	);
}

/** Why there are no instructions. */
export function Missing({ answer, code }: { answer: InstructionsAnswer; code: Code }) {
	const build = answer.builds[0];
	if (build === undefined) {
		return (
			<>
				<h2>No instructions of its own</h2>
				<p>
					No sample in this time lies in a function of this name{code.binary && ` in ${code.binary}`}. Where it
					was inlined into others, its instructions are among theirs.
				</p>
			</>
		);
	}
	return (
		<>
			<h2>The instructions are not at hand</h2>
			<p>{answer.missing}.</p>
			<p>
				To have them: <code>firn debuginfo upload --type=executable --build-id={build || "BUILDID"} {answer.binary}</code>
			</p>
		</>
	);
}
