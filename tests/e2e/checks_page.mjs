// SPDX-License-Identifier: Apache-2.0
// What a person does on the page, one check each. `page` is a fresh page of a fresh browser.
import assert from "node:assert/strict";
import { startMock } from "./harness.mjs";
import { ask, fits, frameAt, named, open, painted, parameter, someFrame, until, waitParameter } from "./page.mjs";

/** Checks that need samples or faults that only the server of made samples has. */
export const mockOnly = new Set([
	"fills by itself when the first samples arrive",
	"symbols that are pending are asked for again",
	"another profile type",
	"targets: when the next scrape is, labels before relabelling, a discovery that fails",
	// a real host has functions of one name in many binaries, and a table shows the rows in sight
	"a filter from the menu holds in graph, table and comparison",
]);

export const pageChecks = {
	async "fills by itself when the first samples arrive"({ page, root }) {
		const late = await startMock(root, ["--empty"]);
		try {
			await page.goto(late.url);
			await page.waitForSelector("[data-testid=waiting]");
			const text = await page.locator("[data-testid=waiting]").textContent();
			assert.match(text, /Nothing has arrived yet/);
			assert.match(text, /within ten seconds/);
			late.fill();
			await painted(page);
			assert.equal(await page.locator("[data-testid=waiting]").count(), 0);
			page.expected.push(late.url);
		} finally {
			await page.goto("about:blank"); // asks nothing of a server that is gone
			await late.stop();
		}
	},

	async "chart, graph and table have something in them"({ page, url }) {
		await open(page, url);
		await page.waitForSelector(".legend-row");
		await page.waitForSelector("tbody tr .cell-number");
		await page.waitForSelector("[data-testid=figures]:has-text('samples')");
		assert.ok((await page.locator(".chip").count()) > 0, "binaries have a legend");
		const colours = await page.evaluate(() => {
			const canvas = document.querySelector(".flame-canvas");
			const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 60);
			const found = new Set();
			for (let i = 0; i < data.length; i += 4) {
				found.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
			}
			return found.size;
		});
		assert.ok(colours > 5, `${colours} colours in the first rows of the graph`);
	},

	async "a selector is completed from the keyboard"({ page, url }) {
		await open(page, url);
		await page.click("[aria-label=Selector]");
		// options of the whole text, not of half a word
		const options = (pattern) =>
			until(async () => {
				const all = await page.locator("[role=option]").allTextContents();
				return { ok: all.length > 0 && all.every((text) => pattern.test(text)), said: all.join(", ") };
			}, `options ${pattern}`);
		await page.keyboard.type("com");
		await options(/^\s*com/);
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("Enter");
		await until(async () => {
			const said = await page.inputValue("[aria-label=Selector]");
			return { ok: said === "comm=", said };
		}, "the label");
		await options(/^\s*(?!comm\b)/);
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("Tab");
		let text = "";
		await until(async () => {
			text = await page.inputValue("[aria-label=Selector]");
			return { ok: /^comm="[^"]+"$/.test(text), said: text };
		}, "the value");
		await page.keyboard.press("Enter");
		await waitParameter(page, "query", "set");
		assert.ok(parameter(page, "query").endsWith(`{${text}}`));
		await page.waitForFunction(() => document.querySelectorAll(".legend-row").length === 1);
	},

	async "Esc closes the completions and keeps the text"({ page, url }) {
		await open(page, url);
		await page.click("[aria-label=Selector]");
		await page.keyboard.type("com");
		await page.waitForSelector("[role=option]");
		await page.keyboard.press("Escape");
		await page.waitForSelector("[role=option]", { state: "detached" });
		assert.equal(await page.inputValue("[aria-label=Selector]"), "com");
	},

	async "a wrong selector gets the server's sentence"({ page, url }) {
		page.expected.push("400");
		await open(page, url);
		await page.fill("[aria-label=Selector]", "comm=");
		await page.keyboard.press("Enter");
		await page.waitForSelector(".selector-error");
		assert.match(await page.locator(".selector-error").textContent(), /expected|value/);
		await page.fill("[aria-label=Selector]", "");
		await page.keyboard.press("Enter");
		await page.waitForSelector(".selector-error", { state: "detached" });
	},

	async "a click on a name beside the chart asks for its samples only"({ page, url }) {
		await open(page, url, "?paused=1"); // the rows stay in their order
		const row = page.locator(".legend-row").nth(1);
		const name = await row.locator(".legend-name").textContent();
		await row.click();
		await page.waitForFunction(() => document.querySelectorAll(".legend-row").length === 1);
		assert.ok(parameter(page, "query").endsWith(`{comm="${name}"}`));
	},

	async "nothing found says why, and how to find more"({ page, url }) {
		await page.goto(`${url}/?query=${encodeURIComponent('{comm="no such program"}')}`);
		await page.waitForSelector("[data-testid=no-samples]", { timeout: 60_000 });
		assert.match(await page.locator("[data-testid=no-samples]").textContent(), /no such program/);
		const query = encodeURIComponent('{comm="no such program"}');
		const said = await ask(page, `${url}/api/top?query=${query}&required=1`);
		if (said.status() === 404) {
			await page.waitForSelector("[data-testid=reason]");
			/* Programs come and go between the two answers: their number may differ. */
			const plain = (text) => text.replace(/\d+/g, "N");
			const { error } = await said.json();
			const shown = await page.locator("[data-testid=reason]").textContent();
			assert.equal(plain(shown), plain(error));
		}
		await page.getByRole("button", { name: "Without the selector" }).click();
		await painted(page);
	},

	async "dragging in the chart chooses a range, and Esc goes back"({ page, url }) {
		await open(page, url);
		await page.waitForSelector(".legend-row");
		const before = await page.locator("[data-testid=figures] b").textContent();
		const box = await page.locator(".chart").boundingBox();
		const y = box.y + box.height / 2;
		await page.mouse.move(box.x + box.width * 0.8, y);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 });
		await page.mouse.up();
		await waitParameter(page, "select", "set");
		await page.waitForSelector("[data-testid=selection]");
		const [from, to] = parameter(page, "select")
			.split("~")
			.map((t) => Date.parse(t));
		assert.ok(to - from >= 10_000 && to - from < 300_000, `${to - from} ms`);
		assert.equal((to - from) % 10_000, 0, "whole steps");
		await page.waitForFunction(
			(text) =>
				document.querySelector("[data-testid=figures] b")?.textContent !== text ||
				document.querySelector("[data-testid=no-samples]"),
			before,
		);
		await page.keyboard.press("Escape");
		await waitParameter(page, "select", null);
	},

	async "dark and light, by the system and by choice"({ page, url }) {
		await page.emulateMedia({ colorScheme: "dark" });
		await open(page, url);
		const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
		const dark = await back();
		await page.emulateMedia({ colorScheme: "light" });
		await page.waitForFunction(
			(was) => getComputedStyle(document.body).backgroundColor !== was,
			dark,
		);
		await page.click("[aria-label^=Theme]");
		await page.waitForFunction(
			(was) => getComputedStyle(document.body).backgroundColor === was,
			dark,
		);
		await page.reload();
		await painted(page);
		assert.equal(await back(), dark, "the choice is kept");
	},

	async "a link brings everything back"({ page, context, url }) {
		await open(page, url, "?view=flame&by=node&chart=lines&from=now-1h");
		await named(page);
		const at = await someFrame(page, 3);
		await page.mouse.click(at.x, at.y);
		await waitParameter(page, "zoom", "set");
		await page.waitForFunction(() => document.querySelectorAll(".crumb").length >= 4);
		const crumbs = await page.locator(".crumbs").textContent();
		const link = page.url();
		const other = await context.newPage();
		await other.goto(link);
		await painted(other);
		await until(async () => {
			const said = await other.locator(".crumbs").textContent();
			return { ok: said === crumbs, said };
		}, `the path ${crumbs}`);
		assert.equal(await other.locator(".by select").inputValue(), "node");
		assert.match(await other.locator(".range-name").textContent(), /1 hour/);
		assert.equal(await other.locator(".table-scroll").count(), 0);
		assert.equal(other.url(), link);
	},

	async "time ranges: presets and two instants"({ page, url }) {
		await open(page, url);
		await page.click(".range > button");
		await page.getByRole("button", { name: "Last 1 hour" }).click();
		await waitParameter(page, "from", "now-1h");
		await page.click(".range > button");
		await page.fill(".range-form label:nth-child(1) input", "nonsense");
		await page.waitForSelector(".range-help:has-text('not a time')");
		await page.waitForSelector("button:disabled:text-is('Apply')");
		await page.fill(".range-form label:nth-child(1) input", "now-30m");
		await page.getByRole("button", { name: "Apply", exact: true }).click();
		await waitParameter(page, "from", "now-30m");
	},

	async "symbols that are pending are asked for again"({ page, root }) {
		const fresh = await startMock(root, []);
		try {
			// It is there for a moment only: whoever looks afterwards may come too late.
			const seen = page.waitForSelector("[data-testid=pending]");
			await Promise.all([seen, open(page, fresh.url, "?paused=1")]);
			await page.waitForSelector("[data-testid=pending]", { state: "detached" });
			page.expected.push(fresh.url);
		} finally {
			await page.goto("about:blank"); // asks nothing of a server that is gone
			await fresh.stop();
		}
	},

	async "another profile type"({ page, url }) {
		await open(page, url);
		await page.selectOption(".type select", { index: 1 });
		await page.waitForFunction(() =>
			/alloc/.test(document.querySelector(".timeline h2").textContent),
		);
		await until(async () => ({ ok: /^memory:alloc_space/.test(parameter(page, "query")), said: page.url() }), "in the URL");
	},

	async "an unknown profile type says which exist"({ page, url }) {
		await page.goto(`${url}/?query=nothing:of:this:kind:here:delta`);
		await page.waitForSelector("[data-testid=no-type]", { timeout: 60_000 });
		await page.getByRole("button", { name: /^CPU/ }).first().click();
		await painted(page);
		await page.waitForFunction(() => /^CPU, Last 15 minutes/.test(document.title));
	},

	async "help opens and closes from the keyboard"({ page, url }) {
		await open(page, url);
		await page.keyboard.press("?");
		await page.waitForSelector("dialog[open]");
		await page.keyboard.press("Escape");
		await page.waitForSelector("dialog[open]", { state: "detached" });
	},

	async "usable in 800, 390 and 320 pixels: nothing is wider than the window"({ page, url }) {
		await page.setViewportSize({ width: 800, height: 700 });
		await open(page, url);
		for (const width of [800, 390, 320]) {
			await page.setViewportSize({ width, height: 844 });
			await page.waitForFunction((w) => document.querySelector(".flame-canvas").clientWidth < w, width);
			await fits(page, width, `in ${width}`);
		}
		const chart = await page.locator(".chart").boundingBox();
		const legend = await page.locator(".legend").boundingBox();
		assert.ok(legend.y >= chart.y + chart.height, "the legend stands below the chart");
	},

	async "a finger that rests on a frame opens its menu, with its figures"({ browser, url }) {
		const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true });
		const page = await phone.newPage();
		try {
			await open(page, url, "?paused=1");
			const at = await frameAt(page, 1);
			const touch = await phone.newCDPSession(page);
			const point = { x: Math.round(at.x), y: Math.round(at.y) };
			await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [point] });
			await page.waitForSelector("[role=menu]");
			await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
			assert.match(await page.locator(".menu-note").textContent(), /Total .*%.*self/);
			assert.equal(parameter(page, "zoom"), null);
		} finally {
			await phone.close();
		}
	},

	async "the page holds its own policy"({ page, url }) {
		const response = await page.goto(url);
		const policy = response.headers()["content-security-policy"] ?? "";
		assert.match(policy, /default-src 'self'/);
		assert.ok(!policy.includes("unsafe"), policy);
		await painted(page);
	},
};
