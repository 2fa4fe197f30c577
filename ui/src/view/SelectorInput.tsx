// SPDX-License-Identifier: Apache-2.0
/** The selector: text with completion of labels, operators and values; the server checks it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getLabels, getSeries, getValues, type Question } from "../api/client.ts";
import { useQuery } from "../app/use_query.ts";
import {
	type Context,
	complete,
	costliestFirst,
	contextAt,
	OPERATORS,
	parseMatchers,
	quote,
	rank,
} from "../model/selector.ts";
import { orderLabels } from "../model/types.ts";
import { joinQuery, splitQuery } from "../model/url.ts";
import listStyle from "../style/lists.lazy.css";
import { Icon } from "./icons.tsx";
import { Lazy, lazy } from "./Lazy.tsx";
import { Popover } from "./Menu.tsx";

const Builder = lazy(() => import("./more.tsx"), (m) => m.Builder, listStyle);

const SHOWN_MAX = 200;
/** A step so long that each series has one point: the order of values needs no more. */
const DAY_MS = 86_400_000;

interface Choice {
	text: string;
	note: string;
	/** A text below the choice. */
	after?: string;
}

/** The other finished matchers, so that only values that can still occur are offered. */
function otherMatchers(text: string, context: Context): string {
	return parseMatchers(text)
		.filter(
			(m) => m.value?.closed && m.op && !(context.from >= m.label.from && context.from <= m.to),
		)
		.map((m) => `${m.label.text}${m.op!.text}${quote(m.value!.text)}`)
		.join(",");
}

function useChoices(
	type: string,
	text: string,
	context: Context | null,
	range: Omit<Question, "query">,
) {
	const kind = context?.kind;
	const labels = useQuery(kind === "label" ? `labels ${type}` : null, 0, (signal) =>
		getLabels({ query: type, ...range }, signal),
	);
	const query = context ? joinQuery(type, otherMatchers(text, context)) : type;
	const wanted = kind === "value" && context?.label ? `${context.label} ${query}` : null;
	const values = useQuery(wanted, 0, (signal) => getValues(context!.label, { query, ...range }, signal));
	const costs = useQuery(wanted && `costs ${wanted}`, 0, (signal) =>
		getSeries({ query, ...range }, context!.label, DAY_MS, SHOWN_MAX, signal),
	);
	const sorted = useMemo(
		() => costliestFirst(values.data ?? [], context?.label ?? "", costs.data?.series ?? []),
		[context?.label, values.data, costs.data],
	);
	return useMemo<Choice[]>(() => {
		if (!context) {
			return [];
		}
		if (kind === "op") {
			return OPERATORS.filter(([op]) => op.startsWith(context.prefix)).map(([text, note]) => ({
				text,
				note,
			}));
		}
		if (kind === "label") {
			return rank(orderLabels(labels.data ?? []), context.prefix, SHOWN_MAX).map((text) => ({ text, note: "" }));
		}
		const found = kind === "value" ? rank(sorted, context.prefix, Infinity) : [];
		const more = found.length - SHOWN_MAX;
		return found.slice(0, SHOWN_MAX).map((text, i) => ({
			text,
			note: "",
			after: more > 0 && i === SHOWN_MAX - 1 ? `${more} more: type to narrow them down` : "",
		}));
	}, [context?.kind, context?.prefix, context?.label, labels.data, sorted]);
}

/** The list below the input. */
function Choices(props: { choices: Choice[]; at: number; choose: (text: string) => void }) {
	const list = useRef<HTMLDivElement>(null);
	useEffect(() => {
		list.current?.querySelector(".active")?.scrollIntoView({ block: "nearest" });
	}, [props.at]);
	return (
		<div
			class="choices floating"
			id="selector-choices"
			role="listbox"
			ref={list}
			aria-label="Completions"
		>
			{props.choices.map((choice, i) => (
				<div
					key={choice.text}
					data-after={choice.after || undefined}
					id={`choice-${i}`}
					role="option"
					aria-selected={i === props.at}
					class={i === props.at ? "active" : ""}
					onPointerDown={(e) => {
						e.preventDefault();
						props.choose(choice.text);
					}}
				>
					<span>{choice.text === "" ? '""' : choice.text}</span>
					{choice.note && <span class="choice-note">{choice.note}</span>}
				</div>
			))}
		</div>
	);
}

