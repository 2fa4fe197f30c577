// SPDX-License-Identifier: Apache-2.0
/** The navigation bar, and the page that is open. */
import { useEffect, useState } from "preact/hooks";
import { onRefused } from "../api/client.ts";
import { useFile } from "../app/drop.ts";
import { useFront } from "../app/front.ts";
import { useAppState } from "../app/store.ts";
import { useTheme } from "../app/theme.ts";
import type { Page } from "../model/url.ts";
import { Explore } from "./Explore.tsx";
import { Lazy, lazy, type LazyView } from "./Lazy.tsx";
import { Login } from "./Login.tsx";
import { Rail } from "./Nav.tsx";
import type { PageProps } from "./pages/Frame.tsx";

const pages = () => import("./pages/pages.tsx");
const Help = lazy(() => import("./more.tsx"), (m) => m.Help);
const LocalFile = lazy(() => import("./files.tsx"), (m) => m.LocalFile);
const Shared = lazy(() => import("./files.tsx"), (m) => m.Shared);
const OTHERS: Partial<Record<Page, LazyView<PageProps>>> = {
	fleet: lazy(pages, (m) => m.Fleet),
	agents: lazy(pages, (m) => m.Agents),
	targets: lazy(pages, (m) => m.Targets),
	symbols: lazy(pages, (m) => m.Symbols),
	store: lazy(pages, (m) => m.Store),
};

/** "?" opens the help, unless the user is typing. */
function useHelpKey(show: () => void): void {
	useEffect(() => {
		const listen = (e: KeyboardEvent) => {
			const typing = (e.target as HTMLElement).closest?.("input, select, textarea, dialog");
			if (e.key === "?" && !e.defaultPrevented && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
				show();
			}
		};
		window.addEventListener("keydown", listen);
		return () => window.removeEventListener("keydown", listen);
	});
}

/** The whole page. */
export function App() {
	const state = useAppState();
	const [choice, theme, setTheme] = useTheme();
	const [help, setHelp] = useState(false);
	const [locked, setLocked] = useState(false);
	useEffect(() => onRefused(() => setLocked(true)), []);
	// the page does not change until the help is loaded, or loading has failed
	const showHelp = () => void Help.load().catch(() => undefined).then(() => setHelp(true));
	useHelpKey(showHelp);
	useFront();
	const { file, over, close } = useFile();
	const shown = { state, theme, choice, setTheme, showHelp };
	const other = OTHERS[state.page];
	if (locked) {
		return (
			<main class="waiting">
				<Login done={() => location.reload()} />
			</main>
		);
	}
	return (
		<div class="shell">
			<Rail page={state.page} />
			{file ? (
				<Lazy of={LocalFile} {...shown} file={file} close={close} />
			) : state.shared !== "" ? (
				<Lazy of={Shared} {...shown} />
			) : other ? (
				<Lazy of={other} key={state.page} {...shown} />
			) : (
				<Explore {...shown} />
			)}
			{over && <p class="drop-here">Drop a pprof, perf script, speedscope or folded file to look at it</p>}
			{help && <Lazy of={Help} close={() => setHelp(false)} />}
		</div>
	);
}
