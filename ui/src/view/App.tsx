// SPDX-License-Identifier: Apache-2.0
/** The navigation bar, and the page that is open. */
import { useEffect, useState } from "preact/hooks";
import { useAppState } from "../app/store.ts";
import { useTheme } from "../app/theme.ts";
import { Explore } from "./Explore.tsx";
import { Help } from "./Help.tsx";
import { Rail } from "./Nav.tsx";

/** "?" opens the help, wherever nobody types. */
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

/** Everything. */
export function App() {
	const state = useAppState();
	const [choice, theme, setTheme] = useTheme();
	const [help, setHelp] = useState(false);
	const showHelp = () => setHelp(true);
	useHelpKey(showHelp);
	return (
		<div class="shell">
			<Rail page={state.page} />
			<Explore state={state} theme={theme} choice={choice} setTheme={setTheme} showHelp={showHelp} />
			{help && <Help close={() => setHelp(false)} />}
		</div>
	);
}
