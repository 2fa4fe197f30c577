// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { go } from "../app/store.ts";
import { type Slots, type Theme, toHex, wordColour } from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";
import { splitValue } from "../model/names.ts";
import { formatShare } from "../model/units.ts";
import { type WordShare, type Words, wordShares } from "../model/words.ts";
import { Cut } from "./Cut.tsx";

const SHOWN_MAX = 10;
const OPEN_MAX = 200;

/** Shown name of a binary. */
export function binaryName(b: WordShare): string {
	return b.kernel ? "kernel" : b.word || "no binary";
}

/** Hides chips that do not fit into the one row, so that they do not get the focus. */
function useOneRow(open: boolean) {
	const list = useRef<HTMLUListElement>(null);
	const fit = () => {
		const chips = [...(list.current?.children ?? [])] as HTMLElement[];
		for (const chip of chips) {
			const isBelow = !open && chip.offsetTop > chips[0]!.offsetTop;
			chip.style.visibility = isBelow ? "hidden" : "";
		}
	};
	useLayoutEffect(fit);
	useLayoutEffect(() => {
		const observer = new ResizeObserver(fit);
		observer.observe(list.current!);
		return () => observer.disconnect();
	}, [open]);
	return list;
}

/** The binaries with their colours and shares of the self value; a click marks a binary's frames. */
export function BinaryLegend(props: {
	flame: Flame;
	words: Words;
	slots: Slots;
	zoom: number;
	/** Callers are below. */
	callers: boolean;
	theme: Theme;
	binary: string;
}) {
	const { flame, words, slots, zoom, callers, theme, binary } = props;
	const root = callers ? 0 : zoom;
	const shares = useMemo(
		() => wordShares(flame, words, root, callers),
		[flame, words, root, callers],
	);
	const whole = flame.value[root]!;
	const [open, setOpen] = useState(false);
	const shown = shares.slice(0, open ? OPEN_MAX : SHOWN_MAX);
	const marked = shares.find((b) => b.word === binary);
	if (marked && !shown.includes(marked)) {
		shown.push(marked);
	}
	const list = useOneRow(open);
	return (
		<div class={`binaries ${open ? "open" : ""}`}>
			<ul ref={list} aria-label="Binaries or packages, by self value">
				{shown.map((b) => (
					<li key={`${b.word}${b.kernel}`}>
						<button
							type="button"
							class={`chip ${binary !== "" && b.word === binary ? "on" : ""} ${
								binary !== "" && b.word !== binary ? "off" : ""
							}`}
							title={`${binaryName(b)}: ${formatShare(b.self, whole)} of self time; click to mark its frames`}
							aria-pressed={b.word === binary && binary !== ""}
							disabled={b.word === ""}
							onClick={() => go({ binary: b.word === binary ? "" : b.word }, "replace")}
						>
							<span
								class="swatch"
								style={{ background: toHex(wordColour(b.word, b.kernel, theme, slots)) }}
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
