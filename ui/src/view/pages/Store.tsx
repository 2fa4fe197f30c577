// SPDX-License-Identifier: Apache-2.0
/** The store: size, rates, the oldest sample, refusals; from the server's own metrics. */
import { useRef } from "preact/hooks";
import { getMetrics } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import { useTypes } from "../../app/type.ts";
import { useTicks } from "../../app/ticks.ts";
import { useQuery } from "../../app/use_query.ts";
import { Metrics } from "../../model/metrics.ts";
import { formatLength, toLocalText } from "../../model/time.ts";
import { typeName } from "../../model/types.ts";
import { formatCount, formatValue } from "../../model/units.ts";
import { Frame, notYet, type PageProps, Panel, Stale, Table, Tiles } from "./Frame.tsx";

const REFRESH_MS = 5000;

const bytes = (n: number) => formatValue(n, "bytes");

/** The rate of a metric since the last reading; NaN at first. */
function useRate(metrics: Metrics | null): (name: string) => number {
	const last = useRef<{ before: Metrics | null; now: Metrics | null }>({ before: null, now: null });
	if (metrics && metrics !== last.current.now) {
		last.current = { before: last.current.now, now: metrics };
	}
	const { before, now } = last.current;
	return (name) =>
		before && now ? ((now.sum(name) - before.sum(name)) / (now.atMs - before.atMs)) * 1000 : Number.NaN;
}

const perSecond = (n: number, text: (n: number) => string) => (Number.isNaN(n) ? "…" : `${text(n)}/s`);

/** Metrics of refused or damaged data, which should be 0. */
const TROUBLES: readonly [name: string, label: string, says: string][] = [
	["firn_ingest_refused_samples_total", "reason", "samples refused"],
	["firn_ingest_refused_messages_total", "reason", "messages refused"],
	["firn_otlp_rejected_profiles_total", "reason", "profiles rejected"],
	["firn_store_refused_batches_total", "reason", "batches refused for want of"],
	["firn_store_quarantined_files_total", "", "damaged files set aside"],
	["firn_queries_failed_total", "", "queries refused or given up"],
	["firn_net_overloaded_total", "", "requests sent away because of load"],
	["firn_auth_refused_total", "reason", "requests refused (password, token, scope)"],
	["firn_scrapes_failed_total", "", "scrapes that failed (see Targets)"],
];

function troublesOf(m: Metrics): { text: string; value: number }[] {
	return TROUBLES.flatMap(([name, label, says]) =>
		m.by(name, label).map((one) => ({ text: one.text ? `${says}: ${one.text}` : says, value: one.value })),
	);
}

/** oldestMs: 0 without samples, -1 while it is being requested. */
function Figures({ m, oldestMs }: { m: Metrics; oldestMs: number }) {
	const rate = useRate(m);
	const days = (serverNow() - oldestMs) / 86_400_000;
	const size = m.sum("firn_store_part_bytes");
	const rows = m.sum("firn_store_part_rows");
	const parts = m.sum("firn_store_parts");
	return (
		<Tiles
			tiles={[
				{ name: "On disk", value: bytes(size), note: `${formatCount(parts)} ${parts === 1 ? "part" : "parts"}, ${formatCount(rows)} rows` },
				{
					name: "Oldest sample",
					value: oldestMs > 0 ? `${formatLength(serverNow() - oldestMs)} ago` : oldestMs < 0 ? "…" : "none",
					note: oldestMs > 0 ? toLocalText(oldestMs) : "",
				},
				{ name: "Samples come in", value: perSecond(rate("firn_store_samples_total"), formatCount), note: `${formatCount(m.sum("firn_store_samples_total"))} since the start` },
				{ name: "Written to the log", value: perSecond(rate("firn_store_log_bytes_total"), bytes), note: "before it is merged" },
				{ name: "A day takes", value: days > 0.02 && oldestMs > 0 ? bytes(size / days) : "…", note: "of disk, as it went so far" },
				{ name: "In memory", value: bytes(m.sum("firn_store_memtable_bytes")), note: `of ${bytes(m.sum("process_resident_memory_bytes"))} that the server has` },
			]}
		/>
	);
}

/** The page Store. */
export function Store(page: PageProps) {
	const [tick] = useTicks(REFRESH_MS, true);
	const types = useTypes();
	const metrics = useQuery("metrics", tick, async (signal) => new Metrics(await getMetrics(signal), Date.now()));
	const known = types.data ?? [];
	const all = known.map((t) => t.type);
	const oldestMs = known.reduce((a, t) => (t.first > 0 && (a === 0 || t.first < a) ? t.first : a), 0);
	const troubles = metrics.data ? troublesOf(metrics.data) : [];
	return (
		<Frame page={page} title="Store" about="What is kept, how much comes in, since when">
			{notYet(metrics, "the server's figures") ?? (
				<Panel title="Samples" note={<>All figures: <a href="metrics">/metrics</a></>}>
					<Stale query={metrics} />
					<Figures m={metrics.data!} oldestMs={types.data ? oldestMs : -1} />
				</Panel>
			)}
			{known.length > 0 && (
				<Panel title="Profile types" note="What there are samples of">
					<Table heads={[["Type"], ["Unit"], ["First"], ["Last"], ["Selector"]]}>
						{known.map((t) => (
							<tr key={t.type}>
								<td>{typeName(t.type, all)}</td>
								<td>{t.unit}</td>
								<td>{toLocalText(t.first)}</td>
								<td>{toLocalText(t.last)}</td>
								<td>
									<code>{t.type}</code>
								</td>
							</tr>
						))}
					</Table>
				</Panel>
			)}
			{metrics.data && (
				<Panel title="Refused and failed" note="Since the server began">
					{troubles.length === 0 ? (
						<p class="page-none">Nothing.</p>
					) : (
						<Table heads={[["What"], ["How often", true]]}>
							{troubles.map((one) => (
								<tr key={one.text}>
									<td>{one.text}</td>
									<td class="number">{formatCount(one.value)}</td>
								</tr>
							))}
						</Table>
					)}
				</Panel>
			)}
		</Frame>
	);
}
