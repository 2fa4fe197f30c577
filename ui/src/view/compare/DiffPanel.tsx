// SPDX-License-Identifier: Apache-2.0
/** Graph and table of the differences between two sides. */
import { useMemo, useState } from "preact/hooks";
import { copyText } from "../../app/copy.ts";
import { useZoom, type Data } from "../../app/data.ts";
import { keepReading } from "../../app/hold.ts";
import { go } from "../../app/store.ts";
import type { Theme } from "../../model/colour.ts";
import { diffRows } from "../../model/compare.ts";
import { type Flame, nodeName } from "../../model/flame.ts";
import { calleesOf, callersOf } from "../../model/merge.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import type { State } from "../../model/url.ts";
import { formatChange, paintDiff } from "../../model/verdict.ts";
import { Words } from "../../model/words.ts";
import { Breadcrumb } from "../Breadcrumb.tsx";
import { NotThere } from "../Blank.tsx";
import { FilterButton, FilterChips } from "../Filters.tsx";
import { FlameGraph } from "../FlameGraph.tsx";
import { DIRECTIONS, useMarks, VIEWS } from "../FlamePanel.tsx";
import { FocusChip } from "../FocusChip.tsx";
import { frameKey, menuItems, rowItems } from "../frame_menu.ts";
import { Menu } from "../Menu.tsx";
import { useFrameMenu, useReader, useRowMenu } from "../menus.ts";
import { SaveButton } from "../Save.tsx";
import { SearchBox } from "../SearchBox.tsx";
import { seenOf } from "../seen.ts";
import { Segments } from "../Segments.tsx";
import { keepMatches, shareText, useSteps } from "../use_steps.ts";
import { DiffSandwich, diffOf } from "./DiffSandwich.tsx";
import { DiffTable } from "./DiffTable.tsx";
import { DiffTip, sayDiff } from "./DiffTip.tsx";
import { Verdicts } from "./Verdicts.tsx";

const VALUES = [
	{ value: "shares", name: "Shares", title: "Each side is 100 %: for sides of different length or load" },
	{ value: "absolute", name: "Values", title: "Values as they are: for sides of the same length" },
] as const;

/** Both sides as one graph; null: neither has the focused function. */
function useDiff(state: State, a: Flame, b: Flame) {
	const { focus, invert, absolute } = state;
	return useMemo(() => {
		const part = (f: Flame) => (focus === "" ? f : (invert ? callersOf : calleesOf)(f, focus));
		return diffOf(a, b, part, absolute);
	}, [a, b, focus, invert, absolute]);
}

interface PanelProps {
	state: State;
	data: Data;
	/** Both sides; they have samples. */
	a: Flame;
	b: Flame;
	slow: boolean;
	theme: Theme;
}

/** Graph and table of the differences. */
export function DiffPanel(props: PanelProps) {
	const diff = useDiff(props.state, props.a, props.b);
	if (!diff) {
		return (
			<section class="panel profile">
				<NotThere name={props.state.focus} />
			</section>
		);
	}
	return <Panel {...props} diff={diff} />;
}

/** Both totals in one line. */
function Totals({ diff }: { diff: NonNullable<ReturnType<typeof useDiff>> }) {
	const { unit } = diff.flame;
	const [a, b] = diff.total;
	const [n, m] = diff.samples;
	const few = (n !== null && n < 100) || (m !== null && m < 100);
	return (
		<p class="figures" data-testid="figures">
			<span>
				This <b>{formatValue(a, unit)}</b>
			</span>
			<span>
				Base <b>{formatValue(b, unit)}</b>
			</span>
			<span>{formatChange(a, b)}</span>
			{n !== null && m !== null && (
				<span class={few ? "few" : ""}>
					{n.toLocaleString("en-US")} and {m.toLocaleString("en-US")} samples
					{few && ": few, small changes cannot be told"}
				</span>
			)}
		</p>
	);
}

function Line(props: { flame: Flame; zoom: number; state: State; zoomTo: (node: number) => void }) {
	const { flame, zoom, state, zoomTo } = props;
	return (
		<div class={`flame-line ${zoom > 0 || state.focus !== "" ? "" : "hint-line"}`}>
			{state.focus !== "" && <FocusChip focus={state.focus} invert={state.invert} />}
			{zoom > 0 ? (
				<Breadcrumb flame={flame} zoom={zoom} zoomTo={zoomTo} />
			) : (
				state.focus === "" && (
					<p class="hint">A bar is as wide as the mean of both sides; orange takes more than in the base, blue less.</p>
				)
			)}
		</div>
	);
}

