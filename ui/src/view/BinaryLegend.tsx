// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import { go } from "../app/store.ts";
import {
	type BinaryShare,
	binaryColour,
	binaryShares,
	type Theme,
	toHex,
} from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";
import { splitValue } from "../model/names.ts";
import { formatShare } from "../model/units.ts";
import { Cut } from "./Cut.tsx";

const SHOWN_MAX = 10;
const OPEN_MAX = 200;

/** Name of a binary for people. */
export function binaryName(b: BinaryShare): string {
	return b.name || (b.kernel ? "kernel" : "no binary");
}

/** Which colour is which binary, with its share of the self time; a click marks its frames. */
export function BinaryLegend(props: {
	flame: Flame;
	zoom: number;
	/** Callers are below. */
	callers: boolean;
	theme: Theme;
	binary: string;
}) {
	const { flame, zoom, callers, theme, binary } = props;
	const root = callers ? 0 : zoom;
	const shares = useMemo(() => binaryShares(flame, root, callers), [flame, root, callers]);
	const whole = flame.value[root]!;
	const [open, setOpen] = useState(false);
	const shown = shares.slice(0, open ? OPEN_MAX : SHOWN_MAX);
	const marked = shares.find((b) => b.name === binary);
	if (marked && !shown.includes(marked)) {
		shown.push(marked);
	}
	return (
		<div class={`binaries ${open ? "open" : ""}`}>
			<ul aria-label="Binaries, by self time">
				{shown.map((b) => (
					<li key={b.id}>
						<button
							type="button"
							class={`chip ${binary !== "" && b.name === binary ? "on" : ""} ${
								binary !== "" && b.name !== binary ? "off" : ""
							}`}
							title={`${binaryName(b)}: ${formatShare(b.self, whole)} of self time; click to mark its frames`}
							aria-pressed={b.name === binary && binary !== ""}
							disabled={b.name === ""}
							onClick={() => go({ binary: b.name === binary ? "" : b.name }, "replace")}
						>
							<span
								class="swatch"
								style={{ background: toHex(binaryColour(b.name, b.kernel, theme)) }}
							/>
							<span class="chip-name">
								<Cut parts={splitValue(binaryName(b), 10)} />
							</span>
							<span class="chip-share">{formatShare(b.self, whole)}</span>
						</button>
					</li>
				))}
			</ul>
			{shares.length > 1 && (
				<button
					type="button"
					class="bare chip-rest"
					aria-expanded={open}
					title={open ? "Show the largest only" : "Show all binaries"}
					onClick={() => setOpen(!open)}
				>
					{open ? "less" : `all ${shares.length}`}
				</button>
			)}
		</div>
	);
}
