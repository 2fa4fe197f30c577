// SPDX-License-Identifier: Apache-2.0
// Checks of filters, groups and the sandwich: they mean the same in graph, table and comparison.
import assert from "node:assert/strict";
import { frameAt, hoverName, named, open, painted, parameter, someFrame, until, waitParameter } from "./page.mjs";

const STILL = "?paused=1";
const filters = (page) => new URL(page.url()).searchParams.getAll("filter");

/** The value in the line of figures: "16.0 % of 57,103 samples". */
async function shareOf(page) {
	const text = await page.locator("[data-testid=figures]").textContent();
	return Number(/([\d.]+) % of/.exec(text)?.[1] ?? 100);
}

export const filterChecks = {
	async "a filter from the menu holds in graph, table and comparison"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		const at = await someFrame(page, 4);
		const name = await hoverName(page, at);
		await page.mouse.click(at.x, at.y, { button: "right" });
		await page.getByRole("menuitem", { name: "Only stacks through it" }).click();
		await until(async () => ({ ok: filters(page).includes(`only:name:"${name}"`), said: page.url() }), "in the URL");
		await until(async () => {
			const share = await shareOf(page);
			return { ok: share > 0 && share < 100, said: String(share) };
		}, "less than all is left");
		// each stack that is left goes through it: its total is all there is
		await page.locator("th").getByRole("button", { name: /^Total/ }).click();
		await until(async () => {
			const rows = page.locator("tbody tr").filter({ has: page.locator(`td.cell-name[title^=${JSON.stringify(name)}]`) });
			const share = await rows.first().locator("td:nth-child(4) .cell-share").textContent();
			return { ok: share === "100 %", said: share };
		}, "all is through it");
		await page.locator(".rail").getByRole("link", { name: "Compare" }).click();
		await waitParameter(page, "page", "compare");
		// a server that has just started has no samples of the time before
		const there = new URL(page.url());
		there.searchParams.set("base_from", "now-15m");
		there.searchParams.set("base_to", "now");
		await page.goto(there.href);
		await painted(page);
		assert.equal(await page.locator("[data-testid=filters] .filter").count(), 1);
		const any = await frameAt(page, 1);
		await page.mouse.click(any.x, any.y, { button: "right" });
		await page.waitForSelector("[role=menuitem]");
		await page.keyboard.press("Escape");
		await page.getByRole("button", { name: "Total", exact: true }).click();
		await page.locator(".top.diff th").getByRole("button", { name: /^This/ }).click();
		await until(async () => {
			const rows = page.locator(".top.diff tbody tr").filter({ has: page.locator(`td.cell-name[title^=${JSON.stringify(name)}]`) });
			const cells = await rows.first().locator(".cell-value").allTextContents();
			return { ok: cells[0] === "100 %", said: cells.join("|") };
		}, "on this side of the comparison, too");
		await page.locator("[title='Without this filter']").click();
		await waitParameter(page, "filter", null);
	},

	async "a filter is written, changed and taken back by keys"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		await page.getByRole("button", { name: "Filter", exact: true }).click();
		await page.keyboard.type("/[/");
		await page.waitForSelector("button:disabled:has-text('Add the filter'), button:disabled[aria-label='Add the filter']");
		await page.fill("[aria-label='Text of the filter']", "/^no such function$/");
		await page.keyboard.press("Enter");
		await page.waitForSelector("[data-testid=none-left]");
		await page.getByRole("button", { name: "Without filters" }).click();
		await painted(page);
		await page.keyboard.press("/");
		await page.keyboard.type("main");
		await waitParameter(page, "search", "main");
		await page.keyboard.press("Alt+Enter");
		await until(async () => ({ ok: filters(page)[0] === "only:name:main", said: page.url() }), "the search is a filter");
		await waitParameter(page, "search", null);
		await page.selectOption("[data-testid=filters] select", "drop");
		await until(async () => ({ ok: filters(page)[0] === "drop:name:main", said: page.url() }), "it drops");
		await page.focus(".flame-scroll");
		await page.keyboard.press("Escape");
		await waitParameter(page, "filter", null);
	},

	async "bars are binaries or runtimes, and functions again"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		const rows = () => page.locator("table.top").getAttribute("aria-rowcount");
		await until(async () => ({ ok: Number(await rows()) > 20, said: await rows() }), "rows of functions");
		const before = Number(await rows());
		await page.getByRole("button", { name: "Filter", exact: true }).click();
		await page.selectOption("[aria-label='Bars are']", "runtime");
		await waitParameter(page, "group", "runtime");
		await until(async () => ({ ok: Number(await rows()) < Math.min(before, 40), said: `${before} ${await rows()}` }), "few rows");
		await until(async () => {
			const names = await page.locator("tbody tr .cell-name").allTextContents();
			return { ok: names.some((n) => n.trim() === "native" || n.trim() === "kernel"), said: names.join(", ") };
		}, "runtimes");
		assert.equal(await page.locator("th.cell-name").textContent().then((t) => t.trim()), "Runtime");
		assert.equal(await page.locator("th.cell-binary").isVisible(), false);
		await page.locator("tbody tr").filter({ hasText: /^native/ }).first().click({ button: "right" });
		await page.getByRole("menuitem", { name: "Only stacks through it" }).click();
		await until(async () => ({ ok: filters(page)[0] === 'only:runtime:"native"', said: page.url() }), "a filter of the runtime");
		await until(async () => ({ ok: Number(await rows()) > 1, said: await rows() }), "which leaves its stacks");
		await page.locator("[title='Bars are functions again']").click();
		await waitParameter(page, "group", null);
	},

	async "callers stand above a function, and callees below it"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		const at = await someFrame(page, 4);
		const name = await hoverName(page, at);
		await page.mouse.move(1, 1);
		await page.mouse.click(at.x, at.y, { button: "right" });
		await page.getByRole("menuitem", { name: /^Callers and callees/ }).click();
		await waitParameter(page, "sandwich", "1");
		await page.waitForSelector(".sandwich-half.callers .flame-overlay");
		await until(async () => {
			const upper = await page.locator(".sandwich-half.callers .flame-overlay").boundingBox();
			const point = { x: upper.x + upper.width * 0.5, y: upper.y + Math.floor(upper.height / 20) * 20 - 9 };
			await page.mouse.move(1, 1);
			const said = await hoverName(page, point);
			return { ok: said === name, said };
		}, "the lowest row of the callers is the function");
		await until(async () => {
			const lower = await page.locator(".sandwich-half:not(.callers) .flame-overlay").boundingBox();
			await page.mouse.move(1, 1);
			const said = await hoverName(page, { x: lower.x + 40, y: lower.y + 9 });
			return { ok: said === name, said };
		}, "the first row of the callees is the function");
		await page.keyboard.press("Escape");
		await waitParameter(page, "sandwich", null);
	},

	async "keys on a frame: only, drop, hide, sandwich"({ page, url }) {
		await open(page, url, "?view=flame&paused=1");
		await named(page);
		await page.focus(".flame-scroll");
		for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "h"]) {
			await page.keyboard.press(key);
		}
		await until(async () => ({ ok: filters(page)[0]?.startsWith("hide:name:"), said: page.url() }), "hidden");
		assert.equal(await hoverName(page, await frameAt(page, 0)), "all");
	},

	async "the values of the chart's label stand below the root"({ page, url }) {
		let asked = 0;
		await page.route("**/api/flamegraph?*", (route) => {
			asked++;
			route.continue();
		});
		await open(page, url, "?paused=1&view=flame&group=label");
		assert.equal(asked, 1, "one question has all values");
		await named(page);
		const legend = await page.locator(".legend-name").allTextContents();
		const first = await hoverName(page, await frameAt(page, 1, 0.05));
		assert.ok(legend.includes(first) || first === "everything else", `${first} is none of ${legend.join(", ")}`);
		const share = await page.locator(".tooltip tbody tr:first-child td:last-child").textContent();
		assert.doesNotMatch(share, /^(0|100) %$/);
	},

	async "a server that asks who comes gets a name and a password, never in an address"({ page, url }) {
		page.expected.push("401");
		let open = false;
		const sent = [];
		await page.route("**/api/**", (route) => {
			const request = route.request();
			if (new URL(request.url()).pathname === "/api/login") {
				sent.push(request.headers().authorization);
				open = sent.length > 1;
				const body = JSON.stringify({ error: "wrong name or password", code: "UNAUTHENTICATED" });
				return route.fulfill(open ? { status: 200, body: "{}" } : { status: 401, contentType: "application/json", body });
			}
			if (new URL(request.url()).pathname === "/api/logout") {
				return route.fulfill({ status: 200, body: "{}" });
			}
			return open ? route.continue() : route.fulfill({ status: 401, contentType: "application/json", body: "{}" });
		});
		await page.goto(url);
		await page.waitForSelector("[data-testid=login]");
		for (const password of ["wrong", "right"]) {
			await page.getByLabel("Name", { exact: true }).fill("ana");
			await page.getByLabel(/^Password/).fill(password);
			await page.getByRole("button", { name: "Log in" }).click();
			await until(async () => ({ ok: sent.length === (password === "wrong" ? 1 : 2), said: String(sent.length) }), "sent");
			if (password === "wrong") {
				await page.waitForSelector("[data-testid=login] [role=alert]");
			}
		}
		await painted(page);
		assert.equal(Buffer.from(sent[1].slice(6), "base64").toString(), "ana:right");
		assert.ok(!page.url().includes("ana"));
		const left = page.waitForRequest((request) => new URL(request.url()).pathname === "/api/logout");
		await page.click("button[aria-label='Log out']");
		assert.equal((await left).method(), "POST");
		await page.waitForSelector("button[aria-label='Log out']", { state: "detached" });
	},

	async "a token that no header can carry is refused with a sentence"({ page, url }) {
		page.expected.push("401");
		await page.route("**/api/**", (route) => route.fulfill({ status: 401, contentType: "application/json", body: "{}" }));
		await page.goto(url);
		await page.getByLabel(/^Password/).fill("čert");
		await page.getByRole("button", { name: "Log in" }).click();
		await page.waitForSelector("[data-testid=login] [role=alert]");
		assert.match(await page.locator("[data-testid=login] [role=alert]").textContent(), /ASCII/);
	},

	async "an expression that could freeze the page is refused, and says why"({ page, url }) {
		await open(page, url, STILL);
		await page.fill("[aria-label='Search functions']", "/(a+)+$/");
		await until(async () => {
			const text = await page.locator(".profile-bar").textContent();
			return { ok: /could take forever/.test(text), said: text };
		}, "the reason");
	},

	async "where more than one host sends, the first page of a visit is the fleet"({ page, url }) {
		await page.route("**/api/labels/node/values*", (route) =>
			route.fulfill({ contentType: "application/json", body: JSON.stringify({ values: ["a", "b"] }) }),
		);
		await page.goto(url);
		await waitParameter(page, "page", "fleet");
		await page.click(".rail a[title='Where the time goes']");
		await painted(page);
		await page.reload();
		await painted(page);
		assert.equal(parameter(page, "page"), null);
	},

	async "a graph that is deeper than its window has a small one beside it"({ page, url }) {
		await page.setViewportSize({ width: 1366, height: 620 });
		await open(page, url, STILL);
		await named(page);
		const rows = await page.evaluate(() => document.querySelector(".flame-stage").clientHeight / 20);
		const room = await page.evaluate(() => document.querySelector(".flame-scroll").clientHeight / 20);
		assert.ok(rows > room + 9, `${rows} rows in room for ${room}`);
		const box = await page.locator(".minimap").boundingBox();
		await page.mouse.click(box.x + box.width / 2, box.y + box.height - 4);
		await until(async () => {
			const top = await page.evaluate(() => document.querySelector(".flame-scroll").scrollTop);
			return { ok: top > 100, said: String(top) };
		}, "it went down");
		await until(async () => {
			const mark = await page.locator(".minimap i").boundingBox();
			return { ok: mark.y + mark.height > box.y + box.height * 0.8, said: JSON.stringify(mark) };
		}, "the mark is at the end");
		// few rows: none is needed
		await page.setViewportSize({ width: 1366, height: 2400 });
		await open(page, url, `${STILL}&group=runtime`);
		await page.waitForSelector(".minimap", { state: "detached" });
	},
};
