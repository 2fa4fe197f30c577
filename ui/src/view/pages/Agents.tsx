// SPDX-License-Identifier: Apache-2.0
/** The agents that send profiles: delay, errors, runtimes on the host, and losses. */
import { getAgents, getMetrics, getTop } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import type { Agent } from "../../api/types.ts";
import { pickType, useTypes } from "../../app/type.ts";
import { go } from "../../app/store.ts";
import { useTicks } from "../../app/ticks.ts";
import { useQuery } from "../../app/use_query.ts";
import { runtimesOf } from "../../model/fleet.ts";
import { Metrics } from "../../model/metrics.ts";
import { quote } from "../../model/selector.ts";
import { formatLength } from "../../model/time.ts";
import { formatCount, formatShare, formatValue } from "../../model/units.ts";
import { DEFAULTS, formatUrl, joinQuery } from "../../model/url.ts";
import { Frame, notYet, type PageProps, Panel, Stale, Table, Tiles } from "./Frame.tsx";

const REFRESH_MS = 5000;
/** An agent that sent nothing for this long is late. */
const LATE_MS = 60_000;
/** Rows from which the runtimes of a host are found. */
const ROWS_MAX = 5000;
/** Runtimes shown in a row; the others are in its title. */
const RUNTIMES_MAX = 8;

const LOSSES: Record<string, string> = {
	ring: "no room on their way from the kernel",
	busy: "taken while another was taken on the same CPU",
	excluded: "of processes that are left out",
	off_cpu: "waits without their end",
	seen: "of a stack whose frames the agent no longer had",
	batch: "no room in a message",
	relabel: "left out by a rule",
};

/** The agent that runs with this server (firn up), from the server's own metrics. */
function Local({ metrics }: { metrics: Metrics }) {
	const taken = metrics.sum("firn_agent_samples_taken_total");
	const lost = metrics.by("firn_agent_samples_lost_total", "reason");
	const sum = lost.reduce((a, b) => a + b.value, 0);
	const table = metrics.sum("firn_agent_unwind_table_bytes");
	return (
		<Panel
			title="The agent of this host"
			note={
				<>
					Since it began. <a href="agent?plain">Its own page</a> has processes and files that it could not read.
				</>
			}
		>
			<Tiles
				tiles={[
					{ name: "Samples taken", value: formatCount(taken), note: `on ${metrics.sum("firn_agent_cpus")} CPUs` },
					{
						name: "Samples lost",
						value: formatCount(sum),
						note: sum === 0 ? "none" : `${formatShare(sum, taken)} of all`,
						bad: sum > taken / 100,
					},
					{ name: "Unwind tables", value: formatValue(table, "bytes"), note: "in the kernel" },
					{
						name: "Its eBPF program took",
						value: formatValue(metrics.sum("firn_agent_bpf_seconds_total") * 1e9, "nanoseconds"),
						note: "of CPU time",
					},
				]}
			/>
			{lost.length > 0 && (
				<Table heads={[["Lost because"], ["Samples", true]]}>
					{lost.map((one) => (
						<tr key={one.text}>
							<td>{LOSSES[one.text] ?? one.text}</td>
							<td class="number">{formatCount(one.value)}</td>
						</tr>
					))}
				</Table>
			)}
		</Panel>
	);
}

/** Runtimes that ran on a host in the last minutes, with their shares. */
function Runtimes({ node, type }: { node: string; type: string }) {
	const query = joinQuery(type, `node=${quote(node)}`);
	const top = useQuery(type ? `runtimes ${query}` : null, 0, (signal) =>
		getTop({ query, from: "now-15m", to: "now" }, ROWS_MAX, signal),
	);
	if (!top.data) {
		return <>{top.error ? "" : "…"}</>;
	}
	const all = top.data.rows.reduce((a, row) => a + row.self, 0);
	const shown = runtimesOf(top.data.rows).filter((r) => r.kind !== "marker");
	return (
		<span title={shown.map((r) => `${r.kind} ${formatShare(r.self, all)}`).join("\n")}>
			{shown
				.slice(0, RUNTIMES_MAX)
				.map((r) => `${r.kind} ${formatShare(r.self, all)}`)
				.join(", ") || "no samples in 15 minutes"}
		</span>
	);
}

function AgentRow({ agent, type, index }: { agent: Agent; type: string; index: number }) {
	const age = serverNow() - Date.parse(agent.lastPush);
	const health = agent.lastError ? "error" : age > LATE_MS ? "late" : "good";
	const matchers = `node=${quote(agent.id)}`;
	return (
		<tr>
			<td>
				<a
					href={location.pathname + formatUrl({ ...DEFAULTS, matchers })}
					title="Its profiles"
					onClick={(e) => {
						if (!e.ctrlKey && !e.metaKey && e.button === 0) {
							e.preventDefault();
							go({ page: "explore", matchers, zoom: "" });
						}
					}}
				>
					{agent.id}
				</a>
			</td>
			<td>
				<span class={`health ${health}`}>{health}</span>
			</td>
			<td class="number">{formatLength(Math.max(0, Math.round(age / 1000) * 1000))} ago</td>
			<td class="number">{formatValue(Number.parseFloat(agent.lastPushDuration) * 1e9 || 0, "nanoseconds")}</td>
			<td>{(agent.version ?? "").replace("/", " ")}</td>
			<td class="number" title="Samples that the server's limits refused, since it is listed">
				{formatCount(Number(agent.refusedSamples ?? 0))}
			</td>
			<td>{index < 20 ? <Runtimes node={agent.id} type={type} /> : ""}</td>
			<td class={agent.lastError ? "page-error" : ""}>
				{agent.lastError ||
					(agent.lastFailure && `${formatLength(Math.max(1000, serverNow() - Date.parse(agent.lastFailureTime ?? "")))} ago: ${agent.lastFailure}`)}
			</td>
		</tr>
	);
}

/** The page Agents. */
export function Agents(page: PageProps) {
	const [tick] = useTicks(REFRESH_MS, true);
	const types = useTypes();
	const type = pickType(types.data, "")?.type ?? "";
	const agents = useQuery("agents", tick, getAgents);
	const metrics = useQuery("metrics", tick, async (signal) => new Metrics(await getMetrics(signal), Date.now()));
	const list = agents.data ?? [];
	return (
		<Frame page={page} title="Agents" about="Who sends profiles, how late, and what was lost">
			{notYet(agents, "agents") ?? (
				<Panel
					title={`${formatCount(list.length)} ${list.length === 1 ? "agent" : "agents"}`}
					note="Whoever pushed lately: firn's agents, Parca's, SDKs."
				>
					<Stale query={agents} />
					{list.length === 0 ? (
						<div class="blank in-panel" data-testid="no-agents">
							<h2>Nobody has sent anything lately</h2>
							<p>On the host to be profiled, run</p>
							<code>firn agent --remote-store-address {location.host}</code>
						</div>
					) : (
						<Table heads={[["Agent"], ["Health"], ["Last push", true], ["It took", true], ["Version"], ["Refused", true], ["Runtimes, 15 minutes"], ["Last error"]]}>
							{list.map((agent, i) => (
								<AgentRow key={agent.id} agent={agent} type={type} index={i} />
							))}
						</Table>
					)}
				</Panel>
			)}
			{metrics.data?.has("firn_agent_samples_taken_total") && <Local metrics={metrics.data} />}
		</Frame>
	);
}
