// SPDX-License-Identifier: Apache-2.0
/** A function between its callers, which stand above it, and what it calls, from all places. */
import { useMemo, useState } from "preact/hooks";
import { copyText } from "../app/copy.ts";
import { usePlace } from "../app/place.ts";
import { go } from "../app/store.ts";
import { paintFlame, type Slots, type Theme } from "../model/colour.ts";
import { type Flame, nodeName } from "../model/flame.ts";
import { calleesOf, callersOf } from "../model/merge.ts";
import type { Search } from "../model/search.ts";
import { searchFlame } from "../model/search.ts";
import { Words } from "../model/words.ts";
import { FlameGraph } from "./FlameGraph.tsx";
import { ROW_PX } from "./flame_scene.ts";
import { frameKey } from "./frame_menu.ts";
import { Icon } from "./icons.tsx";
import type { Point } from "./Tooltip.tsx";

interface SandwichProps {
	/** All samples. */
	whole: Flame;
	name: string;
	theme: Theme;
	/** The binary that is shown by its packages. */
	split: string;
	slots: Slots;
	search: Search;
	openMenu: (name: string, binary: string, at: Point) => void;
	onHover: (name: string) => void;
}

/** One half; zoom and focus are its own. */
function Half(props: SandwichProps & { flame: Flame; callers: boolean }) {
	const { flame, theme, slots, split, whole, search, callers } = props;
	const [zoom, setZoom] = usePlace(flame);
	const [focus, setFocus] = usePlace(flame);
	const paint = useMemo(
		() => paintFlame(flame, new Words(flame, split), theme, slots),
		[flame, split, theme, slots],
	);
	const root = Math.max(zoom, 0);
	const found = useMemo(
		() => (search.matcher ? searchFlame(flame, search.matcher, 0, search.field) : null),
		[flame, search],
	);
	return (
		<div class={`sandwich-half ${callers ? "callers" : ""}`}>
			<FlameGraph
				flame={flame}
				paint={paint}
				theme={theme}
				zoom={root}
				total={whole.total}
				hit={found?.hit ?? null}
				flip={callers}
				focus={focus}
				setFocus={setFocus}
				zoomTo={setZoom}
				openMenu={(node, at) =>
					props.openMenu(nodeName(flame, node), flame.strings[flame.binary[node]!] ?? "", at)
				}
				onHover={(node) => props.onHover(node > 0 ? nodeName(flame, node) : "")}
				copy={(node) => copyText(nodeName(flame, node))}
				onKey={(key, node) => frameKey(flame, key, node)}
			/>
		</div>
	);
}

/** Height of all rows of a half, in CSS pixels. */
const roomFor = (flame: Flame) => (flame.deepest + 1) * ROW_PX + 4;

/** Both halves; the function itself stands in each. */
export function Sandwich(props: SandwichProps) {
	const { whole, name } = props;
	const halves = useMemo(
		() => ({ callers: callersOf(whole, name), callees: calleesOf(whole, name) }),
		[whole, name],
	);
	const [share, setShare] = useState(0.5);
	if (!halves.callers || !halves.callees) {
		return null;
	}
	// a half that needs less than its share leaves the rest to the other
	const [above, below] = [roomFor(halves.callers), roomFor(halves.callees)];
	const rows = `min(${above}px, max(${share * 100}%, 100% - ${below}px)) minmax(0, 1fr)`;
	return (
		<div class="flame sandwich" data-testid="sandwich">
			<div class="flame-line">
				<span class="focus-chip">
					Callers and callees of <b title={name}>{name}</b>
					<button
						type="button"
						class="bare"
						title="Show everything again (Esc)"
						onClick={() => go({ focus: "", sandwich: false, zoom: "" })}
					>
						<Icon name="close" />
					</button>
				</span>
				<label class="by sandwich-share">
					Room for callers
					<input
						type="range"
						min="0.15"
						max="0.85"
						step="0.05"
						value={share}
						onInput={(e) => setShare(Number(e.currentTarget.value))}
					/>
				</label>
			</div>
			<div class="sandwich-halves" style={{ gridTemplateRows: rows }}>
				<Half {...props} flame={halves.callers} callers={true} />
				<Half {...props} flame={halves.callees} callers={false} />
			</div>
		</div>
	);
}
