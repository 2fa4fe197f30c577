// SPDX-License-Identifier: Apache-2.0
/** The pages about one question: chart, graph and table, or the same compared with another question. */
import { useEffect } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import { type Data, useData } from "../app/data.ts";
import { rememberQuery } from "../app/recent.ts";
import { go, stateNow } from "../app/store.ts";
import type { ThemeChoice } from "../app/theme.ts";
import type { Theme } from "../model/colour.ts";
import { ofMatchers } from "../model/selector.ts";
import { isLive, rangeName } from "../model/time.ts";
import { meaningOf } from "../model/types.ts";
import { DEFAULTS, type State } from "../model/url.ts";
import codeStyle from "../style/code.lazy.css";
import { Loading, NoAnswer, Problem, Waiting } from "./Empty.tsx";
import { FlamePanel } from "./FlamePanel.tsx";
import { Lazy, lazy } from "./Lazy.tsx";
import { Timeline } from "./Timeline.tsx";
import { TopBar } from "./TopBar.tsx";

const CodeView = lazy(() => import("./more.tsx"), (m) => m.CodeView, codeStyle);
const Nothing = lazy(() => import("./more.tsx"), (m) => m.Nothing);
const BadRange = lazy(() => import("./more.tsx"), (m) => m.BadRange);

/** Esc undoes one step: first the one that narrows most. */
function stepBack(): void {
	const s = stateNow();
	if (s.code) {
		go({ code: null });
	} else if (s.mark !== "" || s.binary !== "") {
		go({ mark: "", binary: "" }, "replace");
	} else if (s.search !== "") {
		go({ search: "" }, "replace");
	} else if (s.zoom !== "") {
		go({ zoom: "" });
	} else if (s.focus !== "") {
		go({ focus: "", sandwich: false, invert: false });
	} else if (s.filters.length > 0) {
		go({ filters: s.filters.slice(0, -1), zoom: "" });
	} else if (s.select) {
		go({ select: null });
	}
}

function useKeys(data: Data): void {
	useEffect(() => {
		const views = { "1": "both", "2": "flame", "3": "table", "4": "calls", "5": "time" } as const;
		const listen = (e: KeyboardEvent) => {
			const target = e.target as HTMLElement;
			if (e.defaultPrevented || target.closest?.("input, select, textarea, dialog")) {
				return;
			}
			if (e.ctrlKey || e.metaKey || e.altKey) {
				return;
			}
			if (e.key === "Escape") {
				stepBack();
			} else if (e.key === "r") {
				data.refresh();
			} else if (e.key === "p" && isLive(stateNow().range)) {
				go({ paused: !stateNow().paused }, "replace");
			} else if (e.key === "i") {
				go({ invert: !stateNow().invert, zoom: "" });
			} else if (e.key in views) {
				go({ view: views[e.key as keyof typeof views] });
			}
		};
		window.addEventListener("keydown", listen);
		return () => window.removeEventListener("keydown", listen);
	});
}

/** Graph and table, or why there are none. */
function Lower({ data, state, theme }: { data: Data; state: State; theme: Theme }) {
	const { flame, shown } = data;
	if (!flame.data && flame.error) {
		return (
			<section class="panel profile">
				<NoAnswer error={flame.error} state={state} data={data} />
			</section>
		);
	}
	if (!flame.data) {
		return (
			<section class="panel profile" aria-busy="true">
				<Loading text="Asking for the flame graph" trouble={flame.trouble} />
			</section>
		);
	}
	if (flame.data.total <= 0 || !shown) {
		return <Lazy of={Nothing} data={data} state={state} />;
	}
	if (state.code && data.question) {
		return <Lazy of={CodeView} code={state.code} data={data} question={data.question} />;
	}
	return <FlamePanel data={data} flame={shown} state={state} theme={theme} />;
}

/** Errors of the shown parts; those of the question are shown at the selector. */
function errorsOf(data: Data, matchers: string): { selector: string; other: ApiError | null } {
	const { types, flame, series, top } = data;
	const errors = [types.error, flame.error, series.error, top.error].filter((e) => e !== null);
	const bad = errors.find((e) => e.status === 400);
	const selector = bad ? ofMatchers(bad.message, data.type?.type ?? "", matchers) : "";
	return { selector, other: errors.find((e) => e.status !== 400) ?? null };
}

/** "main.main · CPU, last 15 minutes · firn" */
function useTitle(state: State, data: Data): string {
	const what = data.type ? meaningOf(data.type.type).name : "";
	const about = state.focus || state.matchers;
	const range = data.problem === "" ? rangeName(state.range, serverNow()) : "";
	const title = [about, what && range ? `${what}, ${range}` : what].filter(Boolean).join(" · ");
	useEffect(() => {
		document.title = title ? `${title} · firn` : "firn";
	}, [title]);
	return title;
}

const Compare = lazy(() => import("./compare/Compare.tsx"), (m) => m.Compare);

/** The page below the top bar. */
function Body({ data, state, theme }: { data: Data; state: State; theme: Theme }) {
	if (data.type === null) {
		const started = data.types.data !== null || data.types.error !== null;
		return (
			<main class="waiting">
				{started ? (
					<Waiting error={data.types.error} />
				) : (
					<Loading text="Asking the server what it has" trouble={data.types.trouble} />
				)}
			</main>
		);
	}
	if (data.problem !== "") {
		return (
			<main class="waiting">
				<Lazy of={BadRange} problem={data.problem} state={state} />
			</main>
		);
	}
	const { other } = errorsOf(data, state.matchers);
	const shownMs = data.flame.atMs;
	return (
		<main>
			{state.page === "compare" ? (
				<Lazy of={Compare} data={data} state={state} theme={theme} />
			) : (
				<>
					<Timeline state={state} data={data} theme={theme} base={null} />
					<Lower data={data} state={state} theme={theme} />
				</>
			)}
			{other && shownMs > 0 && <Problem error={other} shownMs={shownMs} retry={data.refresh} />}
		</main>
	);
}

/** Explore and Compare. */
export function Explore(props: {
	state: State;
	theme: Theme;
	choice: ThemeChoice;
	setTheme: (choice: ThemeChoice) => void;
	showHelp: () => void;
}) {
	const { state, theme } = props;
	const data = useData(state);
	useKeys(data);
	const title = useTitle(state, data);
	const { question, flame } = data;
	useEffect(() => {
		if (state.matchers.trim() !== "" && question && flame.data && flame.data.total > 0) {
			rememberQuery(question.query);
		}
	}, [flame.data]);
	return (
		<div class={`app ${state.view === DEFAULTS.view ? "" : `app-${state.view}`}`}>
			<TopBar
				title={title}
				state={state}
				data={data}
				selectorError={errorsOf(data, state.matchers).selector}
				choice={props.choice}
				setTheme={props.setTheme}
				showHelp={props.showHelp}
			/>
			<Body data={data} state={state} theme={theme} />
		</div>
	);
}
