// SPDX-License-Identifier: Apache-2.0
/** What can be taken away: pictures and tables as seen, profiles in the forms of other tools. */
import { useState } from "preact/hooks";
import { graphUrl, pprofUrl, type Question } from "../api/client.ts";
import { chooseFile } from "../app/drop.ts";
import type { Seen } from "../app/save.ts";
import { Icon } from "./icons.tsx";
import listStyle from "../style/lists.lazy.css";
import { Lazy, lazy } from "./Lazy.tsx";
import { Popover } from "./Menu.tsx";

const Keep = lazy(() => import("./more.tsx"), (m) => m.Keep, listStyle);

const SEEN = [
	{ form: "png", name: "Picture", note: "PNG, as wide as a page" },
	{ form: "svg", name: "Drawing", note: "SVG, figures as titles" },
	{ form: "csv", name: "Table", note: "CSV" },
	{ form: "folded", name: "Stacks", note: "folded, a line each" },
] as const;

const WHOLE = [
	{ format: "html", name: "Page of its own", note: "HTML, to send or keep", file: "firn.html" },
	{ format: "speedscope", name: "speedscope", note: "speedscope.app", file: "firn.speedscope.json" },
	{ format: "firefox", name: "Firefox Profiler", note: "profiler.firefox.com", file: "firn.firefox.json" },
	{ format: "folded", name: "Stacks", note: "folded, a line each", file: "firn.folded.txt" },
] as const;

/** The button and its menu. `seen` is asked for when something is saved. */
export function SaveButton({ seen, question }: { seen: () => Seen; question: Question | null }) {
	const [open, setOpen] = useState(false);
	const [failed, setFailed] = useState(false);
	const take = (form: (typeof SEEN)[number]["form"]) => {
		import("../app/save.ts").then(
			(m) => {
				m.save(form, seen());
				setOpen(false);
			},
			() => setFailed(true),
		);
	};
	return (
		<Popover
			class="save-menu"
			title="Save or send what is seen"
			open={open}
			setOpen={setOpen}
			label={
				<>
					<Icon name="save" />
					<span class="save-name">Save</span>
				</>
			}
		>
			<div class="menu-list">
				<h2>As it is seen</h2>
				{SEEN.map((one) => (
					<button type="button" key={one.form} onClick={() => take(one.form)}>
						<span>{one.name}</span>
						<small>{one.note}</small>
					</button>
				))}
				{failed && <p class="range-help">That part of the page did not come; try again.</p>}
				{question && (
					<>
						<h2>Kept on this server, as it is now</h2>
						<Lazy of={Keep} question={question} />
						<h2>All stacks of the query, without filters</h2>
						<a href={pprofUrl(question)} onClick={() => setOpen(false)}>
							<span>pprof</span>
							<small>go tool pprof</small>
						</a>
						{WHOLE.map((one) => (
							<a
								key={one.format}
								href={graphUrl(question, one.format)}
								download={one.file}
								onClick={() => setOpen(false)}
							>
								<span>{one.name}</span>
								<small>{one.note}</small>
							</a>
						))}
					</>
				)}
				<h2>A file of your own</h2>
				<button
					type="button"
					onClick={() => {
						setOpen(false);
						chooseFile();
					}}
				>
					<span>Open a file…</span>
					<small>or drop it on the page</small>
				</button>
			</div>
		</Popover>
	);
}
