#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Pictures of every view of the page, to be looked at by somebody:
//   tools/tour.mjs FOLDER [--url http://HOST:PORT] [--only VIEW,VIEW] [--states STATE,STATE] [--sizes 390-dark,...]
// Over the server of made samples, or over another. Each view is taken as it is usually seen at three widths
// in both themes; and over made samples, whose answers are changed on their way, in each of the states
// STATES at 1440 pixels in the light theme and at 390 in the dark one (--sizes: at others).
// FOLDER/VIEW-STATE-WIDTH-THEME.png; `montage` of imagemagick makes sheets of them. Nothing is compared: a picture
// says what it shows only to who looks at it. What is wider than its window is said on stdout.
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, startMock } from "../tests/e2e/harness.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const WIDTHS = { 1440: 900, 1920: 1080, 390: 844 };
const THEMES = ["light", "dark"];
/** Somebody waits for what has come until now, in milliseconds. */
const SETTLE_MS = 700;
const LANES = 3;
const SHOP = "parca_agent:samples:count:cpu:nanoseconds:delta";

/** Opens what a button of the bar opens. */
function openPopover(name) {
	return (page) => page.locator(`.popover.${name} > button`).click();
}

/** What stands for a view, and what is in it once it is there. */
const VIEWS = {
	both: ["?paused=1", ".top tbody tr"],
	graph: ["?paused=1&view=flame", ".flame-overlay"],
	table: ["?paused=1&view=table", ".top tbody tr"],
	zoomed: ["?paused=1&search=a", ".flame-overlay", zoomIn],
	filtered: ["?paused=1&filter=only:name:a&filter=hide:binary:libc&group=binary", "[data-testid=filters]"],
	callers: ["?paused=1&invert=1", ".flame-overlay"],
	sandwich: ["?paused=1", ".sandwich", sandwich],
	calls: ["?paused=1&view=calls", ".call-box"],
	time: ["?paused=1&view=time", ".strip"],
	compare: ["?page=compare&paused=1&base_from=now-30m&base_to=now-15m", "[data-testid=verdicts]"],
	source: ["?paused=1&code=main&code_file=/srv/app/serve.py", ".code-table, .code .blank"],
	assembly: ["?paused=1&code=main&code_as=asm", ".code-table, .code .blank"],
	fleet: ["?page=fleet", ".spark"],
	agents: ["?page=agents", ".page-panel .health"],
	targets: ["?page=targets", ".page-panel h2"],
	symbols: ["?page=symbols", ".page-head h2"],
	store: ["?page=store", ".tiles"],
	menu: ["?paused=1", ".menu", frameMenu],
	builder: ["?paused=1", ".builder .popover-panel", openPopover("builder")],
	saved: ["?paused=1", ".saved-menu .popover-panel", openPopover("saved-menu")],
	save: ["?paused=1", ".popover-panel", (page) => page.locator("[title='Save or send what is seen']").click()],
	range: ["?paused=1", ".popover-panel", openPopover("range")],
	help: ["?paused=1", "dialog", (page) => page.keyboard.press("?")],
	file: ["", ".flame-overlay", dropFile],
	snapshot: ["?shared=snapshotsnapshotsnapshotaaaa", ".flame-overlay"],
};
/** Views of the list that ask nothing of their own. */
const CALM = new Set(["menu", "builder", "saved", "save", "range", "help", "zoomed"]);

/** What the server answers in each state to what is asked for; null: as it does. */
const STATES = {
	loading: { answer: () => "hold" },
	empty: { answer: emptyOf },
	partial: { answer: (path) => (/series|top|labels|annotations/.test(path) ? failure(500, "the part 000017 is damaged: it lies in quarantine") : null) },
	error: { answer: (path) => (/types$/.test(path) ? null : failure(500, "the part 000017 is damaged: it lies in quarantine")) },
	large: { answer: (path) => (/types$/.test(path) ? null : failure(422, "the answer would have 5000000 nodes, and 4000000 is the most", "LIMIT")) },
	busy: { answer: (path) => (/types$/.test(path) ? null : failure(503, "24 queries are under way, try again", "UNAVAILABLE")) },
	gone: { answer: () => "abort" },
	left: { answer: () => null, then: "abort" },
};

function failure(status, error, code = "INTERNAL") {
	return { status, json: { error, code } };
}

function emptyOf(path) {
	if (/\/types$/.test(path)) return null;
	if (/\/agents$/.test(path)) return { json: { agents: [] } };
	if (/\/targets$/.test(path)) return { json: { targets: {}, discoveries: [] } };
	if (/\/views$/.test(path)) return { json: { views: [] } };
	return null;
}

async function zoomIn(page) {
	const box = await page.locator(".flame-overlay").boundingBox();
	await page.mouse.click(box.x + box.width * 0.1, box.y + 69);
	await page.mouse.move(box.x + box.width * 0.3, box.y + 110);
}

