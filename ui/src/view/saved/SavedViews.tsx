// SPDX-License-Identifier: Apache-2.0
/** Views that were saved on the server, for all its users. */
import { useState } from "preact/hooks";
import { ApiError, changeView, getViews } from "../../api/client.ts";
import { useQuery } from "../../app/use_query.ts";

const NAME_MAX = 100;

/** The menu: the views, and a form that saves this one. `address`: of this view, from "?" on. */
export function SavedViews({ address, close }: { address: string; close: () => void }) {
	const [tick, again] = useState(0);
	const [name, setName] = useState("");
	const [error, setError] = useState("");
	const views = useQuery("views", tick, getViews);
	const change = (change: { name: string; url?: string }) =>
		changeView(change).then(
			() => {
				setName("");
				setError("");
				again((n) => n + 1);
			},
			(problem) => setError(problem instanceof ApiError ? problem.message : String(problem)),
		);
	return (
		<div class="menu-list" data-testid="saved-views">
			<h2>Saved views, for all who use this server</h2>
			{views.data?.length === 0 && <p class="range-help">None yet.</p>}
			{(views.data ?? []).map((view) => (
				<div class="saved-view" key={view.name}>
					<a href={view.url} onClick={close}>
						<span>{view.name}</span>
					</a>
					<button type="button" class="bare" aria-label={`Delete ${view.name}`} title="Delete" onClick={() => change({ name: view.name })}>
						×
					</button>
				</div>
			))}
			<form
				class="saved-new"
				onSubmit={(e) => {
					e.preventDefault();
					change({ name: name.trim(), url: address });
				}}
			>
				<input
					aria-label="Name of this view"
					placeholder="Name of this view"
					maxLength={NAME_MAX}
					value={name}
					onInput={(e) => setName(e.currentTarget.value)}
				/>
				<button type="submit" class="button" disabled={name.trim() === ""}>
					Save
				</button>
			</form>
			{(error || views.error) && (
				<p class="range-help" role="alert">
					{error || views.error?.message}
				</p>
			)}
		</div>
	);
}
