// SPDX-License-Identifier: Apache-2.0
// Pictures of docs/first-hour.md, of a server that has just seen the commands of that page:
//   sudo env DOCS_AFTER="node $PWD/tools/pictures.mjs" tests/deploy/run_docs build/firn docs/first-hour.md
// Takes the packages of ui/ (npm ci), chromium, and pngquant, which makes each some 20 kB.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { openBrowser } from "../tests/e2e/harness.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FIRN = "http://127.0.0.1:7070";
const QUERY = '{comm="shop.py"}';
const GAP_MS = 4000; // at least as long was no shop open between two runs

/** [from, to] of each run of the shop, in milliseconds. */
async function runs() {
	const p = new URLSearchParams({ query: QUERY, from: "now-5m", to: "now", step: "1s" });
	const { series } = await (await fetch(`${FIRN}/api/series?${p}`)).json();
	const found = [];
	for (const [time, value] of series[0].points) {
		if (value === 0) {
			continue;
		}
		const last = found.at(-1);
		if (last && time - last[1] < GAP_MS) {
			last[1] = time + 1000;
		} else {
			found.push([time, time + 1000]);
		}
	}
	if (found.length !== 4) {
		throw new Error(`${found.length} runs of the shop, not 4`);
	}
	return found.map((run) => run.map((ms) => new Date(ms).toISOString()));
}

/** From the first to the end of the last selector, `most` pixels at most. */
async function take(page, name, question, [first, last], most) {
	await page.goto(`${FIRN}/?${new URLSearchParams({ query: QUERY, paused: "1", ...question })}`);
	await page.locator(last).first().waitFor();
	await page.waitForTimeout(2000); // the chart draws itself
	const from = await page.locator(first).first().boundingBox();
	const to = await page.locator(last).first().boundingBox();
	const path = join(ROOT, "docs", `${name}.png`);
	const height = Math.min(most, to.y + to.height - from.y);
	await page.screenshot({ path, clip: { x: from.x, y: from.y, width: from.width, height } });
	execFileSync("pngquant", ["--force", "--skip-if-larger", "--strip", "--output", path, "48", path]);
}

/** The time of one run, in the words of the page. */
const during = ([from, to]) => ({ from, to });
const [first, second, before, deployed] = await runs();
const browser = await openBrowser(ROOT);
const page = await browser.newPage({ viewport: { width: 900, height: 900 }, colorScheme: "light" });
await take(page, "first-hour-graph", { ...during(first), view: "graph", search: "is_sku" }, [".profile", ".flame"], 520);
await take(page, "first-hour-table", { ...during(second), view: "table" }, [".profile", ".table-scroll"], 330);
const base = { base_query: QUERY, base_from: before[0], base_to: before[1] };
await take(page, "first-hour-compare", { ...during(deployed), ...base, page: "compare" }, [".profile", ".flame"], 520);
await browser.close();
