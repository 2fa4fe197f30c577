#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The same pprof file of 100,000 and of 1,000,000 frames in firn's page and in speedscope, in the same
// browser and in turns: loaded (from the drop of the file to the painted graph), panned (sideways, with
// a wheel event in each frame), magnified, searched. One JSON object a line, as a ratio to speedscope:
//   FIRN_SPEEDSCOPE=FOLDER bench/bench_ui_speedscope.mjs
// FOLDER is dist/release of npm's speedscope, which is no part of this tree. Without a GPU, Chromium paints
// firn's canvas itself and speedscope's WebGL by SwiftShader; the time of the page's main thread (`_cpu`,
// `_own`, `_most`) is what a GPU would not change. On a machine that does other work, too, start it by
// `chrt -r 1`: else a late frame is one that waited for a processor. FIRN_BENCH_FRAMES are the sizes, FIRN_BENCH_RUNS the turns.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser } from "../tests/e2e/harness.mjs";
import { makeProfile } from "./ui_profile.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const speedscope = process.env.FIRN_SPEEDSCOPE ?? "";
const SIZES = (process.env.FIRN_BENCH_FRAMES ?? "100000,1000000").split(",").map(Number);
const RUNS = Number(process.env.FIRN_BENCH_RUNS ?? 3);
const FRAMES = 120;
/** A frame of 60 a second, and what the clock of a frame may be late. */
const FRAME_MS = 1000 / 60 + 1;
/** A slow page gets no more than this for its frames, in milliseconds. */
const FRAMES_MS = 5000;

if (!existsSync(join(speedscope, "index.html")) || !existsSync(join(root, "ui/node_modules"))) {
	console.error("bench_ui_speedscope: skipped, FIRN_SPEEDSCOPE names no dist/release of speedscope, or ui/node_modules is missing");
	process.exit(0);
}

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
let made = null;

/** Serves a folder, and the profile at /made.pb.gz. */
async function serve(folder) {
	const server = createServer((request, response) => {
		const name = new URL(request.url, "http://x").pathname.slice(1) || "index.html";
		const path = join(folder, name);
		const there = name === "made.pb.gz" || (/^[\w.-]+$/.test(name) && existsSync(path));
		response.writeHead(there ? 200 : 404, { "content-type": TYPES[extname(name)] ?? "application/octet-stream" });
		response.end(!there ? "" : name === "made.pb.gz" ? made.bytes : readFileSync(path));
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
		window.made = new File([await (await fetch("made.pb.gz")).blob()], "made.pb.gz");
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
 * paint commands), what the browser's rasterizer and compositor add to it, which a GPU would do, and the page's
 * longest task.
 */
async function traceFrames(cdp, work) {
	const events = [];
	const listen = ({ value }) => events.push(...value);
	cdp.on("Tracing.dataCollected", listen);
	const categories = ["disabled-by-default-devtools.timeline", "toplevel", "__metadata"];
	await cdp.send("Tracing.start", { traceConfig: { includedCategories: categories, excludedCategories: ["*"] } });
	const frames = (await work())?.length ?? 1;
	const over = new Promise((done) => cdp.once("Tracing.tracingComplete", done));
	await cdp.send("Tracing.end");
	await over;
	cdp.off("Tracing.dataCollected", listen);
	const names = new Map(events.filter((e) => e.name === "thread_name").map((e) => [`${e.pid} ${e.tid}`, e.args.name]));
	const sum = (wanted) =>
		events
			.filter((e) => e.name === "ThreadControllerImpl::RunTask" && wanted.test(names.get(`${e.pid} ${e.tid}`) ?? ""))
			.reduce((all, e) => all + (e.tdur ?? 0), 0) / 1000 / frames;
	const tasks = events.filter((e) => e.name === "ThreadControllerImpl::RunTask" && /^CrRendererMain/.test(names.get(`${e.pid} ${e.tid}`) ?? ""));
	const most = tasks.reduce((longest, e) => Math.max(longest, e.tdur ?? 0), 0) / 1000;
	return { own: sum(/^CrRendererMain/), raster: sum(/^(Compositor|VizCompositor|CrGpuMain|ThreadPool)/), most };
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
	const { own, raster, most } = await traceFrames(cdp, () => wheel(page, canvas, { deltaX: 25 }, FRAMES));
	Object.assign(out, { pan_own: own, pan_raster: raster, pan_most: most });
	const begun = await threadSeconds(cdp);
	const searched = await traceFrames(cdp, async () => {
		out.search = await search(page, kind);
	});
	out.search_cpu = 1000 * ((await threadSeconds(cdp)) - begun);
	out.search_most = searched.most;
	if (process.env.FIRN_BENCH_SHOTS) {
		await page.screenshot({ path: join(process.env.FIRN_BENCH_SHOTS, `${kind}-${made.nodes}.png`) });
	}
	await context.close();
	return out;
}

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const share = (all, part) => [...all].sort((a, b) => a - b)[Math.floor((all.length - 1) * part)];
/** How many of a hundred frames took no longer than one of 60 a second. */
const inTime = (all) => (100 * all.filter((ms) => ms <= FRAME_MS).length) / all.length;

const browser = await openBrowser(root);
if (!browser) {
	console.error("bench_ui_speedscope: skipped, Chromium is not installed");
	process.exit(0);
}
const servers = { firn: await serve(join(root, "ui/dist")), speedscope: await serve(speedscope) };
try {
	for (const size of SIZES) {
		made = makeProfile(size, Date.now());
		const all = { firn: [], speedscope: [] };
		for (let i = 0; i < RUNS; i++) {
			for (const kind of Object.keys(all)) {
				all[kind].push(await measure(browser, kind, servers[kind].url));
			}
		}
		const note = `${made.nodes} frames of ${made.stacks} stacks, ${RUNS} runs in turns, 1440x900, no GPU`;
		const print = (name, take, unit = "ms") => {
			const [firn, other] = [take(all.firn), take(all.speedscope)];
			console.log(JSON.stringify({ name: `ui.${size / 1000}k.${name}`, value: Number(firn.toFixed(2)), unit, against: `speedscope: ${other.toFixed(2)} ${unit}`, ratio: Number((firn / other).toFixed(3)), note }));
		};
		print("load", (runs) => median(runs.map((one) => one.load)));
		print("load_cpu", (runs) => median(runs.map((one) => one.load_cpu)));
		for (const name of ["pan", "magnify"]) {
			print(`${name}_frame`, (runs) => median(runs.flatMap((one) => one[name])));
			print(`${name}_frame_95`, (runs) => share(runs.flatMap((one) => one[name]), 0.95));
			print(`${name}_in_time`, (runs) => inTime(runs.flatMap((one) => one[name])), "% of frames");
			print(`${name}_cpu`, (runs) => median(runs.map((one) => one[`${name}_cpu`])));
		}
		for (const name of ["pan_own", "pan_raster", "pan_most", "search", "search_cpu", "search_most"]) {
			print(name, (runs) => median(runs.map((one) => one[name])));
		}
	}
} finally {
	await browser.close();
	for (const server of Object.values(servers)) {
		server.stop();
	}
}