function Panel(props: PanelProps & { diff: NonNullable<ReturnType<typeof useDiff>> }) {
	const { state, data, diff, theme } = props;
	const { flame } = diff;
	const zoom = useZoom(flame, state.zoom);
	const [hover, setHover] = useState({ table: "", graph: "" });
	const menu = useFrameMenu(flame);
	const row = useRowMenu();
	const hasMenu = menu.node >= 0 || row.menu !== null;
	useReader(hasMenu);
	const { paint, verdicts } = useMemo(() => paintDiff(diff, theme), [diff, theme]);
	const words = useMemo(() => new Words(flame, ""), [flame]);
	const { search, found, hit, inZoom } = useMarks(flame, words, zoom, state, hover.table);
	const { focus, setFocus, zoomTo, step, place } = useSteps(flame, zoom, state, found);
	const of = state.byTotal ? "total" : "self";
	const callers = state.invert && state.focus === "";
	const part = callers || state.invert ? 0 : zoom;
	const rows = useMemo(() => diffRows(diff, part, of, state.invert), [diff, part, of, state.invert]);
	const isSandwich = state.sandwich && state.focus !== "";
	const { unit } = flame;
	const seen = () =>
		seenOf(flame, paint, hit, zoom, [
			["function", "binary", "file", `this ${of} ${unit}`, `base ${of} ${unit}`, "difference", "change"],
			...rows.map((r) => [r.name, r.binary, r.file, r.a, r.b, r.change, formatChange(r.a, r.b * diff.scale)]),
		]);
	return (
		<section class="panel profile" aria-label="Differences">
			<div class="profile-bar diff-bar">
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
				<Totals diff={diff} />
				<Segments
					label="What is compared"
					value={state.absolute ? "absolute" : "shares"}
					choices={VALUES}
					choose={(v) => go({ absolute: v === "absolute" }, "replace")}
				/>
				<Segments
					label="Direction"
					value={state.invert ? "up" : "down"}
					choices={DIRECTIONS}
					choose={(v) => go({ invert: v === "up", sandwich: false, zoom: "" })}
				/>
				<Segments label="View" value={state.view} choices={VIEWS.slice(0, 3)} choose={(view) => go({ view })} />
			</div>
			<FilterChips state={state} />
			<div
				class={`profile-body diff-body view-${state.view} ${props.slow ? "slow" : ""}`}
				onKeyDown={() => !hasMenu && keepReading()}
			>
				{state.view !== "table" && isSandwich && (
					<DiffSandwich a={props.a} b={props.b} name={state.focus} absolute={state.absolute} theme={theme} search={search} openMenu={row.open} />
				)}
				{state.view !== "table" && !isSandwich && (
					<div class="flame">
						<Verdicts theme={theme} />
						<Line flame={flame} zoom={zoom} state={state} zoomTo={zoomTo} />
						<FlameGraph
							flame={flame}
							paint={paint}
							theme={theme}
							zoom={zoom}
							total={flame.value[0]!}
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
							onKey={(key, node) => frameKey(flame, key, node)}
							tip={(node, at) => <DiffTip diff={diff} node={node} verdict={verdicts[node]!} at={at} />}
							say={(node) => sayDiff(diff, node, verdicts[node]!)}
						/>
					</div>
				)}
				{state.view !== "flame" && (
					<DiffTable
						rows={rows}
						diff={diff}
						theme={theme}
						matcher={search.matcher}
						field={found?.field ?? "name"}
						state={state}
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
					note={`Total ${formatShare(diff.value[0][menu.node]!, diff.total[0])} of this side, ${formatShare(diff.value[1][menu.node]!, diff.total[1])} of the base`}
					items={menuItems(flame, menu.node, zoomTo)}
					close={menu.close}
				/>
			)}
			{row.menu && (
				<Menu at={row.menu.at} title={row.menu.name} items={rowItems(flame, row.menu.name, row.menu.binary)} close={row.close} />
			)}
			{data.held && <p class="visually-hidden">Newer samples wait while you read</p>}
		</section>
	);
}
