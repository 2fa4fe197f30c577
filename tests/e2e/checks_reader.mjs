// SPDX-License-Identifier: Apache-2.0
// The page does not fight its reader: refreshes, refusals, a server that goes, addresses of others.
import assert from "node:assert/strict";
import { hoverName, named, open, painted, someFrame, until } from "./page.mjs";

/** Counts the answers to a question; `waits()`: one is on its way. */
function answersOf(page, path) {
	let asked = 0;
	let count = 0;
	const isOurs = (request) => (new URL(request.url()).pathname === path ? 1 : 0);
	page.on("request", (request) => {
		asked += isOurs(request);
	});
	page.on("requestfinished", (request) => {
		count += isOurs(request);
	});
	page.on("requestfailed", (request) => {
		asked -= isOurs(request);
	});
	return { count: () => count, waits: () => asked > count };
}

const textOf = (page, selector) => page.locator(selector).textContent();

export const readerChecks = {
	async "a live refresh keeps tooltip, menu, focus and the place in the search"({ page, url }) {
		await page.clock.install();
		await open(page, url);
		await named(page);
		const flames = answersOf(page, "/api/flamegraph");
		const beats = answersOf(page, "/api/types");
		// At least `ms` of the page's clock, and as long as it takes until both were asked for again. The clock
		// stands while a graph is on its way: one that seems to take long is asked for less often.
		const pass = async (ms) => {
			const before = [flames.count(), beats.count()];
			const step = ms / 8;
			let passed = 0;
			await until(async () => {
				if (!flames.waits()) {
					await page.clock.fastForward(step);
					passed += step;
				}
				const ok = passed >= ms && flames.count() > before[0] && beats.count() > before[1];
				return { ok, said: `${passed} ms, ${flames.count()} graphs, ${beats.count()} of the types` };
			}, "a refresh");
		};
		const name = await hoverName(page, await someFrame(page, 3));
		await pass(16_000);
		await page.waitForSelector("[data-testid=held]");
		assert.equal(await textOf(page, ".tooltip-name"), name, "the tooltip stays");
		await page.focus(".flame-scroll");
		await page.keyboard.press("m");
		await page.waitForSelector("[role=menu]");
		await pass(90_000);
		assert.equal(await page.locator("[role=menu]").count(), 1, "the menu stays");
		await page.keyboard.press("Escape");
		for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) {
			await page.keyboard.press(key);
		}
		await page.waitForFunction(() => /depth 2/.test(document.querySelector("#flame-live").textContent));
		const focus = (await textOf(page, "#flame-live")).split(",")[0];
		await page.mouse.move(1, 1);
		await page.waitForSelector("[data-testid=held]", { state: "detached" });
		assert.equal((await textOf(page, "#flame-live")).split(",")[0], focus, "the focus stays");
		await page.fill("[aria-label='Search functions']", "e");
		await page.waitForSelector("[data-testid=search-share]:has-text('matched')");
		await page.keyboard.press("Enter");
		await page.waitForSelector(".search-place:has-text('1 of')");
		await page.keyboard.press("Enter");
		await page.waitForSelector(".search-place:has-text('2 of')");
		const match = (await textOf(page, "#flame-live")).split(",")[0];
		await pass(90_000);
		await page.waitForSelector("[data-testid=held]", { state: "detached" });
		assert.match(await textOf(page, ".search-place"), /^\d+ of/, "the place in the search stays");
		assert.equal((await textOf(page, "#flame-live")).split(",")[0], match);
	},

	async "a hidden table is not asked for, nor one that the graph has"({ page, url }) {
		const tops = answersOf(page, "/api/top");
		await open(page, url, "?view=flame");
		await named(page);
		assert.equal(tops.count(), 0);
	},

	async "a refused answer is asked for again quietly"({ page, url }) {
		page.expected.push("503", "429");
		const statuses = [503, 429, 503, 503];
		await page.route("**/api/*", (route) => {
			const status = route.request().url().includes("/api/types") ? 0 : statuses.pop();
			return status
				? route.fulfill({ status, json: { error: "try again", code: "UNAVAILABLE" } })
				: route.continue();
		});
		await open(page, url);
		await page.waitForSelector(".legend-row");
		assert.equal(statuses.length, 0);
		assert.equal(await page.locator("[data-testid=problem]").count(), 0);
	},

	async "a server that stops is noticed, with the age of what is shown"({ page, context, url }) {
		page.expected.push("ERR_INTERNET_DISCONNECTED");
		await page.clock.install();
		await open(page, url, "?from=now-7d");
		await named(page);
		await page.waitForSelector("[data-testid=live]:has-text('Live')");
		const top = (await page.locator(".timeline").boundingBox()).y;
		await context.setOffline(true);
		await page.clock.fastForward(5000);
		await page.waitForSelector("[data-testid=live]:has-text('No answer')");
		await until(async () => {
			await page.clock.fastForward(4000);
			return { ok: (await page.locator("[data-testid=problem]").count()) > 0, said: "no banner" };
		}, "the banner comes");
		assert.match(await textOf(page, "[data-testid=problem]"), /does not answer.* from .* ago/);
		assert.equal((await page.locator(".timeline").boundingBox()).y, top, "nothing moves");
		await context.setOffline(false);
		// Small steps: what is asked again has LATE_MS of this clock, however slow the machine is.
		await until(async () => {
			await page.clock.fastForward(1000);
			return { ok: (await page.locator("[data-testid=problem]").count()) === 0, said: "a banner" };
		}, "the banner goes");
		await page.waitForSelector("[data-testid=live]:has-text('Live')");
	},

	async "no address hangs the page, and those of other tools work"({ page, url }) {
		const ms = Date.now();
		const wrong = ["from=abc", "from=yesterday", "from=2026-13-99", "to=now-1y", "from=now-x"];
		for (const query of wrong) {
			await page.goto(`${url}/?${query}`);
			await page.waitForSelector("[data-testid=bad-range]");
		}
		await page.getByRole("button", { name: "The last 15 minutes" }).click();
		await painted(page);
		const right = [
			"from=now-100y",
			"from=now/d&to=now/d",
			"from=now-1M",
			"from=now-7d/d",
			`from=${ms - 900_000}&to=${ms + 60_000}`,
			`from=${Math.floor(ms / 1000) - 900}&to=${Math.floor(ms / 1000) + 60}`,
		];
		for (const query of right) {
			await open(page, url, `?view=flame&${query}`);
		}
	},
};
