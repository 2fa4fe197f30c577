// SPDX-License-Identifier: Apache-2.0
/** Graph and table side by side, with what steers both. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyText } from "../app/copy.ts";
import type { Data } from "../app/data.ts";
import { keepReading } from "../app/hold.ts";
import { useSlots } from "../app/palette.ts";
import { usePlace } from "../app/place.ts";
import { go, stateNow } from "../app/store.ts";
import type { Theme } from "../model/colour.ts";
import { type Flame, nodeKey, nodeName } from "../model/flame.ts";
import { compileSearch, type Found, markFlame, searchFlame } from "../model/search.ts";
import { type Row, tableOf } from "../model/table.ts";
import { formatCount, formatShare, formatValue } from "../model/units.ts";
import type { State, View } from "../model/url.ts";
import { commonWords, mainBinary, Words } from "../model/words.ts";
import { BinaryLegend } from "./BinaryLegend.tsx";
import { Figures } from "./Figures.tsx";
import { FlameGraph } from "./FlameGraph.tsx";
import { FlameLine } from "./FlameLine.tsx";
import { menuItems, rowItems } from "./frame_menu.ts";
import { Menu } from "./Menu.tsx";
import { useFrameMenu, useReader, useRowMenu } from "./menus.ts";
import { SearchBox } from "./SearchBox.tsx";
import { Segments } from "./Segments.tsx";
import { TopTable } from "./TopTable.tsx";

const VIEWS: readonly { value: View; name: string }[] = [
	{ value: "both", name: "Both" },
	{ value: "flame", name: "Graph" },
	{ value: "table", name: "Table" },
];

const DIRECTIONS = [
	{ value: "down", name: "Callees", title: "Callers on top, what they call below" },
	{ value: "up", name: "Callers", title: "Turned around: each function, and below it its callers" },
] as const;

/** Search, marks and hover: which frames keep their colour. */
function useMarks(flame: Flame, words: Words, zoom: number, state: State, hoverName: string) {
	const search = useMemo(() => compileSearch(state.search), [state.search]);
	const [found, inZoom] = useMemo<[Found | null, number]>(() => {
		const { matcher, field } = search;
		const all = matcher ? searchFlame(flame, matcher, 0, field) : null;
		const part = zoom > 0 && matcher ? searchFlame(flame, matcher, zoom, field) : all;
		return [all, part?.value ?? 0];
	}, [flame, zoom, search]);
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

/** Rows of the table: the server's for everything, those of the graph for a part of it. */
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
		if (top.data && all.trimmed > 0 && data.flame.id.startsWith(top.id)) {
			return { rows: top.data.rows, whole: top.data.total };
		}
		return { rows: tableOf(all, 0, state.invert && state.focus === ""), whole: all.value[0]! };
	}, [flame, all, zoom, data.flame.id, top.data, top.id, state.focus, state.invert]);
}

/** What frames are coloured by, and the colours of the commonest. */
function useWords(data: Data, flame: Flame, state: State) {
	const whole = data.flame.data ?? flame;
	const callers = state.invert && state.focus === "";
	const split = useMemo(() => mainBinary(whole, callers), [whole, callers]);
	const words = useMemo(() => new Words(flame, split), [flame, split]);
	const commonest = useMemo(() => {
		const all = whole === flame ? words : new Words(whole, split);
		return commonWords(whole, all, callers, split);
	}, [whole, words, split, callers]);
	return { words, slots: useSlots(commonest) };
}

/** The lower half of the page. `flame` has samples in it. */
export function FlamePanel(props: { data: Data; flame: Flame; state: State; theme: Theme }) {
	const { data, flame, state, theme } = props;
	const { zoom } = data;
	const [focus, setFocus] = usePlace(flame);
	const [match, setMatch] = usePlace(flame);
	const [hover, setHover] = useState({ table: "", graph: "" });
	const menu = useFrameMenu(flame);
	const row = useRowMenu();
	const hasMenu = menu.node >= 0 || row.menu !== null;
	useReader(hasMenu);
	const { words, slots } = useWords(data, flame, state);
	const { search, found, hit, inZoom } = useMarks(flame, words, zoom, state, hover.table);
	const { rows, whole } = useRows(data, flame, zoom, state);
	/** Where the first step of a search began, to go back there. */
	const stepped = useRef({ from: "", to: "" });
	// before the effect of the search box, which may step at once
	useLayoutEffect(() => {
		setFocus(-1);
		setMatch(-1);
		const { from, to } = stepped.current;
		if (state.search === "" && from !== to && state.zoom === to) {
			go({ zoom: from }, "replace");
		}
		stepped.current = { from: "", to: "" };
	}, [state.search]);
	const zoomTo = (node: number) => {
		const key = nodeKey(flame, node);
		if (key !== state.zoom) {
			go({ zoom: key });
		}
	};
	const stepMatch = (by: number) => {
		const outer = found?.outer ?? [];
		const next = outer.at((outer.indexOf(match) + (match < 0 && by < 0 ? 0 : by)) % outer.length);
		if (next !== undefined) {
			const { from, to } = stepped.current;
			setMatch(next);
			setFocus(next);
			showNode(flame, zoom, next, zoomTo);
			stepped.current = { from: from === to ? state.zoom : from, to: stateNow().zoom };
		}
	};
	const share = found
		? `${formatShare(found.value, flame.value[0]!)} matched${found.field === "name" ? "" : ` by ${found.field}`}${zoom > 0 ? `, ${formatShare(inZoom, flame.value[zoom]!)} here` : ""}`
		: "";
	const place = found
		? match >= 0
			? `${found.outer.indexOf(match) + 1} of ${formatCount(found.outer.length)}`
			: `${formatCount(found.outer.length)} ${found.outer.length === 1 ? "frame" : "frames"}`
		: "";
	return (
		<section class="panel profile" aria-label="Profile">
			<div class="profile-bar">
				<SearchBox
					text={state.search}
					error={search.error}
					share={share}
					place={place}
					step={stepMatch}
				/>
				<Figures flame={flame} zoom={zoom} data={data} />
				<Segments
					label="Direction"
					value={state.invert ? "up" : "down"}
					choices={DIRECTIONS}
					choose={(v) => go({ invert: v === "up", zoom: "" })}
				/>
				<Segments label="View" value={state.view} choices={VIEWS} choose={(view) => go({ view })} />
			</div>
			<div
				class={`profile-body view-${state.view} ${data.flame.slow ? "slow" : ""}`}
				onKeyDown={() => !hasMenu && keepReading()}
			>
				{state.view !== "table" && (
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
							words={words}
							slots={slots}
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
						/>
					</div>
				)}
				{state.view !== "flame" && (
					<TopTable
						rows={rows}
						unit={flame.unit}
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
					items={rowItems(row.menu.name)}
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

/** Zooms so that a node can be seen: out if it is elsewhere, in if it would be too narrow. */
function showNode(f: Flame, zoom: number, node: number, zoomTo: (node: number) => void): void {
	const inside = node >= zoom && node < f.end[zoom]!;
	const root = inside ? zoom : 0;
	if (f.value[node]! >= f.value[root]! * 0.02) {
		if (root !== zoom) {
			zoomTo(root);
		}
		return;
	}
	let up = node;
	while (f.parent[up]! !== root && f.value[f.parent[up]!]! < f.value[node]! * 30) {
		up = f.parent[up]!;
	}
	zoomTo(up);
}