async function frameMenu(page) {
	const box = await page.locator(".flame-overlay").boundingBox();
	await page.mouse.click(box.x + box.width * 0.1, box.y + 49, { button: "right" });
}

async function sandwich(page) {
	await frameMenu(page);
	await page.getByRole("menuitem", { name: /allers and callees/ }).first().click();
}


async function dropFile(page) {
	await page.evaluate(() => {
		const text = "shop 1;main;serve;parse_request 40\nshop 1;main;serve;render;escape 25\nshop 1;main;idle 12\n";
		const data = new DataTransfer();
		data.items.add(new File([text], "shop.folded"));
		for (const type of ["dragover", "drop"]) {
			window.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
		}
	});
}

function argument(name) {
	const at = process.argv.indexOf(`--${name}`);
	return at < 0 ? "" : process.argv[at + 1];
}

/** Changes answers on their way as a state says. */
async function change(page, mode) {
	await page.route(/\/(api|shared|metrics)\b/, async (route) => {
		const said = mode.now?.(new URL(route.request().url()).pathname) ?? null;
		if (said === "abort") {
			await route.abort("connectionrefused");
		} else if (said !== "hold") {
			await (said ? route.fulfill(said) : route.continue());
		}
	});
}

async function take(browser, url, folder, [view, state, width, theme]) {
	const [query, shown, act] = VIEWS[view];
	const context = await browser.newContext({
		viewport: { width: Number(width), height: WIDTHS[width] },
		colorScheme: theme,
		hasTouch: width === "390",
		isMobile: width === "390",
	});
	const page = await context.newPage();
	page.setDefaultTimeout(60_000);
	const made = STATES[state];
	const mode = { now: made?.answer };
	await change(page, mode);
	const name = `${view}-${state}-${width}-${theme}`;
	const none = state === "empty" ? `${query.includes("?") ? "&" : "?"}query=${encodeURIComponent(`${SHOP}{comm="no-such"}`)}` : "";
	try {
		await page.goto(`${url}/${query}${none}`);
		if (!made || made.then) {
			await page.waitForSelector(act ? ".flame-overlay, .waiting" : shown);
			await page.waitForTimeout(SETTLE_MS);
			await act?.(page);
			await page.waitForSelector(shown);
		} else if (view === "file") {
			await page.waitForTimeout(SETTLE_MS);
			await act(page);
		}
		if (made?.then) {
			mode.now = () => made.then;
			await page.getByRole("button", { name: "Refresh" }).click({ timeout: 1000 }).catch(() => {});
			await page.waitForTimeout(4000);
		}
	} catch (e) {
		console.log(`${name}: ${String(e.message).split("\n")[0]}`);
	}
	await page.waitForTimeout(made ? 3 * SETTLE_MS : SETTLE_MS);
	const wide = await page.evaluate(() => document.documentElement.scrollWidth);
	if (wide > Number(width)) {
		console.log(`${name}: ${wide} pixels wide`);
	}
	await page.screenshot({ path: join(folder, `${name}.png`) });
	await page.unrouteAll({ behavior: "ignoreErrors" });
	await context.close();
}

const folder = process.argv[2];
if (!folder || folder.startsWith("--")) {
	console.error("usage: tools/tour.mjs FOLDER [--url URL] [--only VIEW,VIEW] [--states STATE,STATE] [--sizes WIDTH-THEME,...]");
	process.exit(2);
}
mkdirSync(folder, { recursive: true });
const other = argument("url");
const views = argument("only") ? argument("only").split(",") : Object.keys(VIEWS);
const states = argument("states") ? argument("states").split(",") : ["usual", ...(other ? [] : Object.keys(STATES))];
const sizes = argument("sizes") ? argument("sizes").split(",") : null;
const wanted = [];
for (const view of views) {
	for (const state of states) {
		for (const width of Object.keys(WIDTHS)) {
			for (const theme of THEMES) {
				const usual = state === "usual" || ["1440-light", "390-dark"].includes(`${width}-${theme}`);
				const isOne = sizes ? sizes.includes(`${width}-${theme}`) : usual;
				if (isOne && (state === "usual" || !CALM.has(view))) {
					wanted.push([view, state, width, theme]);
				}
			}
		}
	}
}
const server = other ? { url: other, stop() {} } : await startMock(root, []);
const browser = await openBrowser(root);
try {
	const next = wanted.values();
	const lane = async () => {
		for (const one of next) {
			await take(browser, server.url, folder, one);
		}
	};
	await Promise.all(Array.from({ length: LANES }, lane));
	console.log(`${wanted.length} pictures in ${folder}`);
} finally {
	await browser.close();
	await server.stop();
}
