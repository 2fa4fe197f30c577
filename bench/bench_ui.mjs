#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The page's figures, one JSON object a line: size as it travels, time to the first graph, and the
// time to paint a graph of 100,000 frames, in Chromium against the server of made samples.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const RUNS = 7;

function print(name, value, unit, against, limit, note) {
	const ratio = Number((value / limit).toFixed(3));
	console.log(
		JSON.stringify({ name, value: Number(value.toFixed(2)), unit, against, ratio, note }),
	);
}

function median(values) {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)];
}

if (!existsSync(join(root, "ui/node_modules"))) {
	console.error("bench_ui: skipped, ui/node_modules is not there");
	process.exit(0);
}
const { GZIP_MAX_BYTES, buildPage, measurePage } = await import("../ui/build.mjs");
const { openBrowser, startMock } = await import("../tests/e2e/harness.mjs");
const dist = join(root, "ui/dist");
const { gzipBytes } = existsSync(join(dist, "index.html")) ? measurePage(dist) : await buildPage();
const most = GZIP_MAX_BYTES / 1000;
print("ui.gzip_kb", gzipBytes / 1000, "kB", `${most} kB`, most, "html, js, css and icon, gzip -9");
const browser = await openBrowser(root);
if (!browser) {
	console.error("bench_ui: Chromium is not installed");
	process.exit(0);
}

async function open(url) {
	const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
	const page = await context.newPage();
	await page.goto(url);
	await page.waitForFunction(() => performance.getEntriesByName("firn:flame").length > 0, null, {
		timeout: 120_000,
	});
	return { context, page };
}

/** Milliseconds from navigation to the first painted graph; the server's time is not in it. */
async function firstPaint(url) {
	const { context, page } = await open(url);
	const ms = await page.evaluate(() => {
		const api = performance.getEntriesByType("resource").filter((r) => r.name.includes("/api/"));
		const flame = api.find((r) => r.name.includes("flamegraph"));
		const types = api.find((r) => r.name.includes("types"));
		const server = [flame, types].reduce((sum, r) => sum + r.responseStart - r.requestStart, 0);
		return performance.getEntriesByName("firn:flame")[0].startTime - server;
	});
	await context.close();
	return ms;
}

/** Milliseconds of painting, at five places of the graph, raster included. */
async function paintTimes(url) {
	const { context, page } = await open(`${url}/?view=flame&paused=1`);
	const box = await page.locator(".flame-overlay").boundingBox();
	const nodes = await page.evaluate(async () => {
		const flame = performance
			.getEntriesByType("resource")
			.find((r) => r.name.includes("/api/flamegraph"));
		const answer = await (await fetch(flame.name)).json();
		return answer.nodes.parent.length;
	});
	// reading a pixel back makes the browser finish what it only wrote down to draw
	const paint = () =>
		page.evaluate(() => {
			const view = document.querySelector(".flame-scroll");
			const ctx = document.querySelector(".flame-canvas").getContext("2d");
			const began = performance.now();
			view.dispatchEvent(new Event("scroll"));
			ctx.getImageData(0, 0, 1, 1);
			return performance.now() - began;
		});
	const times = [];
	for (const row of [0, 3, 5, 8, 0]) {
		await page.mouse.click(box.x + box.width * 0.15, box.y + row * 20 + 9);
		await page.waitForTimeout(400);
		for (let i = 0; i < 12; i++) {
			times.push(await paint());
		}
	}
	await context.close();
	return { nodes, times };
}

const normal = await startMock(root, []);
const first = [];
for (let i = 0; i < RUNS; i++) {
	first.push(await firstPaint(normal.url));
}
await normal.stop();
const note = "Chromium, software raster, 1440x900, median; waiting for the server is left out";
print("ui.first_paint_ms", median(first), "ms", "1000 ms", 1000, note);

const big = await startMock(root, ["--size", "big"]);
const { nodes, times } = await paintTimes(big.url);
await big.stop();
await browser.close();
times.sort((a, b) => a - b);
const most = times[times.length - 1];
const note100k = `${nodes} frames, ${times.length} paintings at 5 zooms, raster included, median; slowest ${most.toFixed(1)} ms`;
print("ui.frame_100k_ms", median(times), "ms", "16.7 ms", 16.7, note100k);
