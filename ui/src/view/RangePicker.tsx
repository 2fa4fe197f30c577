// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useState } from "preact/hooks";
import { serverNow } from "../api/clock.ts";
import { parseInstant } from "../model/instant.ts";
import {
	isLive,
	PRESETS,
	type Range,
	rangeName,
	rangeProblem,
	spanOf,
	toApiTime,
	toLocalText,
} from "../model/time.ts";
import { Icon } from "./icons.tsx";
import { Popover } from "./Menu.tsx";

/** What stands in a field: words that move stay words, instants become local time. */
function fieldText(end: string): string {
	if (end.startsWith("now")) {
		return end;
	}
	const ms = parseInstant(end, serverNow());
	return Number.isNaN(ms) ? end : toLocalText(ms);
}

function fieldValue(text: string): string {
	const s = text.trim();
	const ms = parseInstant(s, serverNow());
	return s.startsWith("now") || Number.isNaN(ms) ? s : toApiTime(ms);
}

/** The time range: lengths up to now, or two instants. */
export function RangePicker(props: { range: Range; choose: (range: Range) => void }) {
	const { range, choose } = props;
	const [open, setOpen] = useState(false);
	const [from, setFrom] = useState("");
	const [to, setTo] = useState("");
	useLayoutEffect(() => {
		setFrom(fieldText(range.from));
		setTo(fieldText(range.to));
	}, [range, open]);
	const wanted = { from: fieldValue(from), to: fieldValue(to) };
	const problem = open ? rangeProblem(wanted, serverNow()) : "";
	const apply = (next: Range) => {
		setOpen(false);
		choose(next);
	};
	const fix = () => {
		const { fromMs, toMs } = spanOf(range, serverNow());
		apply({ from: toApiTime(fromMs), to: toApiTime(toMs) });
	};
	return (
		<Popover
			class="range"
			title="Time range"
			open={open}
			setOpen={setOpen}
			label={
				<>
					<span class="range-name">{rangeName(range, serverNow())}</span>
					<Icon name="down" />
				</>
			}
		>
			<div class="range-panel">
				<ul class="range-presets">
					{PRESETS.map((p) => (
						<li key={p.length}>
							<button
								type="button"
								class={isLive(range) && range.from === `now-${p.length}` ? "on" : ""}
								onClick={() => apply({ from: `now-${p.length}`, to: "now" })}
							>
								Last {p.name}
							</button>
						</li>
					))}
				</ul>
				<form
					class="range-form"
					onSubmit={(e) => {
						e.preventDefault();
						if (problem === "") {
							apply(wanted);
						}
					}}
				>
					<label>
						From
						<input value={from} onInput={(e) => setFrom(e.currentTarget.value)} />
					</label>
					<label>
						To
						<input value={to} onInput={(e) => setTo(e.currentTarget.value)} />
					</label>
					<p class="range-help">{problem || "Local time as 2026-01-31 14:05, or now-90m"}</p>
					<div class="range-buttons">
						<button type="submit" class="button primary" disabled={problem !== ""}>
							Apply
						</button>
						{isLive(range) && (
							<button
								type="button"
								class="button"
								title="Absolute times: for a link that shows the same tomorrow"
								onClick={fix}
							>
								Fix to now
							</button>
						)}
					</div>
				</form>
			</div>
		</Popover>
	);
}
