// SPDX-License-Identifier: Apache-2.0
/** The selector as rows of choices, for users who do not know the labels; and recently used selectors. */
import { useMemo, useState } from "preact/hooks";
import { getLabels, getValues, type Question } from "../../api/client.ts";
import { recentQueries } from "../../app/recent.ts";
import { useQuery } from "../../app/use_query.ts";
import { OPERATORS, type Condition, readConditions, formatConditions } from "../../model/selector.ts";
import { orderLabels, typeName } from "../../model/types.ts";
import { joinQuery, splitQuery } from "../../model/url.ts";

/** The most values that a row offers. */
const SHOWN_MAX = 1000;

/** Descriptions of common labels. */
const MEANINGS: Record<string, string> = {
	comm: "name of the program",
	node: "host",
	pod: "pod of Kubernetes",
	namespace: "namespace of Kubernetes",
	container: "container",
	cpu: "number of the CPU",
	thread_name: "name of the thread",
	thread_id: "number of the thread",
	pid: "number of the process",
	systemd_unit: "unit of systemd",
	job: "job that is scraped",
	instance: "target that is scraped",
};

interface BuilderProps {
	type: string;
	matchers: string;
	range: Omit<Question, "query">;
	commit: (matchers: string, type: string) => void;
	close: () => void;
}

/** The value: one of the existing ones, or an expression. */
function Value(props: { one: Condition; others: readonly Condition[]; builder: BuilderProps; set: (value: string) => void }) {
	const { one, builder, set } = props;
	const query = joinQuery(builder.type, formatConditions(props.others));
	const values = useQuery(one.label === "" ? null : `${one.label} ${query}`, 0, (signal) => getValues(one.label, { query, ...builder.range }, signal));
	const expression = one.op.includes("~");
	const known = values.data ?? [];
	if (expression || values.error) {
		return (
			<input
				value={one.value}
				aria-label={`Expression for ${one.label}`}
				placeholder="web.*|api"
				onChange={(e) => set(e.currentTarget.value)}
			/>
		);
	}
	const shown = known.slice(0, SHOWN_MAX);
	const none = one.label === "" ? "after the label" : values.data ? "choose…" : "asking the server…";
	return (
		<select value={one.value} aria-label={`Value of ${one.label}`} aria-busy={one.label !== "" && !values.data} disabled={one.label === ""} onChange={(e) => set(e.currentTarget.value)}>
			{!shown.includes(one.value) && <option value={one.value}>{one.value || none}</option>}
			{shown.map((value) => (
				<option key={value} value={value}>
					{value}
				</option>
			))}
			{known.length > SHOWN_MAX && <option disabled>{known.length - SHOWN_MAX} more: write it in the selector</option>}
		</select>
	);
}

/** The content of the menu. Each finished row is applied at once. */
export function Builder(props: BuilderProps) {
	const { type, range, commit } = props;
	const [rows, setRows] = useState<Condition[]>(() => {
		const there = readConditions(props.matchers);
		return there.length > 0 ? there : [{ label: "", op: "=", value: "" }];
	});
	const labels = useQuery(`labels ${type}`, 0, (signal) => getLabels({ query: type, ...range }, signal));
	const names = useMemo(() => orderLabels(labels.data ?? []), [labels.data]);
	const recent = useMemo(() => recentQueries(), []);
	const set = (next: Condition[]) => {
		setRows(next);
		const text = formatConditions(next);
		if (text !== formatConditions(rows)) {
			commit(text, "");
		}
	};
	const change = (at: number, part: Partial<Condition>) => set(rows.map((row, i) => (i === at ? { ...row, ...part } : row)));
	return (
		<div class="builder-list" data-testid="builder">
			<h2>Only samples where</h2>
			{rows.map((row, i) => (
				// biome-ignore lint: rows have no names of their own
				<div class="builder-row" key={i}>
					<select value={row.label} aria-label="Label" onChange={(e) => change(i, { label: e.currentTarget.value, value: "" })}>
						{!names.includes(row.label) && <option value={row.label}>{row.label || (labels.data ? "choose a label…" : "asking the server…")}</option>}
						{names.map((name) => (
							<option key={name} value={name}>
								{MEANINGS[name] ? `${name}: ${MEANINGS[name]}` : name}
							</option>
						))}
					</select>
					<select value={row.op} aria-label="Operator" onChange={(e) => change(i, { op: e.currentTarget.value })}>
						{OPERATORS.map(([op, meaning]) => (
							<option key={op} value={op}>
								{meaning}
							</option>
						))}
					</select>
					<Value one={row} others={rows.filter((_, k) => k !== i)} builder={props} set={(value) => change(i, { value })} />
					<button type="button" class="bare" aria-label="Without this condition" title="Without this condition" onClick={() => set(rows.filter((_, k) => k !== i))}>
						×
					</button>
				</div>
			))}
			{(labels.error ?? labels.trouble) && (
				<p class="range-help" role="alert">
					{(labels.error ?? labels.trouble)!.message}
				</p>
			)}
			<button type="button" class="button builder-add" onClick={() => setRows([...rows, { label: "", op: "=", value: "" }])}>
				Add a condition
			</button>
			{recent.length > 0 && <h2>Used lately in this browser</h2>}
			{recent.map((query) => {
				const one = splitQuery(query);
				return (
					<button
						type="button"
						class="builder-recent"
						key={query}
						title={query}
						onClick={() => {
							props.close();
							commit(one.matchers, one.type);
						}}
					>
						<span>{`{${one.matchers}}`}</span>
						<small>{typeName(one.type, [one.type])}</small>
					</button>
				);
			})}
		</div>
	);
}
