#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The page in a real browser. Against the server of made samples by default, or against a real one:
//   node tests/e2e/run.mjs [--firn build/firn] [--url http://HOST:PORT] [--all]
// --firn starts `firn up` with a store of its own on a free port, and ends it. Prints one line a
// check, with the time it took, and "N passed, N failed, N skipped". Files of checks go side by side, each in
// a browser context of its own (--lanes N at once: 2 over made samples, 1 over a real server, whose answers
// take most of the time); the checks of a file one after the other. --slow N makes the page N times slower and
// types slowly: a check that fails so depends on time. --only NAME|NAME are the checks with such a part in their
// name. Over a real server only the checks of what a server answers run, unless --all or --only asks for more:
// keys, colours and fingers are the same over any server. Exit code 77 (skipped) without Chromium or node_modules.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { axeChecks } from "./checks_axe.mjs";
import { codeChecks, codeMockOnly } from "./checks_code.mjs";
import { compareChecks } from "./checks_compare.mjs";
import { edgeChecks } from "./checks_edges.mjs";
import { filterChecks } from "./checks_filters.mjs";
import { graphChecks } from "./checks_graph.mjs";
import { linkChecks, linkFirnOnly } from "./checks_links.mjs";
import { pagesChecks } from "./checks_pages.mjs";
import { mockOnly, pageChecks } from "./checks_page.mjs";
import { readerChecks } from "./checks_reader.mjs";
import { saveChecks } from "./checks_save.mjs";
import { taskChecks } from "./checks_tasks.mjs";
import { touchChecks } from "./checks_touch.mjs";
import { timeChecks } from "./checks_time.mjs";
import { openBrowser, slowDown, startFirn, startMock, watch } from "./harness.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

function argument(name) {
	const at = process.argv.indexOf(`--${name}`);
	return at < 0 ? "" : process.argv[at + 1];
}

function skip(reason) {
	console.log(`skipped: ${reason}`);
	console.log("0 passed, 0 failed, 1 skipped");
	process.exit(77);
}

if (!existsSync(join(root, "ui/node_modules/playwright-core"))) {
	skip("ui/node_modules is not there: npm ci in ui/");
}
if (!existsSync(join(root, "ui/dist/index.html"))) {
	skip("ui/dist is not there: npm run build in ui/");
}
const browser = await openBrowser(root);
if (!browser) {
	skip("Chromium is not installed (Debian: apt-get install chromium)");
}

const only = argument("only");
const firn = argument("firn");
const url = argument("url");
const counts = { passed: 0, failed: 0, skipped: 0 };

/** Checks among those of answers that are the same over any server, as keys, colours and fingers. */
const OF_THE_PAGE = new Set([
	"Esc closes the completions and keeps the text",
	"dragging in the chart chooses a range, and Esc goes back",
	"dark and light, by the system and by choice",
	"time ranges: presets and two instants",
	"help opens and closes from the keyboard",
	"usable in 800, 390 and 320 pixels: nothing is wider than the window",
	"a finger that rests on a frame opens its menu, with its figures",
	"a link brings everything back",
	"a chart of too many calls says so, with a way out",
	"a source is no wider than a phone",
	"a second range is dragged with Shift, or on the page of the comparison",
	"a server that is gone is said on each page, with the age of what is shown",
	"what is seen is saved as picture, table and stacks",
	"a link has absolute times, filters and what is compared",
	"a file that is dropped is shown, and sent nowhere",
]);

/** Whether all checks are asked for, also over a real server. */
const ALL = !(firn || url) || only || process.argv.includes("--all");

/** How many times slower the page is than this machine. */
const SLOW = Number(argument("slow")) || 1;

/** Files that are looked at at once. */
const LANES = Number(argument("lanes")) || (firn || url ? 1 : 2);

async function one(name, run, reducedMotion) {
	if (only && !only.split("|").some((part) => name.includes(part))) {
		return;
	}
	if (!ALL && OF_THE_PAGE.has(name)) {
		return;
	}
	if ((firn || url) && (mockOnly.has(name) || codeMockOnly.has(name))) {
		counts.skipped++;
		console.log(`skipped ${name}: needs the server of made samples`);
		return;
	}
	if (!firn && !url && linkFirnOnly.has(name)) {
		counts.skipped++;
		console.log(`skipped ${name}: needs a server that takes profiles`);
		return;
	}
	const context = await browser.newContext({ viewport: { width: 1366, height: 800 }, reducedMotion });
	const page = await context.newPage();
	page.setDefaultTimeout(60_000);
	if (SLOW > 1) {
		await slowDown(page, SLOW);
	}
	const seen = watch(page);
	const begun = Date.now();
	const took = () => `${((Date.now() - begun) / 1000).toFixed(1).padStart(5)} s`;
	try {
		await run({ page, context, browser, url: server.url, root });
		const problems = seen.problems(server.url);
		if (problems.length > 0) {
			throw new Error(problems.join("; "));
		}
		counts.passed++;
		console.log(`ok     ${took()}  ${name}`);
	} catch (e) {
		counts.failed++;
		console.log(`FAILED ${took()}  ${name}\n        ${String(e.message ?? e).replace(/\n/g, "\n        ")}`);
	} finally {
		// an answer that a check changes may be on its way still
		await page.unrouteAll({ behavior: "ignoreErrors" });
		await context.close();
	}
	const gone = server.gone?.();
	if (gone && !counts.gone) {
		counts.gone = true;
		console.log(`        ${gone.replace(/\n/g, "\n        ")}`);
	}
}

let server;
try {
	server = url ? { url, stop() {} } : firn ? await startFirn(firn) : await startMock(root, ["--size", "small"]);
	// what takes longest begins first
	const ofThePage = [graphChecks, axeChecks, edgeChecks, readerChecks, filterChecks, touchChecks];
	const ofAnswers = [pageChecks, timeChecks, codeChecks, compareChecks, pagesChecks, saveChecks, taskChecks, linkChecks];
	const next = (ALL ? [...ofThePage, ...ofAnswers] : ofAnswers).values();
	const lane = async () => {
		for (const file of next) {
			// a graph that glides is drawn many times for one look: the checks of the graph itself see it do so
			const motion = file === graphChecks ? "no-preference" : "reduce";
			for (const [name, run] of counts.gone ? [] : Object.entries(file)) {
				await one(name, run, motion);
			}
		}
	};
	await Promise.all(Array.from({ length: LANES }, lane));
} finally {
	await server?.stop();
	await browser.close();
}
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
process.exit(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