/** The input between its braces. `commit` gets the matchers, and a type if one was pasted. */
export function SelectorInput(props: {
	type: string;
	matchers: string;
	error: string;
	/** Its label; "Selector" by default. */
	label?: string;
	range: Omit<Question, "query">;
	commit: (matchers: string, type: string) => void;
}) {
	const { type, matchers, error, range, commit } = props;
	const [draft, setDraft] = useState(matchers);
	const [cursor, setCursor] = useState(0);
	const [open, setOpen] = useState(false);
	const [at, setAt] = useState(-1);
	const [build, setBuild] = useState(false);
	const input = useRef<HTMLInputElement>(null);
	useEffect(() => setDraft(matchers), [matchers]);
	const context = useMemo(() => (open ? contextAt(draft, cursor) : null), [open, draft, cursor]);
	const choices = useChoices(type, draft, context, range);
	const look = () => setCursor(input.current?.selectionStart ?? 0);
	const put = (text: string, place: number) => {
		setDraft(text);
		setCursor(place);
		setAt(-1);
		requestAnimationFrame(() => {
			input.current?.focus();
			input.current?.setSelectionRange(place, place);
		});
	};
	const send = (text: string) => {
		const split = splitQuery(text);
		setOpen(false);
		setAt(-1);
		setDraft(split.matchers);
		if (split.matchers !== matchers || (split.type !== "" && split.type !== type)) {
			commit(split.matchers, split.type);
		}
	};
	const choose = (text: string) => {
		if (context) {
			const edit = complete(draft, context, text);
			put(edit.text, edit.cursor);
		}
	};
	const onKeyDown = (e: KeyboardEvent) => {
		const shown = open && choices.length > 0;
		if (e.key === "ArrowDown" || e.key === "ArrowUp") {
			e.preventDefault();
			const step = e.key === "ArrowDown" ? 1 : -1;
			setOpen(true);
			setAt((i) => (shown ? (i + step + choices.length) % choices.length : -1));
		} else if (e.key === "Tab" && shown && !e.shiftKey && (at >= 0 || context?.prefix)) {
			e.preventDefault();
			choose(choices[Math.max(at, 0)]!.text);
		} else if (e.key === "Enter") {
			e.preventDefault();
			if (shown && at >= 0) {
				choose(choices[at]!.text);
			} else {
				send(draft);
			}
		} else if (e.key === "Escape") {
			e.stopPropagation();
			if (open) {
				setOpen(false);
				setAt(-1);
			} else {
				setDraft(matchers);
				input.current?.blur();
			}
		}
	};
	return (
		<div class={`selector ${error ? "bad" : ""}`}>
			<Popover class="builder" title="Choose labels and values, or a selector used lately" open={build} setOpen={setBuild} label={<Icon name="down" />}>
				<Lazy of={Builder} type={type} matchers={matchers} range={range} commit={commit} close={() => setBuild(false)} />
			</Popover>
			<span class="brace">{"{"}</span>
			<input
				ref={input}
				type="text"
				value={draft}
				placeholder={'all samples; for example  comm="python3", node=~"web.*"'}
				aria-label={props.label ?? "Selector"}
				role="combobox"
				aria-expanded={open && choices.length > 0}
				aria-controls="selector-choices"
				aria-activedescendant={at >= 0 ? `choice-${at}` : undefined}
				aria-invalid={error !== ""}
				spellcheck={false}
				autocomplete="off"
				onInput={(e) => {
					setDraft(e.currentTarget.value);
					setOpen(true);
					setAt(-1);
					look();
				}}
				onClick={() => {
					look();
					setOpen(true);
				}}
				onKeyUp={look}
				onKeyDown={onKeyDown}
				onBlur={() => {
					setOpen(false);
					send(draft);
				}}
			/>
			<span class="brace">{"}"}</span>
			{open && choices.length > 0 && <Choices choices={choices} at={at} choose={choose} />}
			{error && !open && (
				<div class="selector-error floating" role="alert">
					{error}
				</div>
			)}
		</div>
	);
}
