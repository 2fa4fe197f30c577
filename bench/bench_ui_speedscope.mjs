#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The same profile of 100,000 and of 1,000,000 frames in firn's page and in speedscope, in the same
// browser and in turns: loaded (from the drop of the file to the painted graph), panned (sideways, with
// a wheel event in each frame), magnified, searched. One JSON object a line, as a ratio to speedscope:
//   FIRN_SPEEDSCOPE=FOLDER bench/bench_ui_speedscope.mjs
// FOLDER is dist/release of npm's speedscope, which is no part of this tree. Speedscope draws with
// WebGL; without a GPU the browser's own rasterizer does that in another process, and its frames take long:
// then the time of the main thread (`_cpu`) is what can be compared.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const speedscope = process.env.FIRN_SPEEDSCOPE ?? "";
const SIZES = (process.env.FIRN_BENCH_FRAMES ?? "100000,1000000").split(",").map(Number);
const RUNS = 3;
const FRAMES = 40;
/** A slow page gets no more than this for its frames, in milliseconds. */
const FRAMES_MS = 5000;
const CHROMIUM = "/usr/bin/chromium";

if (!existsSync(join(speedscope, "index.html")) || !existsSync(join(root, "ui/node_modules")) || !existsSync(CHROMIUM)) {
	console.error("bench_ui_speedscope: skipped, FIRN_SPEEDSCOPE names no dist/release of speedscope, or ui/node_modules or Chromium is missing");
	process.exit(0);
}

/** Numbers that look random and are the same in each run. */
function chance(seed) {
	let state = seed;
	return (below) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

/** A profile in speedscope's own form whose tree has about `count` frames: 6,000 functions, 60 deep at most. */
function makeProfile(count) {
	const next = chance(7);
	const functions = 6000;
	const names = Array.from({ length: functions }, (_, i) => `module${i % 97}::Type${i % 331}::work_${i}`);
	const samples = [];
	const weights = [];
	const children = [new Map()];
	let stack = [];
	let path = [0];
	for (let nodes = 0; nodes < count; ) {
		const keep = Math.min(stack.length, next(4) === 0 ? next(stack.length + 1) : Math.max(0, stack.length - 1 - next(4)));
		stack = stack.slice(0, keep);
		path = path.slice(0, keep + 1);
		for (let more = 1 + next(8); more > 0 && stack.length < 60; more--) {
			const frame = (stack.length * 101 + next(40) * 7 + (path.at(-1) % 50)) % functions;
			const known = children[path.at(-1)].get(frame);
			if (known === undefined) {
				children[path.at(-1)].set(frame, children.length);
				children.push(new Map());
				nodes++;
			}
			path.push(known ?? children.length - 1);
			stack.push(frame);
		}
		samples.push([...stack]);
		weights.push(1 + next(20));
	}
	const profile = { type: "sampled", name: "made", unit: "milliseconds", startValue: 0, endValue: weights.reduce((a, b) => a + b, 0), samples, weights };
	const text = JSON.stringify({ $schema: "https://www.speedscope.app/file-format-schema.json", shared: { frames: names.map((name) => ({ name })) }, profiles: [profile] });
	return { text, nodes: children.length - 1, samples: samples.length };
}

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
let made = null;

/** Serves a folder, and the profile at /made.json. */
async function serve(folder) {
	const server = createServer((request, response) => {
		const name = new URL(request.url, "http://x").pathname.slice(1) || "index.html";
		const path = join(folder, name);
		const there = name === "made.json" || (/^[\w.-]+$/.test(name) && existsSync(path));
		response.writeHead(there ? 200 : 404, { "content-type": TYPES[extname(name)] ?? "application/octet-stream" });
		response.end(!there ? "" : name === "made.json" ? made.text : readFileSync(path));
	});
	await new Promise((done) => server.listen(0, "127.0.0.1", done));
	return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

const PAGES = {
	// the marks say when a painting is over; a page over a server that has nothing still takes a file
	firn: { address: "/?view=flame", canvas: ".flame-overlay", search: (page) => page.keyboard.press("Control+f") },
	speedscope: { address: "/#view=left-heavy", canvas: "canvas", search: (page) => page.keyboard.press("Control+f") },
};

/** From the drop of the file until the page has painted and answers again, in milliseconds. */
async function load(page, kind) {
	await page.evaluate(async () => {
		window.made = new File([await (await fetch("made.json")).blob()], "made.json");
	});
	return page.evaluate(
		(firn) =>
			new Promise((done) => {
				const data = new DataTransfer();
				data.items.add(window.made);
				const begun = performance.now();
				const target = firn ? window : document.querySelector("body *");
				for (const type of ["dragover", "drop"]) {
					target.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
				}
				const isThere = () =>
					firn
						? document.querySelector(".flame-canvas") && performance.getEntriesByName("firn:flame").length > 0
						: /Left Heavy/i.test(document.body.textContent) && document.querySelector("canvas") && !/Loading/.test(document.title);
				const look = () => (isThere() ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun))) : requestAnimationFrame(look));
				look();
			}),
		kind === "firn",
	);
}

