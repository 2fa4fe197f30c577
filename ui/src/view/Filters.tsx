// SPDX-License-Identifier: Apache-2.0
/** Filters as chips, the form that adds one, and the choice of groups. */
import { useState } from "preact/hooks";
import { go, stateNow } from "../app/store.ts";
import {
	type Filter,
	type FilterField,
	filterProblem,
	FILTERS_MAX,
	type Group,
	type Op,
} from "../model/filter.ts";
import { requestOf } from "../model/selector.ts";
import type { State } from "../model/url.ts";
import { Icon } from "./icons.tsx";
import { Popover } from "./Menu.tsx";

const OP_NAMES: readonly { value: Op; name: string; title: string }[] = [
	{ value: "only", name: "Only through", title: "Keeps the stacks that have such a frame" },
	{ value: "drop", name: "Drop stacks with", title: "Keeps the stacks that have no such frame" },
	{ value: "hide", name: "Hide frames of", title: "Takes the frames out; what they call moves up" },
];
const FIELD_NAMES: readonly { value: FilterField; name: string }[] = [
	{ value: "name", name: "function" },
	{ value: "binary", name: "binary" },
	{ value: "file", name: "file" },
	{ value: "runtime", name: "runtime" },
];
const GROUP_NAMES: readonly { value: Group; name: string }[] = [
	{ value: "function", name: "functions" },
	{ value: "binary", name: "binaries" },
	{ value: "file", name: "source files" },
	{ value: "runtime", name: "runtimes" },
	{ value: "label", name: "functions, by the chart's label" },
];

/** Adds a filter, once. */
export function addFilter(filter: Filter): void {
	const { filters } = stateNow();
	const same = filters.some((f) => f.op === filter.op && f.field === filter.field && f.text === filter.text);
	if (!same && filters.length < FILTERS_MAX) {
		go({ filters: [...filters, filter], zoom: "" });
	}
}

/** Replaces a filter, or removes it (null). */
function change(index: number, filter: Filter | null): void {
	const filters = [...stateNow().filters];
	filters.splice(index, 1, ...(filter ? [filter] : []));
	go({ filters, zoom: "" });
}

function Select<T extends string>(props: {
	label: string;
	value: T;
	choices: readonly { value: T; name: string; title?: string }[];
	choose: (value: T) => void;
}) {
	return (
		<select
			aria-label={props.label}
			value={props.value}
			onChange={(e) => props.choose(e.currentTarget.value as T)}
		>
			{props.choices.map((c) => (
				<option key={c.value} value={c.value} title={c.title}>
					{c.name}
				</option>
			))}
		</select>
	);
}

/** The filters and the group, each with a button that removes it; nothing if there are none. */
export function FilterChips({ state }: { state: State }) {
	const { filters, group } = state;
	const request = requestOf(state.matchers);
	if (filters.length === 0 && group === "function" && !request) {
		return null;
	}
	return (
		<ul class="filters" aria-label="Filters" data-testid="filters">
			{request && (
				<li class="filter" data-testid="request">
					<span>Only what ran for one {request.what}</span>
					<b title={request.id}>{request.id}</b>
					<button type="button" class="bare" title={`Not only this ${request.what}`} onClick={() => go({ matchers: request.rest, zoom: "" })}>
						<Icon name="close" />
					</button>
				</li>
			)}
			{filters.map((filter, i) => (
				<li class="filter" key={`${filter.op}${filter.field}${filter.text}`}>
					<Select
						label="What the filter does"
						value={filter.op}
						choices={OP_NAMES}
						choose={(op) => change(i, { ...filter, op })}
					/>
					{filter.field !== "name" && <span>{filter.field}</span>}
					<b title={filter.text}>{filter.text}</b>
					<button type="button" class="bare" title="Without this filter" onClick={() => change(i, null)}>
						<Icon name="close" />
					</button>
				</li>
			))}
			{group !== "function" && (
				<li class="filter">
					<span>Bars are</span>
					<b>{GROUP_NAMES.find((g) => g.value === group)!.name}</b>
					<button
						type="button"
						class="bare"
						title="Bars are functions again"
						onClick={() => go({ group: "function", zoom: "" })}
					>
						<Icon name="close" />
					</button>
				</li>
			)}
			{filters.length > 1 && (
				<li>
					<button type="button" class="bare chip-link" onClick={() => go({ filters: [], group: "function", zoom: "" })}>
						Clear all
					</button>
				</li>
			)}
		</ul>
	);
}

/** The form that adds a filter. */
function Form({ done }: { done: () => void }) {
	const [op, setOp] = useState<Op>("only");
	const [field, setField] = useState<FilterField>("name");
	const [text, setText] = useState("");
	const problem = filterProblem(text);
	return (
		<form
			class="filter-form"
			onSubmit={(e) => {
				e.preventDefault();
				if (problem === "") {
					addFilter({ op, field, text: text.trim() });
					done();
				}
			}}
		>
			<div class="filter-row">
				<Select label="What it does" value={op} choices={OP_NAMES} choose={setOp} />
				<Select label="What is looked at" value={field} choices={FIELD_NAMES} choose={setField} />
			</div>
			<input
				type="text"
				aria-label="Text of the filter"
				placeholder={'Text, "whole name" or /expression/'}
				value={text}
				spellcheck={false}
				autocomplete="off"
				ref={(input) => {
					if (input && document.activeElement?.closest(".filter-form") === null) {
						input.focus();
					}
				}}
				onInput={(e) => setText(e.currentTarget.value)}
			/>
			<p class="range-help">
				{problem !== "" && text !== "" ? problem : OP_NAMES.find((o) => o.value === op)!.title}
			</p>
			<button type="submit" class="button primary" disabled={problem !== ""}>
				Add the filter
			</button>
		</form>
	);
}

/** The button that opens form and groups. */
export function FilterButton({ state }: { state: State }) {
	const [open, setOpen] = useState(false);
	return (
		<Popover
			class="filter-menu"
			title="Filters, and what a bar is"
			open={open}
			setOpen={setOpen}
			label={
				<>
					<Icon name="filter" />
					Filter
				</>
			}
		>
			<div class="filter-panel">
				<Form done={() => setOpen(false)} />
				<label class="by">
					Bars are
					<Select
						label="Bars are"
						value={state.group}
						choices={GROUP_NAMES}
						choose={(group) => {
							go({ group, zoom: "" });
							setOpen(false);
						}}
					/>
				</label>
			</div>
		</Popover>
	);
}
