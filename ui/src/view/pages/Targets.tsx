// SPDX-License-Identifier: Apache-2.0
/** Scraped targets by job: health, the last scrape, its error, the next one; and the discoveries. */
import type { ComponentChildren } from "preact";
import { getTargets } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import type { Discovery, Job, LabelSet, Target } from "../../api/types.ts";
import { useTicks } from "../../app/ticks.ts";
import { useQuery } from "../../app/use_query.ts";
import { formatLength } from "../../model/time.ts";
import { formatCount, formatValue } from "../../model/units.ts";
import { Frame, notYet, type PageProps, Panel, Stale, Table } from "./Frame.tsx";

const REFRESH_MS = 5000;

type Health = "good" | "error" | "late" | "dropped";

function healthOf(target: Target): Health {
	if (target.dropped) {
		return "dropped";
	}
	return /GOOD/.test(target.health) ? "good" : /BAD/.test(target.health) ? "error" : "late";
}

const WORDS: Record<Health, string> = { good: "good", error: "error", late: "not scraped yet", dropped: "dropped by a rule" };

/** A length in whole seconds; "": unknown; negative lengths are 0. */
function secondsOf(ms: number): string {
	return Number.isNaN(ms) ? "" : formatLength(Math.max(0, Math.round(ms / 1000) * 1000));
}

function Labels({ set }: { set: LabelSet | undefined }) {
	return (
		<>
			{(set?.labels ?? []).map((l) => (
				<span class="label" key={l.name}>
					{l.name}={l.value}
				</span>
			))}
		</>
	);
}

function TargetRow({ target }: { target: Target }) {
	const health = healthOf(target);
	const now = serverNow();
	const labels = (target.labels?.labels ?? []).filter((l) => !l.name.startsWith("__"));
	const age = secondsOf(target.lastScrape ? now - Date.parse(target.lastScrape) : Number.NaN);
	const rest = secondsOf(target.nextScrape ? Date.parse(target.nextScrape) - now : Number.NaN);
	return (
		<tr>
			<td class="target-url">{target.url}</td>
			<td>
				<span class={`health ${health === "dropped" ? "late" : health}`}>{WORDS[health]}</span>
			</td>
			<td class="number">{age && `${age} ago`}</td>
			<td class="number">
				{target.lastScrapeDuration && formatValue(Number.parseFloat(target.lastScrapeDuration) * 1e9, "nanoseconds")}
			</td>
			<td class="number">{rest && `in ${rest}`}</td>
			<td>
				<Labels set={{ labels }} />
				<details class="target-before">
					<summary>before relabelling</summary>
					<Labels set={target.discoveredLabels} />
				</details>
			</td>
			<td class="page-error">{target.lastError}</td>
		</tr>
	);
}

/** A discovery that failed, or found nothing. */
function DiscoveryLine({ discovery }: { discovery: Discovery }) {
	const found = Number(discovery.found ?? 0);
	if (discovery.lastError) {
		return (
			<p class="target-discovery bad" role="alert">
				{discovery.key}: {discovery.lastError}
				{found > 0 && ` (${formatCount(found)} found before)`}
			</p>
		);
	}
	return found === 0 ? <p class="target-discovery">{discovery.key}: nothing found</p> : null;
}

function JobPanel({ job, stale }: { job: Job; stale: ComponentChildren }) {
	const bad = job.targets.filter((t) => healthOf(t) === "error").length;
	const count = `${formatCount(job.targets.length)} ${job.targets.length === 1 ? "target" : "targets"}`;
	return (
		<Panel title={job.name} note={`${count}${bad > 0 ? `, ${formatCount(bad)} with an error` : ""}`}>
			{stale}
			{job.discoveries.map((discovery, i) => (
				<DiscoveryLine key={i} discovery={discovery} />
			))}
			{job.targets.length > 0 && (
				<Table heads={HEADS}>
					{job.targets.map((target, i) => (
						<TargetRow key={`${target.url} ${i}`} target={target} />
					))}
				</Table>
			)}
		</Panel>
	);
}

const HEADS = [["Address"], ["Health"], ["Last scrape", true], ["It took", true], ["Next", true], ["Labels"], ["Last error"]] as const;

/** The page Targets. */
export function Targets(page: PageProps) {
	const [tick] = useTicks(REFRESH_MS, true);
	const targets = useQuery("targets", tick, getTargets);
	const jobs = targets.data ?? [];
	return (
		<Frame page={page} title="Targets" about="What this server scrapes, and how that goes">
			{notYet(targets, "targets") ??
				(jobs.length === 0 ? (
					<section class="panel page-panel">
						<div class="blank in-panel" data-testid="no-targets">
							<h2>Nothing is scraped</h2>
							<p>
								Programs that serve <code>/debug/pprof</code> are scraped when the file of <code>--config-path</code> has
								a <code>scrape_configs</code>, as in <code>parca.yaml</code>:
							</p>
							<pre>{`scrape_configs:
  - job_name: api
    static_configs:
      - targets: ["127.0.0.1:6060"]`}</pre>
						</div>
					</section>
				) : (
					jobs.map((job) => <JobPanel key={job.name} job={job} stale={<Stale query={targets} />} />)
				))}
		</Frame>
	);
}