/** Frames' lengths while a wheel event of a kind comes in each, in milliseconds; and main-thread time of a frame. */
async function wheel(page, canvas, event, frames) {
	return page.evaluate(
		([selector, options, count, longest]) =>
			new Promise((done) => {
				const all = [...document.querySelectorAll(selector)];
				const box = all.map((one) => one.getBoundingClientRect()).sort((a, b) => b.width * b.height - a.width * a.height)[0];
				const at = { clientX: box.left + box.width / 2, clientY: box.top + Math.min(120, box.height / 2) };
				const target = document.elementFromPoint(at.clientX, at.clientY);
				const times = [];
				let last = 0;
				const begun = performance.now();
				const step = (now) => {
					if (last > 0) times.push(now - last);
					last = now;
					if (times.length >= count || (now - begun > longest && times.length > 2)) return done(times);
					const sign = options.stays || times.length < count / 2 ? 1 : -1;
					const { deltaX = 0, deltaY = 0, ctrlKey = false } = options;
					target.dispatchEvent(new WheelEvent("wheel", { ...at, deltaX: sign * deltaX, deltaY: sign * deltaY, ctrlKey, bubbles: true, cancelable: true, deltaMode: 0 }));
					requestAnimationFrame(step);
				};
				requestAnimationFrame(step);
			}),
		[canvas, event, frames, FRAMES_MS],
	);
}

/** From the typed text until the page has painted and answers again, in milliseconds. */
async function search(page, kind) {
	await PAGES[kind].search(page);
	await page.evaluate(() => {
		window.typed = 0;
		document.addEventListener("input", () => (window.typed = performance.now()), { capture: true, once: true });
	});
	await page.keyboard.insertText("work_31");
	return page.evaluate(
		() =>
			new Promise((done) => {
				// both pages write into the document what was found; the end is the last change or long task
				let last = performance.now();
				let end = last;
				const changes = new MutationObserver(() => (end = performance.now()));
				changes.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
				const look = () => {
					const now = performance.now();
					end = now - last > 90 ? now : end;
					last = now;
					if (now - end < 400) return setTimeout(look, 40); // rarely: looking takes time too
					changes.disconnect();
					done(Math.max(end - window.typed, 0));
				};
				look();
			}),
	);
}

/** Main-thread seconds of processor so far. */
async function threadSeconds(cdp) {
	const { metrics } = await cdp.send("Performance.getMetrics");
	return metrics.find((one) => one.name === "TaskDuration").value;
}

/**
 * What a frame takes while `work` goes on, in milliseconds of processor by thread: the page's own (script, layout,
 * paint commands), and what the browser's rasterizer and compositor add to it, which a GPU would do.
 */
async function traceFrames(cdp, work) {
	const events = [];
	const listen = ({ value }) => events.push(...value);
	cdp.on("Tracing.dataCollected", listen);
	const categories = ["disabled-by-default-devtools.timeline", "toplevel", "__metadata"];
	await cdp.send("Tracing.start", { traceConfig: { includedCategories: categories, excludedCategories: ["*"] } });
	const frames = (await work()).length;
	const over = new Promise((done) => cdp.once("Tracing.tracingComplete", done));
	await cdp.send("Tracing.end");
	await over;
	cdp.off("Tracing.dataCollected", listen);
	const names = new Map(events.filter((e) => e.name === "thread_name").map((e) => [`${e.pid} ${e.tid}`, e.args.name]));
	const sum = (wanted) =>
		events
			.filter((e) => e.name === "ThreadControllerImpl::RunTask" && wanted.test(names.get(`${e.pid} ${e.tid}`) ?? ""))
			.reduce((all, e) => all + (e.tdur ?? 0), 0) / 1000 / frames;
	return { own: sum(/^CrRendererMain/), raster: sum(/^(Compositor|VizCompositor|CrGpuMain|ThreadPool)/) };
}

