// SPDX-License-Identifier: Apache-2.0
/** Graph and table side by side, with what steers both. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyText } from "../app/copy.ts";
import type { Data } from "../app/data.ts";
import { go } from "../app/store.ts";
import { readSetting, writeSetting } from "../app/theme.ts";
import type { Theme } from "../model/colour.ts";
import { type Flame, findKey, nodeKey, nodeName } from "../model/flame.ts";
import { compileSearch, type Found, markFlame, searchFlame } from "../model/search.ts";
import { type Row, tableOf } from "../model/table.ts";
import { formatCount, formatShare, formatValue } from "../model/units.ts";
import type { State, View } from "../model/url.ts";
import { BinaryLegend } from "./BinaryLegend.tsx";
import { Breadcrumb } from "./Breadcrumb.tsx";
import { FlameGraph } from "./FlameGraph.tsx";
import { menuItems } from "./frame_menu.ts";
import { Icon } from "./icons.tsx";
import { Menu } from "./Menu.tsx";
import { SearchBox } from "./SearchBox.tsx";
import { Segments } from "./Segments.tsx";
import type { Point } from "./Tooltip.tsx";
import { TopTable } from "./TopTable.tsx";

const HINT_KEY = "firn.hint";

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
function useMarks(flame: Flame, zoom: number, state: State, hoverName: string) {
	const search = useMemo(() => compileSearch(state.search), [state.search]);
	const found = useMemo<Found | null>(
		() => (search.matcher ? searchFlame(flame, search.matcher, zoom) : null),
		[flame, zoom, search],
	);
	const other = useMemo<Found | null>(() => {
		const name = hoverName || state.mark;
		if (name !== "") {
			return searchFlame(flame, (s) => s === name, zoom);
		}
		const id = state.binary === "" ? -1 : flame.strings.indexOf(state.binary);
		return id < 0 ? null : markFlame(flame, zoom, (i) => (flame.binary[i] === id ? 1 : 0));
	}, [flame, zoom, hoverName, state.mark, state.binary]);
	return { search, found, hit: (other ?? found)?.hit ?? null };
}

/** The line below the toolbar: one sentence for newcomers, or the way to the zoomed frame. */
function Line(props: { flame: Flame; zoom: number; state: State; zoomTo: (n: number) => void }) {
	const { flame, zoom, state, zoomTo } = props;
	const [seen, setSeen] = useState(() => readSetting(HINT_KEY) === "seen");
	const hide = () => {
		writeSetting(HINT_KEY, "seen");
		setSeen(true);
	};
	return (
		<div class="flame-line">
			{state.focus !== "" && (
				<span class="focus-chip">
					{state.invert ? "Callers of " : "Callees of "}
					<b title={state.focus}>{state.focus}</b>
					<button
						type="button"
						class="bare"
						title="Show everything again (Esc)"
						onClick={() => go({ focus: "", invert: false, zoom: "" })}
					>
						<Icon name="close" />
					</button>
				</span>
			)}
			{zoom > 0 ? (
				<Breadcrumb flame={flame} zoom={zoom} zoomTo={zoomTo} />
			) : (
				!seen &&
				state.focus === "" && (
					<p class="hint">
						{state.invert
							? "Each bar on top is a function that ran; below it are the functions that called it."
							: "Each bar is a function, as wide as the CPU time it took; below it are the functions it called. Click a bar to zoom in."}
						<button type="button" class="bare" title="Do not show this again" onClick={hide}>
							<Icon name="close" />
						</button>
					</p>
				)
			)}
		</div>
	);
}

/** Rows of the table: those of the server for everything, those of the graph for a part of it. */
function useRows(
	data: Data,
	flame: Flame,
	zoom: number,
	state: State,
): { rows: Row[] | null; whole: number } {
	const part = state.focus !== "" ? flame : state.invert ? null : zoom > 0 ? flame : null;
	return useMemo(() => {
		const callers = state.focus !== "" && state.invert;
		if (part && !callers) {
			return { rows: tableOf(part, zoom), whole: part.value[zoom]! };
		}
		return { rows: data.top.data?.rows ?? null, whole: data.top.data?.total ?? 0 };
	}, [part, zoom, data.top.data, state.focus, state.invert]);
}

