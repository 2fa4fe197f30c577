// SPDX-License-Identifier: Apache-2.0
/** Graph and table side by side, with their controls. */
import { useMemo, useState } from "preact/hooks";
import { copyText } from "../app/copy.ts";
import { type Data, isFiltered } from "../app/data.ts";
import { keepReading } from "../app/hold.ts";
import { useSlots } from "../app/palette.ts";
import { go } from "../app/store.ts";
import { paintFlame, type Theme } from "../model/colour.ts";
import { type Flame, nodeName } from "../model/flame.ts";
import { compileSearch, type Found, markFlame, searchFlame } from "../model/search.ts";
import { type Row, tableOf } from "../model/table.ts";
import { formatShare, formatValue } from "../model/units.ts";
import type { State, View } from "../model/url.ts";
import callsStyle from "../style/calls.lazy.css";
import timeStyle from "../style/time.lazy.css";
import { commonWords, mainBinary, Words } from "../model/words.ts";
import { BinaryLegend } from "./BinaryLegend.tsx";
import { Figures } from "./Figures.tsx";
import { FilterButton, FilterChips } from "./Filters.tsx";
import { FlameGraph } from "./FlameGraph.tsx";
import { FlameLine } from "./FlameLine.tsx";
import { frameKey, menuItems, rowItems } from "./frame_menu.ts";
import { Lazy, lazy } from "./Lazy.tsx";
import { Menu } from "./Menu.tsx";
import { useFrameMenu, useReader, useRowMenu } from "./menus.ts";
import { Sandwich } from "./Sandwich.tsx";
import { SaveButton } from "./Save.tsx";
import { SearchBox } from "./SearchBox.tsx";
import { seenOf } from "./seen.ts";
import { Segments } from "./Segments.tsx";
import { TopTable } from "./TopTable.tsx";
import { keepMatches, shareText, useSteps } from "./use_steps.ts";

export const VIEWS: readonly { value: View; name: string }[] = [
	{ value: "both", name: "Both" },
	{ value: "flame", name: "Graph" },
	{ value: "table", name: "Table" },
	{ value: "calls", name: "Calls" },
	{ value: "time", name: "Time" },
];

const CallGraph = lazy(() => import("./more.tsx"), (m) => m.CallGraphView, callsStyle);

const TimeView = lazy(() => import("./more.tsx"), (m) => m.TimeView, timeStyle);

export const DIRECTIONS = [
	{ value: "down", name: "Callees", title: "Callers on top, what they call below" },
	{ value: "up", name: "Callers", title: "Turned around: each function, and below it its callers" },
] as const;

/** Search, marks and hover: which frames keep their colour. */
export function useMarks(flame: Flame, words: Words, zoom: number, state: State, hoverName: string) {
	const search = useMemo(() => compileSearch(state.search), [state.search]);
	const found = useMemo(
		() => (search.matcher ? searchFlame(flame, search.matcher, 0, search.field) : null),
		[flame, search],
	);
	const inZoom = useMemo(() => found?.valueBelow(zoom) ?? 0, [found, zoom]);
	const other = useMemo<Found | null>(() => {
		const name = hoverName || state.mark;
		if (name !== "") {
			return searchFlame(flame, (s) => s === name, zoom, "name");
		}
		if (state.binary === "") {
			return null;
		}
		const marked = markFlame(flame, zoom, (i) => (words.word(i) === state.binary ? 1 : 0));
		return marked.count === 0 ? null : marked;
	}, [flame, words, zoom, hoverName, state.mark, state.binary]);
	return { search, found, inZoom, hit: (other ?? found)?.hit ?? null };
}

/** Rows of the table: the server's for all samples, the graph's for a part. */
function useRows(
	data: Data,
	flame: Flame,
	zoom: number,
	state: State,
): { rows: Row[] | null; whole: number } {
	const { top } = data;
	const all = data.flame.data;
	return useMemo(() => {
		if (!all || (!state.invert && (state.focus !== "" || zoom > 0))) {
			return { rows: tableOf(flame, zoom), whole: flame.value[zoom]! };
		}
		if (top.data && all.trimmed > 0 && !isFiltered(state) && data.flame.id.startsWith(top.id)) {
			return { rows: top.data.rows, whole: top.data.total };
		}
		return { rows: tableOf(all, 0, state.invert && state.focus === ""), whole: all.value[0]! };
	}, [flame, all, zoom, data.flame.id, top.data, top.id, state.focus, state.invert, state.filters, state.group]);
}

/** The words by which frames are coloured, and the slots of the commonest. */
function useWords(data: Data, flame: Flame, state: State) {
	const whole = data.flame.data ?? flame;
	const callers = state.invert && state.focus === "";
	const split = useMemo(() => mainBinary(whole, callers), [whole, callers]);
	const words = useMemo(() => new Words(flame, split), [flame, split]);
	const commonest = useMemo(() => {
		const all = whole === flame ? words : new Words(whole, split);
		return commonWords(whole, all, callers, split);
	}, [whole, words, split, callers]);
	return { words, split, slots: useSlots(commonest) };
}

