// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { go } from "../app/store.ts";
import {
	type BinaryShare,
	binaryColour,
	binaryShares,
	type Theme,
	toHex,
} from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";
import { formatShare } from "../model/units.ts";

const SHOWN_MAX = 10;

/** Name of a binary for people. */
export function binaryName(b: BinaryShare): string {
	return b.name || (b.kernel ? "kernel" : "no binary");
}

/** Which colour is which binary, with its share of the self time; a click marks its frames. */
export function BinaryLegend(props: { flame: Flame; zoom: number; theme: Theme; binary: string }) {
	const { flame, zoom, theme, binary } = props;
	const shares = useMemo(() => binaryShares(flame, zoom), [flame, zoom]);
	const whole = flame.value[zoom]!;
	const shown = shares.slice(0, SHOWN_MAX);
	const marked = shares.find((b) => b.name === binary);
	if (marked && !shown.includes(marked)) {
		shown.push(marked);
	}
	const rest = shares.length - shown.length;
	return (
		<ul class="binaries" aria-label="Binaries, by self time">
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
						<span class="chip-name">{binaryName(b)}</span>
						<span class="chip-share">{formatShare(b.self, whole)}</span>
					</button>
				</li>
			))}
			{rest > 0 && <li class="chip-rest">{rest} more</li>}
		</ul>
	);
}
