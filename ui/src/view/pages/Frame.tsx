// SPDX-License-Identifier: Apache-2.0
/** What the pages of tables have in common: bar, states, small parts. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { copyText } from "../../app/copy.ts";
import type { ThemeChoice } from "../../app/theme.ts";
import type { Query } from "../../app/use_query.ts";
import type { Theme } from "../../model/colour.ts";
import { formatLength } from "../../model/time.ts";
import { formatShare } from "../../model/units.ts";
import type { State } from "../../model/url.ts";
import { Loading } from "../Empty.tsx";
import { NavMenu } from "../Nav.tsx";
import { PageButtons } from "../TopBar.tsx";

/** What every page gets. */
export interface PageProps {
	state: State;
	theme: Theme;
	choice: ThemeChoice;
	setTheme: (choice: ThemeChoice) => void;
	showHelp: () => void;
}

/** A page with its name, what steers it, and its panels. */
export function Frame(props: {
	page: PageProps;
	title: string;
	/** One sentence: what is to be seen here. */
	about: string;
	controls?: ComponentChildren;
	children: ComponentChildren;
}) {
	const { page, title } = props;
	useEffect(() => {
		document.title = `${title} · firn`;
	}, [title]);
	return (
		<div class="app app-page">
			<header class="top-bar">
				<NavMenu page={page.state.page} />
				<h1>{title}</h1>
				<p class="page-about">{props.about}</p>
				{props.controls}
				<PageButtons choice={page.choice} setTheme={page.setTheme} showHelp={page.showHelp} />
			</header>
			<main class="page-main">{props.children}</main>
		</div>
	);
}

/** What stands in the place of an answer that is not there; null where it is. */
export function notYet<T>(query: Query<T>, what: string): ComponentChildren {
	const { error } = query;
	if (query.data !== null) {
		return null;
	}
	return (
		<section class="panel page-panel" aria-busy={error === null}>
			{error ? (
				<div class="blank in-panel" role="alert" data-testid="page-error">
					<h2>{error.status === 0 ? "The server does not answer" : "No answer"}</h2>
					<p>{error.status === 0 ? "Is firn still running? The page asks again by itself." : error.message}</p>
				</div>
			) : (
				<Loading text={`Asking for ${what}`} trouble={query.trouble} />
			)}
		</section>
	);
}

/** A line above a panel whose answer is old because the server is gone. */
export function Stale({ query }: { query: Query<unknown> }) {
	const trouble = query.error ?? query.trouble;
	if (!trouble || query.data === null) {
		return null;
	}
	return (
		<p class="page-stale" role="status">
			{trouble.status === 0 ? "The server does not answer" : trouble.message}: this is as it was{" "}
			{formatLength(Date.now() - query.atMs)} ago.
		</p>
	);
}

/** A panel with a heading. */
export function Panel(props: { title: string; note?: ComponentChildren; children: ComponentChildren }) {
	return (
		<section class="panel page-panel" aria-label={props.title}>
			<div class="page-head">
				<h2>{props.title}</h2>
				{props.note && <p>{props.note}</p>}
			</div>
			{props.children}
		</section>
	);
}

/** A table that scrolls within its panel; on a phone its rows are cards, each cell below the name of its column. */
export function Table(props: { heads: readonly (readonly [name: string, isNumber?: boolean])[]; children: ComponentChildren }) {
	const table = useRef<HTMLTableElement>(null);
	useLayoutEffect(() => {
		for (const row of table.current!.tBodies[0]!.rows) {
			props.heads.forEach(([name], i) => row.cells[i]?.setAttribute("data-head", name));
		}
	});
	return (
		<div class="page-scroll" tabIndex={0}>
			<table ref={table} class={`page-table ${props.heads.length === 2 ? "narrow" : ""}`}>
				<thead>
					<tr>
						{props.heads.map(([name, isNumber]) => (
							<th key={name} scope="col" class={isNumber ? "number" : ""}>
								{name}
							</th>
						))}
					</tr>
				</thead>
				<tbody>{props.children}</tbody>
			</table>
		</div>
	);
}

/** Figures in a row: a name, a value, and what it means. */
export function Tiles({ tiles }: { tiles: readonly { name: string; value: string; note?: string; bad?: boolean }[] }) {
	return (
		<dl class="tiles">
			{tiles.map((tile) => (
				<div key={tile.name} class={tile.bad ? "bad" : ""}>
					<dt>{tile.name}</dt>
					<dd>{tile.value}</dd>
					{tile.note && <dd class="tile-note">{tile.note}</dd>}
				</div>
			))}
		</dl>
	);
}

/** Copies on a click, and says so for a moment. */
function useCopy(text: string): [done: boolean, copy: () => void] {
	const [done, setDone] = useState(false);
	const copy = () => {
		copyText(text);
		setDone(true);
		setTimeout(() => setDone(false), 1500);
	};
	return [done, copy];
}

/** A command with a button that copies it. */
export function Command({ text }: { text: string }) {
	const [done, copy] = useCopy(text);
	return (
		<button type="button" class="command" title="Copy" onClick={copy}>
			<code>{text}</code>
			<span>{done ? "copied" : "copy"}</span>
		</button>
	);
}

/** A button that copies a command which is not written beside it. */
export function Copy({ text, title }: { text: string; title: string }) {
	const [done, copy] = useCopy(text);
	return (
		<button type="button" class="command" title={title} onClick={copy}>
			<span>{done ? "copied" : "copy command"}</span>
		</button>
	);
}

/** A share as a bar and in words. */
export function ShareBar({ part, whole }: { part: number; whole: number }) {
	const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
	return (
		<>
			<span class="share-text">{formatShare(part, whole)}</span>
			<span class="share-bar">
				<i style={{ transform: `scaleX(${share.toFixed(4)})` }} />
			</span>
		</>
	);
}