/** The lower half of the page. `flame` is not empty. */
export function FlamePanel(props: { data: Data; flame: Flame; state: State; theme: Theme }) {
	const { data, flame, state, theme } = props;
	const { zoom } = data;
	const [hover, setHover] = useState({ table: "", graph: "" });
	const menu = useFrameMenu(flame);
	const row = useRowMenu();
	const hasMenu = menu.node >= 0 || row.menu !== null;
	useReader(hasMenu);
	const isSandwich = state.sandwich && state.focus !== "";
	// a file has no samples by time
	const timed = state.view === "time" && data.question !== null;
	const showsGraph = state.view === "both" || state.view === "flame" || (state.view === "time" && !timed);
	const { words, slots, split } = useWords(data, flame, state);
	const paint = useMemo(
		() => paintFlame(flame, words, theme, slots),
		[flame, words, theme, slots],
	);
	const { search, found, hit, inZoom } = useMarks(flame, words, zoom, state, hover.table);
	const { rows, whole } = useRows(data, flame, zoom, state);
	const { focus, setFocus, zoomTo, step, place } = useSteps(flame, zoom, state, found);
	const seen = () =>
		seenOf(flame, paint, hit, zoom, [
			["function", "binary", "file", "runtime", `self ${flame.unit}`, `total ${flame.unit}`],
			...(rows ?? []).map((r) => [r.name, r.binary, r.file, r.kind, r.self, r.total]),
		]);
	return (
		<section class="panel profile" aria-label="Profile">
			<div class="profile-bar">
				<SearchBox
					text={state.search}
					error={search.error}
					share={shareText(flame, zoom, found, inZoom)}
					place={place}
					step={step}
					keep={() => keepMatches(state, found)}
				/>
				<FilterButton state={state} />
				<SaveButton seen={seen} question={data.question} />
				<Figures flame={flame} zoom={zoom} data={data} />
				{!timed && (
					<Segments
						label="Direction"
						value={state.invert ? "up" : "down"}
						choices={DIRECTIONS}
						choose={(v) => go({ invert: v === "up", sandwich: false, zoom: "" })}
					/>
				)}
				<Segments label="View" value={state.view} choices={data.question ? VIEWS : VIEWS.slice(0, 4)} choose={(view) => go({ view })} />
			</div>
			<FilterChips state={state} />
			<div
				class={`profile-body view-${state.view} ${data.flame.slow ? "slow" : ""}`}
				onKeyDown={() => !hasMenu && keepReading()}
			>
				{state.view === "calls" && (
					<Lazy
						of={CallGraph}
						flame={flame}
						zoom={zoom}
						callers={state.invert}
						words={words}
						slots={slots}
						theme={theme}
						matcher={search.field ? null : search.matcher}
						mark={state.mark}
						choose={(name) => go({ mark: name === state.mark ? "" : name }, "replace")}
						openMenu={row.open}
					/>
				)}
				{timed && (
					<Lazy of={TimeView} data={data} state={state} theme={theme} slots={slots} split={split} matcher={search.field ? null : search.matcher} />
				)}
				{showsGraph && isSandwich && (
					<Sandwich
						whole={data.flame.data ?? flame}
						name={state.focus}
						theme={theme}
						split={split}
						slots={slots}
						search={search}
						openMenu={row.open}
						onHover={(graph) => setHover((h) => (h.graph === graph ? h : { ...h, graph }))}
					/>
				)}
				{showsGraph && !isSandwich && (
					<div class="flame">
						<BinaryLegend
							flame={flame}
							words={words}
							slots={slots}
							zoom={zoom}
							callers={state.invert}
							theme={theme}
							binary={state.binary}
						/>
						<FlameLine
							flame={flame}
							zoom={zoom}
							state={state}
							type={data.type?.type ?? ""}
							zoomTo={zoomTo}
						/>
						<FlameGraph
							flame={flame}
							paint={paint}
							theme={theme}
							zoom={zoom}
							total={data.flame.data?.total ?? flame.total}
							hit={hit}
							focus={focus}
							setFocus={setFocus}
							zoomTo={zoomTo}
							openMenu={menu.open}
							onHover={(node) => {
								const graph = node > 0 ? nodeName(flame, node) : "";
								setHover((h) => (h.graph === graph ? h : { ...h, graph }));
							}}
							copy={(node) => copyText(nodeName(flame, node))}
							onMagnify={data.magnified}
							onKey={(key, node) => frameKey(flame, key, node)}
						/>
					</div>
				)}
				{(state.view === "both" || state.view === "table") && (
					<TopTable
						rows={rows}
						unit={flame.unit}
						group={state.group}
						whole={whole}
						theme={theme}
						words={words}
						slots={slots}
						matcher={search.matcher}
						field={found?.field ?? "name"}
						sort={state.sort}
						mark={state.mark}
						hover={hover.graph}
						openMenu={row.open}
						onHover={(table) => setHover((h) => (h.table === table ? h : { ...h, table }))}
					/>
				)}
			</div>
			{menu.node >= 0 && (
				<Menu
					at={menu.at}
					title={nodeName(flame, menu.node)}
					note={frameFigures(flame, menu.node, data.flame.data?.total ?? flame.total)}
					items={menuItems(flame, menu.node, zoomTo)}
					close={menu.close}
				/>
			)}
			{row.menu && (
				<Menu
					at={row.menu.at}
					title={row.menu.name}
					items={rowItems(flame, row.menu.name, row.menu.binary)}
					close={row.close}
				/>
			)}
		</section>
	);
}

/** "Total 12.3 s (4.5 %), self 0 s" */
function frameFigures(f: Flame, node: number, all: number): string {
	const total = `${formatValue(f.value[node]!, f.unit)} (${formatShare(f.value[node]!, all)})`;
	return `Total ${total}, self ${formatValue(f.self[node]!, f.unit)}`;
}
