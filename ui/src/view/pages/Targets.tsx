// SPDX-License-Identifier: Apache-2.0
/** What is scraped, by job: health, the last scrape, its error. */
import { getTargets } from "../../api/client.ts";
import { serverNow } from "../../api/clock.ts";
import type { Target } from "../../api/types.ts";
import { useTicks } from "../../app/ticks.ts";
import { useQuery } from "../../app/use_query.ts";
import { formatLength } from "../../model/time.ts";
import { formatCount, formatValue } from "../../model/units.ts";
import { Frame, notYet, type PageProps, Panel, Stale, Table } from "./Frame.tsx";

const REFRESH_MS = 5000;

function healthOf(target: Target): "good" | "error" | "late" {
	return /GOOD/.test(target.health) ? "good" : /BAD/.test(target.health) ? "error" : "late";
}

const WORDS = { good: "good", error: "error", late: "not scraped yet" };

function TargetRow({ target }: { target: Target }) {
	const health = healthOf(target);
	const labels = (target.labels?.labels ?? []).filter((l) => !l.name.startsWith("__"));
	const age = target.lastScrape ? serverNow() - Date.parse(target.lastScrape) : Number.NaN;
	return (
		<tr>
			<td class="target-url">{target.url}</td>
			<td>
				<span class={`health ${health}`}>{WORDS[health]}</span>
			</td>
			<td class="number">{Number.isNaN(age) ? "" : `${formatLength(Math.max(0, Math.round(age / 1000) * 1000))} ago`}</td>
			<td class="number">
				{target.lastScrapeDuration && formatValue(Number.parseFloat(target.lastScrapeDuration) * 1e9, "nanoseconds")}
			</td>
			<td>
				{labels.map((l) => (
					<span class="label" key={l.name}>
						{l.name}={l.value}
					</span>
				))}
			</td>
			<td class="page-error">{target.lastError}</td>
		</tr>
	);
}

/** The page Targets. */
export function Targets(page: PageProps) {
	const [tick] = useTicks(REFRESH_MS, true);
	const targets = useQuery("targets", tick, getTargets);
	const jobs = Object.entries(targets.data ?? {});
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
					jobs.map(([job, list]) => {
						const bad = list.filter((t) => healthOf(t) === "error").length;
						return (
							<Panel
								key={job}
								title={job}
								note={`${formatCount(list.length)} ${list.length === 1 ? "target" : "targets"}${bad > 0 ? `, ${formatCount(bad)} with an error` : ""}`}
							>
								<Stale query={targets} />
								<Table heads={[["Address"], ["Health"], ["Last scrape", true], ["It took", true], ["Labels"], ["Last error"]]}>
									{list.map((target) => (
										<TargetRow key={target.url} target={target} />
									))}
								</Table>
							</Panel>
						);
					})
				))}
		</Frame>
	);
}