/** What is shown, in one line of figures. */
function Figures({ flame, zoom, data }: { flame: Flame; zoom: number; data: Data }) {
	const { trimmed, unit } = flame;
	const total = data.flame.data?.total ?? flame.total;
	const value = flame.value[zoom]!;
	const samples = `${formatCount(flame.samples)} samples`;
	const pending = data.flame.data?.pending ?? 0;
	return (
		<p class="figures" data-testid="figures">
			<span>
				<b>{formatValue(value, unit)}</b>
				{unit === "nanoseconds" && data.type?.type.includes(":cpu:") && " of CPU time"}
			</span>
			<span>{value < total ? `${formatShare(value, total)} of ${samples}` : samples}</span>
			{trimmed > 0 && (
				<span title="In frames below 0.002 % of the total">
					{formatShare(trimmed, total)} in tiny frames
				</span>
			)}
			{pending > 0 && (
				<span
					class="pending"
					data-testid="pending"
					title="The server is still reading symbols; they are filled in by themselves"
				>
					{formatCount(pending)} names on their way
				</span>
			)}
		</p>
	);
}

/** The lower half of the page. `flame` has samples in it. */
export function FlamePanel(props: { data: Data; flame: Flame; state: State; theme: Theme }) {
	const { data, flame, state, theme } = props;
	const zoom = useMemo(() => Math.max(0, findKey(flame, state.zoom)), [flame, state.zoom]);
	const [focus, setFocus] = useState(-1);
	const [hover, setHover] = useState({ table: "", graph: "" });
	const [menu, setMenu] = useState<{ node: number; at: Point } | null>(null);
	const { search, found, hit } = useMarks(flame, zoom, state, hover.table);
	const { rows, whole } = useRows(data, flame, zoom, state);
	const match = useRef(-1);
	useEffect(() => {
		setFocus(-1);
		setMenu(null);
		match.current = -1;
	}, [flame, state.search]);
	const zoomTo = (node: number) => {
		const key = nodeKey(flame, node);
		if (key !== state.zoom) {
			go({ zoom: key });
		}
	};
	const stepMatch = (by: number) => {
		const outer = found?.outer ?? [];
		if (outer.length > 0) {
			match.current = (match.current + by + outer.length) % outer.length;
			const node = outer[match.current]!;
			setFocus(node);
			showNode(flame, zoom, node, zoomTo);
		}
	};
	const share = found ? `${formatShare(found.value, flame.value[zoom]!)} matched` : "";
	const place = found
		? match.current >= 0
			? `${match.current + 1} of ${formatCount(found.outer.length)}`
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
			<div class={`profile-body view-${state.view} ${data.flame.slow ? "slow" : ""}`}>
				{state.view !== "table" && (
					<div class="flame">
						<BinaryLegend
							flame={flame}
							zoom={zoom}
							callers={state.invert}
							theme={theme}
							binary={state.binary}
						/>
						<Line flame={flame} zoom={zoom} state={state} zoomTo={zoomTo} />
						<FlameGraph
							flame={flame}
							theme={theme}
							zoom={zoom}
							total={data.flame.data?.total ?? flame.total}
							hit={hit}
							focus={focus}
							setFocus={setFocus}
							zoomTo={zoomTo}
							openMenu={(node, at) => setMenu({ node, at })}
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
						matcher={search.matcher}
						sort={state.sort}
						mark={state.mark}
						hover={hover.graph}
						onHover={(table) => setHover((h) => (h.table === table ? h : { ...h, table }))}
					/>
				)}
			</div>
			{menu && (
				<Menu
					at={menu.at}
					title={nodeName(flame, menu.node)}
					items={menuItems(flame, menu.node, zoomTo)}
					close={() => setMenu(null)}
				/>
			)}
		</section>
	);
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
