// SPDX-License-Identifier: Apache-2.0
// Checks of the comparison: how one gets there, what is asked for, what graph and table say.
import assert from "node:assert/strict";
import { ask, frameAt, hoverName, open, painted, parameter, someFrame, until, waitParameter } from "./page.mjs";

/** Two programs compared: all of their own functions are new or gone. */
function twoPrograms(a, b) {
	const p = new URLSearchParams({ page: "compare", query: `{comm="${a}"}`, base_query: `{comm="${b}"}` });
	p.set("base_from", "now-15m");
	p.set("base_to", "now");
	p.set("paused", "1");
	return `?${p}`;
}

/** The two programs that ran most: others may have too few samples to compare. */
async function programs(page, url) {
	const query = (comm) => encodeURIComponent(`{comm=${JSON.stringify(comm)}}`);
	const { values } = await (await ask(page, `${url}/api/labels/comm/values`)).json();
	const sums = [];
	for (const comm of values) {
		const answer = await ask(page, `${url}/api/top?query=${query(comm)}&limit=100`);
		const rows = answer.ok() ? (await answer.json()).rows : [];
		sums.push([rows.reduce((sum, row) => sum + row.self, 0), comm]);
	}
	return sums.sort((a, b) => b[0] - a[0]).slice(0, 2).map(([, comm]) => comm);
}

/** The drag of a range in the chart, as shares of its width. */
async function drag(page, from, to, key) {
	await page.waitForSelector(".legend-row"); // before, the chart has no times
	const box = await page.locator(".chart-overlay").boundingBox();
	const y = box.y + box.height / 2;
	await page.mouse.move(box.x + box.width * from, y);
	if (key) {
		await page.keyboard.down(key);
	}
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * ((from + to) / 2), y);
	await page.mouse.move(box.x + box.width * to, y);
	await page.mouse.up();
	if (key) {
		await page.keyboard.up(key);
	}
}

/** Watches what is asked of the flame graph. */
function graphsOf(page) {
	const asked = [];
	page.on("request", (r) => {
		const u = new URL(r.url());
		if (u.pathname === "/api/flamegraph") {
			asked.push({ from: u.searchParams.get("from"), to: u.searchParams.get("to"), query: u.searchParams.get("query") });
		}
	});
	return asked;
}

