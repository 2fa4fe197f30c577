// SPDX-License-Identifier: Apache-2.0
/** Keeps the shown profile on the server for a time, with a link to it. */
import { useState } from "preact/hooks";
import { ApiError, keepSnapshot, type Question } from "../../api/client.ts";
import { copyText } from "../../app/copy.ts";
import { stateNow } from "../../app/store.ts";
import { toLocalText } from "../../model/time.ts";
import { DEFAULTS, formatUrl } from "../../model/url.ts";

const TIMES = [
	{ value: "1d", name: "a day" },
	{ value: "7d", name: "a week" },
	{ value: "30d", name: "30 days" },
	{ value: "365d", name: "a year" },
] as const;

/** A link to the snapshot, with the current view. */
function linkTo(shared: string): string {
	const { view, invert, focus, sandwich, filters, group, zoom, search, mark, binary, sort } = stateNow();
	const seen = { view, invert, focus, sandwich, filters, group: group === "label" ? DEFAULTS.group : group, zoom, search, mark, binary, sort };
	return location.origin + location.pathname + formatUrl({ ...DEFAULTS, ...seen, shared });
}

/** A part of the menu. */
export function Keep({ question }: { question: Question }) {
	const [time, setTime] = useState<string>("30d");
	const [state, set] = useState<{ link: string; said: string; bad: boolean } | null>(null);
	const keep = () => {
		set({ link: "", said: "Keeping it…", bad: false });
		keepSnapshot(question, time).then(
			({ id, expires }) => {
				const link = linkTo(id);
				copyText(link);
				set({ link, said: `Link copied; it is there until ${toLocalText(expires)}`, bad: false });
			},
			(e) => set({ link: "", said: e instanceof ApiError ? e.message : String(e), bad: true }),
		);
	};
	return (
		<div class="keep" data-testid="keep">
			<label class="by">
				for
					<select value={time} aria-label="How long it is kept" onChange={(e) => setTime(e.currentTarget.value)}>
					{TIMES.map((one) => (
						<option key={one.value} value={one.value}>
							{one.name}
						</option>
					))}
				</select>
			</label>
			<button type="button" class="button" onClick={keep}>
				Keep, copy a link
			</button>
			{state && (
				<p class="range-help" role={state.bad ? "alert" : "status"}>
					{state.said}
				</p>
			)}
			{state?.link && <input class="keep-link" readOnly value={state.link} aria-label="Link to the snapshot" onFocus={(e) => e.currentTarget.select()} />}
		</div>
	);
}
