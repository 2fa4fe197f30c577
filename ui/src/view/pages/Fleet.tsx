// SPDX-License-Identifier: Apache-2.0
/** Services by a label: use over time, share, trend against the time before, and the hottest function. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { getLabels, getSeries, getTop } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import { pickType, useTypes } from "../../app/type.ts";
import { go } from "../../app/store.ts";
import { useTicks } from "../../app/ticks.ts";
import { useQuery } from "../../app/use_query.ts";
import { type Service, servicesOf, sparkline } from "../../model/fleet.ts";
import { withMatcher } from "../../model/selector.ts";
import { formatClock, isLive, rangeProblem, spanOf, stepFor, toApiTime } from "../../model/time.ts";
import { orderLabels } from "../../model/types.ts";
import { formatCount, formatRate, type Rate, rateOf } from "../../model/units.ts";
import { formatUrl, joinQuery, type State } from "../../model/url.ts";
import { formatChange } from "../../model/verdict.ts";
import { BadRange } from "../Blank.tsx";
import { Waiting } from "../Empty.tsx";
import { RangePicker } from "../RangePicker.tsx";
import { TypePicker } from "../TopBar.tsx";
import { Frame, notYet, type PageProps, Panel, ShareBar, Stale, Table } from "./Frame.tsx";

const SERVICES_MAX = 100;
/** Rows for which the hottest function is asked for, one after the other. */
const TOPS_MAX = 20;
const POINTS = 60;
const REFRESH_MS = 30_000;

/** The hottest functions of the first rows, one question at a time; they stay until newer ones come. */
function useTops(query: string, label: string, matchers: string, type: string, values: readonly string[], state: State) {
	const [tops, set] = useState<{ query: string; names: Record<string, string> }>({ query: "", names: {} });
	const wanted = values.slice(0, TOPS_MAX).join("\n");
	useEffect(() => {
		const abort = new AbortController();
		const { fromMs, toMs } = spanOf(state.range, serverNow());
		const run = async () => {
			for (const value of wanted === "" ? [] : wanted.split("\n")) {
				const one = joinQuery(type, withMatcher(matchers, label, value));
				const asked = { query: one, from: toApiTime(fromMs), to: toApiTime(toMs) };
				const { rows } = await getTop(asked, 1, abort.signal);
				const name = rows[0]?.name ?? "";
				set((t) => ({ query, names: { ...(t.query === query ? t.names : {}), [value]: name } }));
			}
		};
		run().catch(() => {});
		return () => abort.abort();
	}, [query, wanted]);
	return tops.query === query ? tops.names : {};
}

function ServiceRow(props: {
	service: Service;
	label: string;
	total: number;
	rate: Rate;
	/** Values are sums over time, not those of an instant. */
	delta: boolean;
	top: string | undefined;
	/** Steps of the range that can have samples. */
	steps: number;
	/** There are samples of as long a time before, too. */
	old: boolean;
	state: State;
}) {
	const { service, label, total, rate, delta, top, steps, old, state } = props;
	const matchers = service.other ? state.matchers : withMatcher(state.matchers, label, service.value);
	const there = { ...state, matchers, zoom: "", select: null };
	const href = (page: "explore" | "compare") => location.pathname + formatUrl({ ...there, page });
	const open = (page: "explore" | "compare") => (e: MouseEvent) => {
		if (!e.ctrlKey && !e.metaKey && !e.shiftKey && e.button === 0) {
			e.preventDefault();
			go({ matchers, page, zoom: "", select: null });
		}
	};
	const change = old ? formatChange(service.sum, service.before) : "–";
	return (
		<tr class="service">
			<td class="service-name">
				{service.other ? (
					<span>everything else</span>
				) : (
					<a href={href("explore")} onClick={open("explore")}>
						{service.value || `no ${label}`}
					</a>
				)}
			</td>
			<td>
				<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
					<polyline points={sparkline(service.points, steps)} />
				</svg>
			</td>
			<td class="number">{formatRate(delta ? service.sum * rate.factor : service.sum / steps, rate)}</td>
			<td class="number">
				<ShareBar part={service.sum} whole={total} />
			</td>
			<td class="number">
				{service.other ? (
					change
				) : (
					<a href={href("compare")} title="Compare with the time before" onClick={open("compare")}>
						{change}
					</a>
				)}
			</td>
			<td class="service-top">
				{top === undefined ? (service.other ? "" : "…") : top}
			</td>
		</tr>
	);
}

