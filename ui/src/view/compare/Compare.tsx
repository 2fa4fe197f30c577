// SPDX-License-Identifier: Apache-2.0
/**
 * The comparison of two questions: the choice of the base, the chart with both ranges, graph and table of
 * differences.
 */
import { useState } from "preact/hooks";
import type { Question } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import { type Base, useBase } from "../../app/base.ts";
import type { Data } from "../../app/data.ts";
import { go } from "../../app/store.ts";
import type { Theme } from "../../model/colour.ts";
import { formatClock, formatSpan, toApiTime } from "../../model/time.ts";
import type { Shift, State } from "../../model/url.ts";
import { NoneLeft, NoSamples } from "../Blank.tsx";
import { Loading, NoAnswer } from "../Empty.tsx";
import { Icon } from "../icons.tsx";
import { RangePicker } from "../RangePicker.tsx";
import { Segments } from "../Segments.tsx";
import { SelectorInput } from "../SelectorInput.tsx";
import { compareWith, Timeline } from "../Timeline.tsx";
import { DiffPanel } from "./DiffPanel.tsx";

const SHIFTS: readonly { value: Shift | "own"; name: string; title: string }[] = [
	{ value: "", name: "Before", title: "As long a time right before the range" },
	{ value: "1h", name: "Hour", title: "The same time an hour before" },
	{ value: "1d", name: "Day", title: "The same time a day before" },
	{ value: "7d", name: "Week", title: "The same time a week before" },
];

function chooseShift(shift: Shift | "own"): void {
	if (shift !== "own") {
		go({ shift, baseRange: null });
	}
}

/** Exchanges both sides; live ranges become fixed. */
function swap(state: State, data: Data, base: Base): void {
	const fixed = ({ fromMs, toMs }: { fromMs: number; toMs: number }) => ({
		from: toApiTime(fromMs),
		to: toApiTime(toMs),
	});
	const other = state.baseMatchers ?? state.matchers;
	go({
		range: fixed(base.span),
		select: null,
		matchers: other,
		baseRange: fixed(state.select ?? data.span),
		baseMatchers: other === state.matchers ? null : state.matchers,
	});
}

/** The choice of the base. */
function BaseBar({ state, data, base }: { state: State; data: Data; base: Base }) {
	const { from, to }: Question = base.question;
	// on a phone the rest is folded, unless it was changed
	const [whole, setWhole] = useState(state.baseRange !== null || state.baseMatchers !== null);
	const error = base.flame.error?.status === 400 ? base.flame.error.message : "";
	return (
		<section class={`panel base-bar ${whole || error || base.problem ? "" : "short"}`} aria-label="What it is compared with">
			<span class="base-name">
				<i class="base-mark" />
				Base
			</span>
			<Segments
				label="Time of the base"
				value={state.baseRange ? "own" : state.shift}
				choices={SHIFTS}
				choose={chooseShift}
			/>
			<RangePicker
				range={state.baseRange ?? { from, to }}
				choose={(baseRange) => go({ baseRange, shift: "" })}
			/>
			<SelectorInput
				label="Selector of the base"
				type={data.type?.type ?? ""}
				matchers={base.matchers}
				error={error || base.problem}
				range={{ from, to }}
				commit={(matchers) => go({ baseMatchers: matchers === state.matchers ? null : matchers })}
			/>
			<button
				type="button"
				class="button square"
				title="Exchange both sides"
				aria-label="Exchange both sides"
				onClick={() => swap(state, data, base)}
			>
				<Icon name="swap" />
			</button>
			<button
				type="button"
				class="button square base-rest"
				title="Time and selector of the base"
				aria-label="Time and selector of the base"
				aria-expanded={whole}
				onClick={() => setWhole(!whole)}
			>
				<Icon name="down" />
			</button>
		</section>
	);
}

/** A base without samples: a possible reason, and other bases. */
function NoBase({ base, data }: { base: Base; data: Data }) {
	const first = data.type?.first ?? 0;
	const span = formatSpan(base.span, serverNow());
	const early = first > base.span.toMs;
	return (
		<section class="panel profile">
			<div class="blank in-panel" role="status" data-testid="no-base">
				<h1>Nothing to compare with</h1>
				<p>
					No samples of the base lie between {span}
					{base.matchers && (
						<>
							{" "}
							for <code>{base.matchers}</code>
						</>
					)}
					.{early && ` Recording began at ${formatClock(first)}.`}
				</p>
				<p>Choose another time above, or drag one in the chart.</p>
				<div class="blank-ways">
					<button type="button" class="button primary" onClick={() => chooseShift("")}>
						Right before
					</button>
					{base.matchers && (
						<button type="button" class="button" onClick={() => go({ baseMatchers: "" })}>
							All samples as the base
						</button>
					)}
				</div>
			</div>
		</section>
	);
}

/** Graph and table of the differences, or why there are none. */
function Result(props: { state: State; data: Data; base: Base; theme: Theme }) {
	const { state, data, base, theme } = props;
	const [a, b] = [data.flame, base.flame];
	const error = a.data ? (b.data ? null : b.error) : a.error;
	if (error) {
		return (
			<section class="panel profile">
				<NoAnswer error={error} state={state} data={data} />
			</section>
		);
	}
	if (!a.data || !b.data) {
		return (
			<section class="panel profile" aria-busy="true">
				<Loading text="Asking for both sides" trouble={a.trouble ?? b.trouble} />
			</section>
		);
	}
	if (a.data.total <= 0 && (data.whole?.total ?? 0) > 0) {
		return (
			<section class="panel profile">
				<NoneLeft />
			</section>
		);
	}
	if (a.data.total <= 0) {
		return (
			<section class="panel profile">
				<NoSamples state={state} data={data} />
			</section>
		);
	}
	if (b.data.total <= 0) {
		return <NoBase base={base} data={data} />;
	}
	return <DiffPanel state={state} data={data} a={a.data} b={b.data} slow={a.slow || b.slow} theme={theme} />;
}

const DRAGS = [
	{ value: "base", name: "Base", title: "A drag in the chart chooses what is compared with" },
	{ value: "this", name: "This", title: "A drag in the chart chooses what is looked at" },
] as const;

/** The page Compare. */
export function Compare({ data, state, theme }: { data: Data; state: State; theme: Theme }) {
	const base = useBase(state, data);
	const [drag, setDrag] = useState<"base" | "this">("base");
	return (
		<>
			<BaseBar state={state} data={data} base={base} />
			<Timeline
				state={state}
				data={data}
				theme={theme}
				base={{
					span: base.span,
					choose: drag === "base" ? compareWith : undefined,
					control: (
						<label class="by">
							Drag
							<Segments label="What a drag chooses" value={drag} choices={DRAGS} choose={setDrag} />
						</label>
					),
				}}
			/>
			<Result state={state} data={data} base={base} theme={theme} />
		</>
	);
}
