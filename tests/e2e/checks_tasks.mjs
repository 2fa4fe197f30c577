// SPDX-License-Identifier: Apache-2.0
// What people come for, in as few clicks as docs/from-parca.md says.
import assert from "node:assert/strict";
import { copied, named, open, painted, parameter, until, waitParameter } from "./page.mjs";

/** Counts what the mouse presses from now on; the count is asked for later. */
async function countClicks(page) {
	await page.evaluate(() => {
		window.clicks = 0;
		window.addEventListener("pointerdown", () => window.clicks++, true);
	});
	return () => page.evaluate(() => window.clicks);
}

/** A name that the table has, of a function that others call. */
async function someCallee(page) {
	const rows = page.locator("tbody tr .cell-name");
	for (let i = 0; i < (await rows.count()); i++) {
		const name = (await rows.nth(i).textContent()).trim();
		if (/^\w{4,30}$/.test(name)) {
			return name;
		}
	}
	throw new Error("the table has no plain name");
}

export const taskChecks = {
	async "the hottest function of a service: one click"({ page, url }) {
		await open(page, url, "?paused=1");
		const clicks = await countClicks(page);
		const service = page.locator(".legend-row").nth(1);
		const name = (await service.locator(".legend-name").textContent()).trim();
		await service.click();
		await page.waitForFunction(() => new URL(location.href).searchParams.get("query")?.includes('comm="'));
		assert.ok(parameter(page, "query").includes(name), `${parameter(page, "query")} of ${name}`);
		await painted(page);
		await page.waitForSelector("tbody tr .cell-name");
		assert.equal(await page.locator("th[aria-sort=descending]").textContent().then((t) => /^Self/.test(t)), true);
		assert.equal(await clicks(), 1);
	},

	async "what changed since yesterday: two clicks"({ page, url }) {
		await open(page, url, "?paused=1");
		const clicks = await countClicks(page);
		await page.locator(".rail").getByText("Compare").click();
		await page.getByRole("button", { name: "Day", exact: true }).click();
		await waitParameter(page, "base_shift", "1d");
		await page.waitForSelector(".diff-body, [data-testid=no-base]");
		assert.equal(await clicks(), 2);
	},

	async "who calls a function most: two clicks and its name"({ page, url }) {
		await open(page, url, "?paused=1");
		await named(page);
		const name = await someCallee(page);
		const clicks = await countClicks(page);
		await page.keyboard.press("/");
		await page.keyboard.insertText(name);
		const row = page.locator("tbody tr", { has: page.locator(".cell-name", { hasText: new RegExp(`^\\s*${name}\\s*$`) }) }).first();
		await waitParameter(page, "search", name);
		await until(async () => {
			const rows = await page.locator("tbody tr .cell-name").allTextContents();
			const ok = rows.length > 0 && rows.every((text) => text.toLowerCase().includes(name.toLowerCase()));
			return { ok, said: rows.slice(0, 5).join(", ") };
		}, "the rows have the name"); // else the row moves away under the mouse
		await row.click({ button: "right" });
		await page.getByRole("menuitem", { name: "Show its callers" }).click();
		await waitParameter(page, "focus", "set");
		// the table leaves out what a name takes
		assert.ok(parameter(page, "focus").includes(name), `${parameter(page, "focus")} for ${name}`);
		await waitParameter(page, "invert", "1");
		await painted(page);
		assert.equal(await clicks(), 2);
	},

	async "this exact view for a colleague: one click"({ page, url }) {
		const clipboard = await copied(page);
		await open(page, url, "?view=flame&search=main");
		const clicks = await countClicks(page);
		await page.getByRole("button", { name: "Copy link" }).click();
		let text = "";
		await until(async () => {
			text = await clipboard();
			return { ok: text.startsWith(url), said: text };
		}, "copied");
		assert.equal(await clicks(), 1);
		assert.ok(Date.parse(new URL(text).searchParams.get("to")) > 0 && text.includes("search=main"), text);
	},
};
