// SPDX-License-Identifier: Apache-2.0
/** A profile that is kept on the server, shown like a file, with its selector and time. */
import { getShared } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import { go } from "../../app/store.ts";
import { useQuery } from "../../app/use_query.ts";
import type { View } from "../../model/local.ts";
import { endOfSnapshot, readNote } from "../../model/snapshot.ts";
import { formatSpan, toLocalText } from "../../model/time.ts";
import { typeName } from "../../model/types.ts";
import { NO_SNAPSHOT } from "../../model/url.ts";
import { Loading } from "../Empty.tsx";
import { LocalFile } from "../LocalFile.tsx";
import type { PageProps } from "../pages/Frame.tsx";

const noteOf = (view: View | undefined) => readNote(view?.comments ?? []);

/** "CPU of {comm="x"}, 08:00:00 – 08:15:00; kept on this server until 2026-12-01 08:20" */
function aboutOf(id: string, view: View | undefined): string {
	const note = noteOf(view);
	const span = note?.span ?? view?.span;
	const end = endOfSnapshot(id);
	const what = note && `${typeName(note.type)} of ${note.matchers === "" ? "everything" : `{${note.matchers}}`}`;
	const when = span && formatSpan(span, serverNow());
	const kept = `kept on this server${end === null ? "" : ` until ${toLocalText(end).slice(0, -3)}`}`;
	const shown = [what, when].filter(Boolean).join(", ");
	return shown === "" ? `A profile that is ${kept}` : `${shown}; ${kept}`;
}

/** Goes to the server's samples, with the snapshot's selector if it is known. */
function leave(view: View | undefined): void {
	const note = noteOf(view);
	go({ shared: "", zoom: "", ...(note && { type: note.type, matchers: note.matchers }) });
}

function NotHere({ reason }: { reason: string }) {
	return (
		<main class="waiting">
			<div class="blank" role="alert" data-testid="no-snapshot">
				<h1>This snapshot is not here</h1>
				<p>{reason}.</p>
				<div class="blank-ways">
					<button type="button" class="button primary" onClick={() => leave(undefined)}>
						To the server's samples
					</button>
				</div>
			</div>
		</main>
	);
}

/** The page of a snapshot. */
export function Shared(page: PageProps) {
	const { shared } = page.state;
	const isId = shared !== NO_SNAPSHOT;
	const file = useQuery(isId ? shared : null, 0, (signal) => getShared(shared, signal));
	if (!isId) {
		return <NotHere reason="The link is not whole: an id has 22 or 28 letters and digits behind “shared=”" />;
	}
	if (file.data) {
		const words = { title: "Snapshot", leave: "To the server's samples", about: (view: View | undefined) => aboutOf(shared, view) };
		return <LocalFile {...page} file={file.data} close={leave} words={words} />;
	}
	return file.error ? (
		<NotHere reason={file.error.message} />
	) : (
		<main class="waiting">
			<Loading text="Fetching the snapshot" trouble={file.trouble} />
		</main>
	);
}
