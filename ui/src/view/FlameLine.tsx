// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { readSetting, writeSetting } from "../app/theme.ts";
import type { Flame } from "../model/flame.ts";
import { meaningOf } from "../model/types.ts";
import type { State } from "../model/url.ts";
import { Breadcrumb } from "./Breadcrumb.tsx";
import { FocusChip } from "./FocusChip.tsx";
import { Icon } from "./icons.tsx";

const HINT_KEY = "firn.hint";

/** The line below the toolbar: a sentence for newcomers, or the path to the zoomed frame. */
export function FlameLine(props: {
	flame: Flame;
	zoom: number;
	state: State;
	/** Profile type. */
	type: string;
	zoomTo: (n: number) => void;
}) {
	const { flame, zoom, state, type, zoomTo } = props;
	const [seen, setSeen] = useState(() => readSetting(HINT_KEY) === "seen");
	const hide = () => {
		writeSetting(HINT_KEY, "seen");
		setSeen(true);
	};
	return (
		<div class="flame-line">
			{state.focus !== "" && <FocusChip focus={state.focus} invert={state.invert} />}
			{zoom > 0 ? (
				<Breadcrumb flame={flame} zoom={zoom} zoomTo={zoomTo} />
			) : (
				!seen &&
				state.group === "function" &&
				state.focus === "" && (
					<p class="hint">
						{state.invert
							? "Each bar on top is a function that ran; below it are the functions that called it."
							: `Each bar is a function, as wide as ${meaningOf(type).width}; below it are those it called. Click one to zoom.`}
						<button type="button" class="bare" title="Do not show this again" onClick={hide}>
							<Icon name="close" />
						</button>
					</p>
				)
			)}
		</div>
	);
}