export const compareChecks = {
	async "two clicks compare a range with the time before it"({ page, url }) {
		await open(page, url, "?paused=1");
		await drag(page, 0.7, 0.9);
		await waitParameter(page, "select", "set");
		const asked = graphsOf(page);
		await page.getByRole("button", { name: "Compare with before" }).click();
		await waitParameter(page, "page", "compare");
		const [from, to] = parameter(page, "select").split("~").map((t) => Date.parse(t));
		await until(async () => {
			const ok = asked.some((one) => Date.parse(one.to) === from && from - Date.parse(one.from) === to - from);
			return { ok, said: JSON.stringify(asked) };
		}, "the base ends where the range begins, and is as long");
		await page.goBack();
		await waitParameter(page, "page", null);
	},

	async "a second range is dragged with Shift, or on the page of the comparison"({ page, url }) {
		await open(page, url, "?paused=1");
		await drag(page, 0.3, 0.5, "Shift");
		await waitParameter(page, "page", "compare");
		await waitParameter(page, "base_from", "set");
		// a server that has just started may have no samples there
		await page.waitForSelector(".flame-overlay, [data-testid=no-base]", { timeout: 60_000 });
		const first = parameter(page, "base_from");
		await drag(page, 0.6, 0.8);
		await until(async () => ({ ok: parameter(page, "base_from") !== first, said: first }), "another base");
		assert.equal(parameter(page, "select"), null);
		await page.locator(".timeline").getByRole("button", { name: "This" }).click();
		await drag(page, 0.2, 0.4);
		await waitParameter(page, "select", "set");
		await page.getByRole("button", { name: "Hour", exact: true }).click();
		await waitParameter(page, "base_shift", "1h");
		assert.equal(parameter(page, "base_from"), null);
	},

	async "two programs: what is new and gone, on both sides of the table"({ page, url }) {
		const all = await programs(page, url);
		await open(page, url, twoPrograms(all[0], all[1]));
		await page.waitForSelector(".top.diff tbody tr");
		await until(async () => {
			const said = await page.locator("[data-testid=figures]").textContent();
			return { ok: /This.*Base/.test(said), said };
		}, "the figures");
		await until(async () => {
			const many = await page.locator("[data-testid=verdicts] li").count();
			return { ok: many > 0 && many <= 10, said: `${many} verdicts` };
		}, "what changed most");
		await until(async () => {
			const words = await page.locator(".top.diff tbody tr td:nth-child(5)").allTextContents();
			const known = /^(new|gone|too few|0 %|[+\u2212][\d.,]+ %|[\d,]+ \u00d7)$/;
			return { ok: words.length > 0 && words.every((w) => known.test(w)), said: words.join("|") };
		}, "each row says what changed");
		assert.equal(await hoverName(page, await frameAt(page, 0)), "all");
		assert.match(await page.locator(".tooltip").textContent(), /thisbasechange.*Total100 %100 %/);
		await page.locator(".top.diff th").getByRole("button", { name: /^Difference/ }).click();
		await waitParameter(page, "sort", "more");
		await until(async () => {
			const more = await page.locator(".top.diff tbody tr .cell-change").first().textContent();
			return { ok: more !== "" && !/\u2212/.test(more), said: more };
		}, "what grew is first");
		await page.getByRole("button", { name: "Values", exact: true }).click();
		await waitParameter(page, "values", "absolute");
		await page.getByRole("button", { name: "Exchange both sides" }).click();
		await until(async () => ({ ok: parameter(page, "query")?.endsWith(`{comm="${all[1]}"}`), said: parameter(page, "query") }), "exchanged");
		await until(async () => ({ ok: parameter(page, "base_query") === `{comm="${all[0]}"}`, said: page.url() }), "the base, too");
	},

	async "a base without samples says so, and what else there is"({ page, url }) {
		await page.goto(`${url}/?page=compare&base_from=2001-01-01T00:00:00Z&base_to=2001-01-02T00:00:00Z`);
		await page.waitForSelector("[data-testid=no-base]", { timeout: 60_000 });
		const button = page.getByRole("button", { name: "Right before" });
		const colours = () => button.evaluate((b) => [getComputedStyle(b).color, getComputedStyle(b).backgroundColor]);
		const before = await colours();
		await button.hover();
		assert.deepEqual(await colours(), before, "under the mouse it stays as readable");
		await button.click();
		await waitParameter(page, "base_from", null);
	},

	async "the bar at the left leads to each page and back"({ page, url }) {
		await open(page, url, "?paused=1");
		await page.waitForSelector(".legend-row");
		const height = async () => (await page.locator(".flame-scroll").boundingBox()).height;
		const before = await height();
		await page.locator(".rail").getByRole("link", { name: "Compare" }).click();
		await waitParameter(page, "page", "compare");
		await page.locator(".rail").getByRole("link", { name: "Explore" }).click();
		await waitParameter(page, "page", null);
		await painted(page);
		await page.waitForSelector(".legend-row");
		await until(async () => ({ ok: (await height()) === before, said: `${await height()}, not ${before}` }), "as high as before");
		const rail = await page.locator(".rail").boundingBox();
		assert.equal(rail.y, 0);
		assert.ok(rail.width <= 64, `${rail.width} pixels wide`);
		await page.setViewportSize({ width: 390, height: 800 });
		await page.getByRole("button", { name: /Explore/ }).click();
		await page.locator(".nav-menu").getByRole("link", { name: "Compare" }).click();
		await waitParameter(page, "page", "compare");
	},

	async "callers and callees of a function, compared"({ page, url }) {
		await page.goto(`${url}/?page=compare&paused=1&base_from=now-15m&base_to=now`);
		await painted(page);
		const at = await someFrame(page, 4);
		const name = await page.locator(".tooltip-name").textContent();
		await page.mouse.move(1, 1);
		await page.mouse.click(at.x, at.y, { button: "right" });
		await page.getByRole("menuitem", { name: /^Callers and callees/ }).click();
		await waitParameter(page, "sandwich", "1");
		await page.waitForSelector("[data-testid=sandwich] .sandwich-half.callers .flame-overlay");
		await until(async () => {
			const lower = await page.locator(".sandwich-half:not(.callers) .flame-overlay").boundingBox();
			await page.mouse.move(1, 1);
			const said = await hoverName(page, { x: lower.x + 40, y: lower.y + 9 });
			return { ok: said === name, said };
		}, "the first row of the callees is the function");
		await page.keyboard.press("Escape");
		await waitParameter(page, "sandwich", null);
	},
};
