// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { logOut } from "../api/client.ts";
import { serverNow } from "../api/clock.ts";
import type { ProfileType } from "../api/types.ts";
import { copyText } from "../app/copy.ts";
import type { Data } from "../app/data.ts";
import { go } from "../app/store.ts";
import { LOGGED_IN, readSetting, type ThemeChoice, writeSetting } from "../app/theme.ts";
import { formatClock, isLive, spanOf, toApiTime } from "../model/time.ts";
import { typeName } from "../model/types.ts";
import { formatUrl, type State } from "../model/url.ts";
import listStyle from "../style/lists.lazy.css";
import { Icon, type IconName } from "./icons.tsx";
import { Lazy, lazy } from "./Lazy.tsx";
import { Popover } from "./Menu.tsx";
import { NavMenu } from "./Nav.tsx";
import { RangePicker } from "./RangePicker.tsx";
import { SelectorInput } from "./SelectorInput.tsx";

const THEMES: Record<ThemeChoice, { icon: IconName; next: ThemeChoice; name: string }> = {
	auto: { icon: "auto", next: "dark", name: "as the system" },
	dark: { icon: "moon", next: "light", name: "dark" },
	light: { icon: "sun", next: "auto", name: "light" },
};

export function TypePicker({ types, type }: { types: ProfileType[]; type: ProfileType }) {
	const known = types.some((t) => t.type === type.type) ? types : [type, ...types];
	const all = known.map((t) => t.type);
	return (
		<label class="type">
			<span class="visually-hidden">Profile type</span>
			<select
				value={type.type}
				title={type.type}
				onChange={(e) => go({ type: e.currentTarget.value, zoom: "", select: null })}
			>
				{known.map((t) => (
					<option key={t.type} value={t.type} title={t.type}>
						{typeName(t.type, all)}
					</option>
				))}
			</select>
		</label>
	);
}

/** A link to the current view: the range becomes absolute, so that the link shows the same later. */
function shareLink(state: State, data: Data): string {
	const { fromMs, toMs } = data.span;
	const range = isLive(state.range)
		? { from: toApiTime(fromMs), to: toApiTime(toMs) }
		: state.range;
	const type = data.type?.type ?? state.type;
	const base = state.baseRange && spanOf(state.baseRange, serverNow());
	const baseRange = base && { from: toApiTime(base.fromMs), to: toApiTime(base.toMs) };
	return location.origin + location.pathname + formatUrl({ ...state, type, range, baseRange });
}

function ShareButton({ state, data }: { state: State; data: Data }) {
	const [done, setDone] = useState(false);
	return (
		<button
			type="button"
			class="button square"
			title="Copy a link to exactly this, with absolute times"
			aria-label="Copy link"
			onClick={() => {
				copyText(shareLink(state, data));
				setDone(true);
				setTimeout(() => setDone(false), 1500);
			}}
		>
			<Icon name="link" />
			{done && <span class="said floating">Link copied</span>}
		</button>
	);
}

const Saved = lazy(() => import("./more.tsx"), (m) => m.SavedViews, listStyle);

function SavedButton({ state, data }: { state: State; data: Data }) {
	const [open, setOpen] = useState(false);
	const type = data.type?.type ?? state.type;
	return (
		<Popover class="saved-menu" title="Views by name, kept on the server" open={open} setOpen={setOpen} label={<Icon name="saved" />}>
			<Lazy of={Saved} address={formatUrl({ ...state, type })} close={() => setOpen(false)} />
		</Popover>
	);
}

/** Text and state of the button of a live range. */
function liveState(state: State, data: Data): { name: string; title: string; class: string } {
	const { trouble } = data.types;
	if (trouble?.status === 0) {
		return { name: "No answer", title: "The server does not answer", class: "bad" };
	}
	if (state.paused) {
		return { name: "Paused", title: "Follow the clock again (p)", class: "" };
	}
	if (data.flame.trouble ?? data.series.trouble) {
		return { name: "Waiting", title: "The server is busy; the page asks again", class: "" };
	}
	return { name: "Live", title: "Pause (p)", class: "on" };
}

function LiveButtons({ state, data }: { state: State; data: Data }) {
	const live = liveState(state, data);
	const shown = data.flame.atMs > 0 ? `; graph and table of ${formatClock(data.flame.atMs)}` : "";
	return (
		<div class="group">
			<button
				type="button"
				class="button square"
				title="Ask again now (r)"
				aria-label="Refresh"
				onClick={data.refresh}
			>
				<Icon name="refresh" />
			</button>
			{isLive(state.range) && data.problem === "" && (
				<button
					type="button"
					class={`button live ${live.class}`}
					title={live.title + shown}
					aria-pressed={!state.paused}
					data-testid="live"
					onClick={() => go({ paused: !state.paused }, "replace")}
				>
					<Icon name={state.paused ? "play" : "pause"} />
					{live.name}
				</button>
			)}
		</div>
	);
}

/** Buttons for the page itself. */
export function PageButtons(props: {
	choice: ThemeChoice;
	setTheme: (choice: ThemeChoice) => void;
	showHelp: () => void;
}) {
	const { setTheme, showHelp } = props;
	const theme = THEMES[props.choice];
	return (
		<div class="group last">
			<button
				type="button"
				class="button square"
				title={`Theme: ${theme.name}`}
				aria-label={`Theme: ${theme.name}`}
				onClick={() => setTheme(theme.next)}
			>
				<Icon name={theme.icon} />
			</button>
			{readSetting(LOGGED_IN) === "1" && (
				<button
					type="button"
					class="button square"
					title="Log out"
					aria-label="Log out"
					onClick={() => {
						writeSetting(LOGGED_IN, "");
						logOut().finally(() => location.reload());
					}}
				>
					<Icon name="leave" />
				</button>
			)}
			<button
				type="button"
				class="button square"
				title="What to click, and keys (?)"
				aria-label="Help"
				onClick={showHelp}
			>
				?
			</button>
		</div>
	);
}

/** Type, selector, range, and buttons for the page itself. */
export function TopBar(props: {
	title: string;
	state: State;
	data: Data;
	selectorError: string;
	choice: ThemeChoice;
	setTheme: (choice: ThemeChoice) => void;
	showHelp: () => void;
}) {
	const { state, data, selectorError, choice, setTheme, showHelp } = props;
	const { type } = data;
	return (
		<header class="top-bar">
			<h1 class="visually-hidden">firn: {props.title}</h1>
			<NavMenu page={state.page} />
			{type && (
				<>
					<TypePicker types={data.types.data ?? []} type={type} />
					<SelectorInput
						type={type.type}
						matchers={state.matchers}
						error={selectorError}
						range={{ from: toApiTime(data.span.fromMs), to: toApiTime(data.span.toMs) }}
						commit={(matchers, pasted) => go({ matchers, type: pasted || state.type, zoom: "" })}
					/>
					<RangePicker
						range={state.range}
						choose={(range) => go({ range, select: null, paused: false })}
					/>
					<LiveButtons state={state} data={data} />
					<div class="group">
						<SavedButton state={state} data={data} />
						<ShareButton state={state} data={data} />
					</div>
				</>
			)}
			<PageButtons choice={choice} setTheme={setTheme} showHelp={showHelp} />
		</header>
	);
}