/** The page Fleet. */
export function Fleet(page: PageProps) {
	const { state } = page;
	const types = useTypes();
	const type = pickType(types.data, state.type);
	const problem = rangeProblem(state.range, serverNow());
	const labels = useQuery(type ? `fleet labels ${type.type}` : null, 0, (signal) =>
		getLabels({ query: type!.type, from: "now-7d", to: "now" }, signal),
	);
	const known = useMemo(() => orderLabels(labels.data ?? []), [labels.data]);
	const label = known.includes(state.by) ? state.by : (known[0] ?? state.by);
	const [tick] = useTicks(REFRESH_MS, isLive(state.range));
	const query = type && labels.data ? joinQuery(type.type, state.matchers) : "";
	const id = query && problem === "" ? JSON.stringify(["fleet", query, label, state.range]) : null;
	const answer = useQuery(id, tick, async (signal) => {
		const { fromMs, toMs } = spanOf(state.range, serverNow());
		const stepMs = stepFor(toMs - fromMs, POINTS);
		const beginMs = Math.floor(fromMs / stepMs) * stepMs;
		const asked = { query, from: toApiTime(2 * beginMs - toMs), to: toApiTime(toMs) };
		const found = await getSeries(asked, label, stepMs, SERVICES_MAX, signal);
		const services = servicesOf(found.series, label, beginMs, toMs, found.step);
		const first = type?.first ?? 0;
		const lengthMs = toMs - Math.max(beginMs, Math.min(first, toMs - found.step));
		const steps = Math.ceil(lengthMs / found.step);
		return { services, unit: found.unit, lengthMs, steps, began: first > 2 * beginMs - toMs ? first : 0 };
	});
	const services = answer.data?.services ?? [];
	const total = services.reduce((sum, s) => sum + s.sum, 0);
	const values = services.filter((s) => !s.other).map((s) => s.value);
	const tops = useTops(id ? `${id}${tick}` : "", label, state.matchers, type?.type ?? "", values, state);
	const { unit = "", lengthMs = 1000, steps = 1, began = 0 } = answer.data ?? {};
	const rate = rateOf(type?.type ?? "", unit, type?.delta ?? true, lengthMs);
	return (
		<Frame
			page={page}
			title="Fleet"
			about="Who uses it, more or less than before, and in which function"
			controls={
				type && (
					<>
						<TypePicker types={types.data ?? []} type={type} />
						<label class="by">
							by
							<select value={label} onChange={(e) => go({ by: e.currentTarget.value })}>
								{known.map((l) => (
									<option key={l} value={l}>
										{l}
									</option>
								))}
							</select>
						</label>
						<RangePicker range={state.range} choose={(range) => go({ range, select: null })} />
					</>
				)
			}
		>
			{types.data && !type ? (
				<Waiting error={types.error} />
			) : problem !== "" ? (
				<BadRange problem={problem} state={state} />
			) : (
				notYet(types, "profile types") ?? notYet(answer, "services") ?? (
					<Panel
						title={`${formatCount(values.length)} ${values.length === 1 ? "value" : "values"} of ${label}`}
						note={`${began > 0 ? `Recording began at ${formatClock(began)}: too late to tell a trend.` : "In the range, and against as long a time before it."}${state.matchers ? ` Only {${state.matchers}}.` : ""}`}
					>
						<Stale query={answer} />
						{services.length === 0 ? (
							<p class="page-none" data-testid="fleet-none">
								No samples in this time range.
							</p>
						) : (
							<Table
								heads={[[label], ["Over time"], [rate.label === "cores" ? "Cores" : "Rate", true], ["Share", true], ["Trend", true], ["Hottest function"]]}
							>
								{services.map((service) => (
									<ServiceRow
										key={service.other ? "\nother" : service.value}
										service={service}
										label={label}
										total={total}
										rate={rate}
										delta={type?.delta ?? true}
										top={service.other ? undefined : tops[service.value]}
										steps={steps}
										old={began === 0}
										state={state}
									/>
								))}
							</Table>
						)}
					</Panel>
				)
			)}
		</Frame>
	);
}