async function measure(browser, kind, url) {
	const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
	const page = await context.newPage();
	page.setDefaultTimeout(240_000);
	await page.goto(url + PAGES[kind].address);
	const cdp = await context.newCDPSession(page);
	await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
	await page.waitForTimeout(1500);
	const out = {};
	const idle = await threadSeconds(cdp);
	out.load = await load(page, kind);
	out.load_cpu = 1000 * ((await threadSeconds(cdp)) - idle);
	await page.waitForTimeout(500);
	const { canvas } = PAGES[kind];
	for (const [name, event] of [["magnify", { deltaY: -20, ctrlKey: true }], ["pan", { deltaX: 25 }]]) {
		if (name === "pan") {
			// there is something to pan over
			await wheel(page, canvas, { deltaY: -240, ctrlKey: true, stays: true }, 3);
		}
		const begun = await threadSeconds(cdp);
		out[name] = await wheel(page, canvas, event, FRAMES);
		out[`${name}_cpu`] = (1000 * ((await threadSeconds(cdp)) - begun)) / out[name].length;
	}
	const { own, raster } = await traceFrames(cdp, () => wheel(page, canvas, { deltaX: 25 }, FRAMES));
	out.pan_own = own;
	out.pan_raster = raster;
	const begun = await threadSeconds(cdp);
	out.search = await search(page, kind);
	out.search_cpu = 1000 * ((await threadSeconds(cdp)) - begun);
	if (process.env.FIRN_BENCH_SHOTS) {
		await page.screenshot({ path: join(process.env.FIRN_BENCH_SHOTS, `${kind}-${made.nodes}.png`) });
	}
	await context.close();
	return out;
}

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const share = (all, part) => [...all].sort((a, b) => a - b)[Math.floor((all.length - 1) * part)];

const require = createRequire(join(root, "ui/package.json"));
const { chromium } = require("playwright-core");
const args = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking", "--disable-component-update", "--no-first-run"];
const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args });
const servers = { firn: await serve(join(root, "ui/dist")), speedscope: await serve(speedscope) };
try {
	for (const size of SIZES) {
		made = makeProfile(size);
		const all = { firn: [], speedscope: [] };
		for (let i = 0; i < RUNS; i++) {
			for (const kind of Object.keys(all)) {
				all[kind].push(await measure(browser, kind, servers[kind].url));
			}
		}
		const note = `${made.nodes} frames of ${made.samples} stacks, ${RUNS} runs in turns, 1440x900, no GPU`;
		const print = (name, take) => {
			const [firn, other] = [take(all.firn), take(all.speedscope)];
			console.log(JSON.stringify({ name: `ui.${size / 1000}k.${name}`, value: Number(firn.toFixed(2)), unit: "ms", against: `speedscope: ${other.toFixed(2)} ms`, ratio: Number((firn / other).toFixed(3)), note }));
		};
		print("load", (runs) => median(runs.map((one) => one.load)));
		print("load_cpu", (runs) => median(runs.map((one) => one.load_cpu)));
		for (const name of ["pan", "magnify"]) {
			print(`${name}_frame`, (runs) => median(runs.flatMap((one) => one[name])));
			print(`${name}_frame_95`, (runs) => share(runs.flatMap((one) => one[name]), 0.95));
			print(`${name}_cpu`, (runs) => median(runs.map((one) => one[`${name}_cpu`])));
		}
		print("pan_own", (runs) => median(runs.map((one) => one.pan_own)));
		print("pan_raster", (runs) => median(runs.map((one) => one.pan_raster)));
		print("search", (runs) => median(runs.map((one) => one.search)));
		print("search_cpu", (runs) => median(runs.map((one) => one.search_cpu)));
	}
} finally {
	await browser.close();
	for (const server of Object.values(servers)) {
		server.stop();
	}
}
