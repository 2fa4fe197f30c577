// SPDX-License-Identifier: Apache-2.0
/** The differences around a function: its callers above it, its callees below. */
import { useMemo } from "preact/hooks";
import { copyText } from "../../app/copy.ts";
import { usePlace } from "../../app/place.ts";
import { go } from "../../app/store.ts";
import type { Theme } from "../../model/colour.ts";
import { type Diff, diffFlames } from "../../model/diff.ts";
import { emptyFlame, type Flame, nodeBinary, nodeName } from "../../model/flame.ts";
import { calleesOf, callersOf } from "../../model/merge.ts";
import { type Search, searchFlame } from "../../model/search.ts";
import { paintDiff } from "../../model/verdict.ts";
import { FlameGraph } from "../FlameGraph.tsx";
import { frameKey } from "../frame_menu.ts";
import { Icon } from "../icons.tsx";
import type { Point } from "../Tooltip.tsx";
import { DiffTip, sayDiff } from "./DiffTip.tsx";
import { Verdicts } from "./Verdicts.tsx";

/** A part of both sides, compared as shares, or values, of the whole. */
export function diffOf(a: Flame, b: Flame, part: (f: Flame) => Flame | null, absolute: boolean): Diff | null {
	const [x, y] = [part(a), part(b)];
	if (!x && !y) {
		return null;
	}
	const side = (f: Flame, whole: Flame) => ({ flame: f, total: whole.total, samples: whole.samples });
	const none = emptyFlame(a.unit);
	return diffFlames(side(x ?? none, a), side(y ?? none, b), absolute);
}

interface HalfProps {
	theme: Theme;
	search: Search;
	openMenu: (name: string, binary: string, at: Point) => void;
}

/** One half; zoom and focus are its own. */
function Half({ diff, callers, theme, search, openMenu }: HalfProps & { diff: Diff; callers: boolean }) {
	const { flame } = diff;
	const [zoom, setZoom] = usePlace(flame);
	const [focus, setFocus] = usePlace(flame);
	const { paint, verdicts } = useMemo(() => paintDiff(diff, theme), [diff, theme]);
	const found = useMemo(() => (search.matcher ? searchFlame(flame, search.matcher, 0, search.field) : null), [flame, search]);
	return (
		<div class={`sandwich-half ${callers ? "callers" : ""}`}>
			<FlameGraph
				flame={flame}
				paint={paint}
				theme={theme}
				zoom={Math.max(zoom, 0)}
				total={flame.value[0]!}
				hit={found?.hit ?? null}
				flip={callers}
				focus={focus}
				setFocus={setFocus}
				zoomTo={setZoom}
				openMenu={(node, at) => openMenu(nodeName(flame, node), nodeBinary(flame, node), at)}
				onHover={() => {}}
				copy={(node) => copyText(nodeName(flame, node))}
				onKey={(key, node) => frameKey(flame, key, node)}
				tip={(node, at) => <DiffTip diff={diff} node={node} verdict={verdicts[node]!} at={at} />}
				say={(node) => sayDiff(diff, node, verdicts[node]!)}
			/>
		</div>
	);
}

/** Both halves. */
export function DiffSandwich(props: HalfProps & { a: Flame; b: Flame; name: string; absolute: boolean }) {
	const { a, b, name, absolute, theme } = props;
	const halves = useMemo(
		() => [diffOf(a, b, (f) => callersOf(f, name), absolute), diffOf(a, b, (f) => calleesOf(f, name), absolute)],
		[a, b, name, absolute],
	);
	return (
		<div class="flame sandwich" data-testid="sandwich">
			<Verdicts theme={theme} />
			<div class="flame-line">
				<span class="focus-chip">
					Callers and callees of <b title={name}>{name}</b>
					<button type="button" class="bare" title="Show everything again (Esc)" onClick={() => go({ focus: "", sandwich: false, zoom: "" })}>
						<Icon name="close" />
					</button>
				</span>
			</div>
			<div class="sandwich-halves">
				{halves.map((diff, k) => diff && <Half key={k} {...props} diff={diff} callers={k === 0} />)}
			</div>
		</div>
	);
}
