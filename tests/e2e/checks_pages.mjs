// SPDX-License-Identifier: Apache-2.0
// Checks of the pages of tables: fleet, agents, targets, symbols, store.
import assert from "node:assert/strict";
import { fits, painted, parameter, until, waitParameter } from "./page.mjs";

const rows = (page) => page.locator(".page-table tbody tr");

export const pagesChecks = {
	async "the fleet: services with share, trend and hottest function, each a way on"({ page, url }) {
		await page.goto(`${url}/?page=fleet`);
		await page.waitForSelector(".page-table .spark");
		const shares = await page.locator(".share-text").allTextContents();
		assert.ok(shares.length > 0 && shares.every((s) => /%$/.test(s)), shares.join(", "));
		await until(async () => {
			const top = await page.locator(".service-top").first().textContent();
			return { ok: top.length > 1 && top !== "…", said: top };
		}, "the hottest function of the first");
		const link = page.locator(".service-name a").first();
		const name = await link.textContent();
		await page.locator(".service-name").getByText(name, { exact: true }).first().click(); // rows may change places
		await waitParameter(page, "page", null);
		await painted(page);
		assert.ok(parameter(page, "query").includes(name));
		await page.goBack();
		await waitParameter(page, "page", "fleet");
		await page.locator(".page-table td:nth-child(5) a").first().click();
		await waitParameter(page, "page", "compare");
	},

	async "agents say when they last pushed, with what error, and which runtimes run"({ page, url }) {
		await page.goto(`${url}/?page=agents`);
		await page.waitForSelector(".health");
		assert.match(await rows(page).first().textContent(), /(good|late|error).* ago/);
		const version = await rows(page).first().locator("td:nth-child(5)").textContent();
		assert.match(version, /^firn \d+\.\d+/);
		await until(async () => {
			const cell = await rows(page).first().locator("td:nth-child(7)").textContent();
			return { ok: /%|no samples/.test(cell), said: cell };
		}, "runtimes");
		await page.waitForSelector(".tiles");
		assert.match(await page.locator(".tiles").textContent(), /Samples taken.*Samples lost/);
	},

	async "targets, or how to have some"({ page, url }) {
		await page.goto(`${url}/?page=targets`);
		await page.waitForSelector(".health, [data-testid=no-targets]");
		const text = await page.locator("main").textContent();
		assert.match(text, /scrape_configs|Last scrape/);
	},

	async "targets: when the next scrape is, labels before relabelling, a discovery that fails"({ page, url }) {
		await page.goto(`${url}/?page=targets`);
		await page.waitForSelector(".health");
		assert.match(await rows(page).first().textContent(), /in \d+ s/);
		assert.equal(await page.getByText("__address__=").first().isVisible(), false);
		await page.getByText("before relabelling").first().click();
		assert.equal(await page.getByText("__address__=").first().isVisible(), true);
		const web = page.getByRole("region", { name: "web" });
		assert.match(await web.getByRole("alert").textContent(), /dns_sd_configs: web.example: no answer/);
	},

	async "code without names, with the command that mends it"({ page, url }) {
		await page.goto(`${url}/?page=symbols`);
		await page.waitForSelector(".page-head h2");
		let head = "";
		await until(async () => {
			head = await page.locator(".page-head h2").first().textContent();
			return { ok: /All functions have names|without a name/.test(head), said: head };
		}, "an answer");
		if (/All functions have names/.test(head)) {
			return;
		}
		assert.match(head, /% of .* without a name/);
		await page.waitForSelector(".command");
		const commands = (await page.locator(".command code").allTextContents()).concat(await page.locator(".command").evaluateAll((all) => all.map((one) => one.title).filter((t) => t !== "Copy")));
		assert.ok(commands.every((c) => /firn debuginfo upload|kptr_restrict|perf-basic-prof|jit_debug|JPperf/.test(c)), commands.join("; "));
	},

	async "the store: size, rates, oldest, and each profile type"({ page, url }) {
		await page.goto(`${url}/?page=store`);
		await page.waitForSelector(".tiles");
		await until(async () => {
			const text = await page.locator(".tiles").first().textContent();
			return { ok: /On disk.*Oldest sample.* ago.*Samples come in\d[\d,]*\/s/.test(text), said: text };
		}, "the oldest sample, and a rate of two readings");
		await page.waitForSelector("main:has-text(':nanoseconds:delta')");
	},

	async "a server that is gone is said on each page, with the age of what is shown"({ page, context, url }) {
		page.expected.push("ERR_", "Failed to load");
		for (const name of ["agents", "store"]) {
			await page.goto(`${url}/?page=${name}`);
			await page.waitForSelector(".page-panel .page-head");
			await context.setOffline(true);
			await page.waitForSelector(".page-stale", { timeout: 60_000 });
			assert.match(await page.locator(".page-stale").first().textContent(), /does not answer: this is as it was .* ago/);
			await context.setOffline(false);
			await page.waitForSelector(".page-stale", { state: "detached", timeout: 60_000 });
		}
	},

	async "no page is wider than a phone"({ page, url }) {
		await page.setViewportSize({ width: 390, height: 800 });
		for (const name of ["fleet", "agents", "targets", "symbols", "store", "compare", "explore&view=calls"]) {
			await page.goto(`${url}/?page=${name}`);
			await page.waitForSelector(name.includes("calls") ? ".calls-scroll" : ".page-panel, .profile");
			await fits(page, 390, name);
		}
	},
};
