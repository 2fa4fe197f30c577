// SPDX-License-Identifier: Apache-2.0
// Checks of the graph and the table: zoom, search, tooltip, order, marks.
import assert from "node:assert/strict";
import { frameAt, hoverName, named, open, painted, someFrame, until, untilName, waitParameter } from "./page.mjs";

// Names and numbers are compared with what was there a moment before: nothing new comes meanwhile.
const STILL = "?view=flame&paused=1";

export const graphChecks = {
	async "zoom by click, back by history, Backspace and breadcrumb"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		const at = await someFrame(page, 2);
		const name = await hoverName(page, at);
		await page.mouse.click(at.x, at.y);
		await waitParameter(page, "zoom", "set");
		await untilName(page, 2, 0.97, name, "it fills the width");
		assert.ok((await page.locator(".crumb").count()) >= 3);
		await page.goBack();
		await waitParameter(page, "zoom", null);
		await page.goForward();
		await waitParameter(page, "zoom", "set");
		await page.waitForFunction(() => document.querySelectorAll(".crumb").length >= 3);
		await page.focus(".flame-scroll");
		await page.keyboard.press("Backspace");
		await page.waitForFunction(() => document.querySelectorAll(".crumb").length === 2);
		await page.click(".crumb:first-child button");
		await waitParameter(page, "zoom", null);
	},

	async "the keyboard walks through the graph"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		await page.focus(".flame-scroll");
		for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) {
			await page.keyboard.press(key);
		}
		await page.waitForFunction(() =>
			/total .* of all, self .* depth 2/.test(
				document.querySelector("#flame-live")?.textContent ?? "",
			),
		);
		await page.keyboard.press("Enter");
		await waitParameter(page, "zoom", "set");
		await page.keyboard.press("m");
		await page.waitForSelector("[role=menu]");
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("Escape");
		await page.waitForSelector("[role=menu]", { state: "detached" });
		await page.focus(".flame-scroll");
		await page.keyboard.press("Escape");
		await waitParameter(page, "zoom", null);
	},

	async "what is typed while the search follows is kept"({ page, url }) {
		await open(page, url, STILL);
		await page.evaluate(() => {
			const input = document.querySelector("[aria-label='Search functions']");
			const type = (text) => {
				input.value = text;
				input.dispatchEvent(new InputEvent("input", { bubbles: true }));
			};
			const own = history.replaceState;
			history.replaceState = function (...state) {
				history.replaceState = own;
				own.apply(history, state);
				type("mai");
				setTimeout(() => type(`${input.value}n`), 60);
			};
			type("ma");
		});
		await waitParameter(page, "search", "main");
		assert.equal(await page.inputValue("[aria-label='Search functions']"), "main");
	},

	async "search shows the matched share, filters the table and steps"({ page, url }) {
		await open(page, url, "?paused=1");
		await named(page);
		await page.waitForSelector("tbody tr .cell-name");
		// a name without what a search reads otherwise, or what a narrow table leaves out
		const names = await page.locator("tbody tr .cell-name").allTextContents();
		const name = names.map((n) => n.trim()).find((n) => /^\w{4,30}$/.test(n));
		assert.ok(name, `no plain name: ${names.join(", ")}`);
		await page.keyboard.press("/");
		await page.keyboard.type(name);
		await waitParameter(page, "search", name);
		await page.waitForFunction(() =>
			/\d %/.test(document.querySelector("[data-testid=search-share]")?.textContent ?? ""),
		);
		await until(async () => {
			const rows = await page.locator("tbody tr .cell-name").allTextContents();
			const fits = (row) => row.toLowerCase().includes(name.toLowerCase());
			return { ok: rows.length > 0 && rows.every(fits), said: rows.slice(0, 5).join(", ") };
		}, "the rows have the name");
		await page.keyboard.press("Enter");
		await page.waitForFunction(() =>
			document.querySelector(".search-place")?.textContent?.startsWith("1 of"),
		);
		await page.keyboard.press("Escape");
		await waitParameter(page, "search", null);
	},

	async "the tooltip has name, self and total with shares"({ page, url }) {
		await open(page, url, "?view=flame");
		assert.equal(await hoverName(page, await frameAt(page, 0)), "all");
		await someFrame(page, 1);
		const text = await page.locator(".tooltip").textContent();
		assert.match(text, /Total.*%/);
		assert.match(text, /Self.*%/);
	},

	async "the table sorts, and a row marks its function in the graph"({ page, url }) {
		await open(page, url, "?paused=1");
		await named(page);
		await page.waitForSelector("tbody tr .cell-number");
		const values = async (column) => {
			const cells = await page
				.locator(`tbody tr td:nth-child(${column}) .cell-number`)
				.allTextContents();
			return cells.map((text) => Number(text.replace(/,/g, "")));
		};
		const falling = (column, what) =>
			until(async () => {
				const list = await values(column);
				const ok = list.length > 0 && list.every((v, i) => i === 0 || v <= list[i - 1]);
				return { ok, said: list.slice(0, 5).join(", ") };
			}, what);
		await falling(3, "by self at first");
		await page.locator("th").getByRole("button", { name: /^Total/ }).click();
		await waitParameter(page, "sort", "total");
		await falling(4, "by total");
		await page.locator("th").getByRole("button", { name: /^Function/ }).click();
		await until(async () => {
			// what is shown may be shorter than the name
			const names = await page
				.locator("tbody tr .cell-name")
				.evaluateAll((cells) => cells.map((cell) => cell.title.split("\n")[0]));
			const wrong = names.findIndex((n, i) => i > 0 && names[i - 1] > n);
			return { ok: names.length > 0 && wrong < 0, said: names.slice(Math.max(wrong - 1, 0), wrong + 2).join(", ") };
		}, "by name");
		await page.click("tbody tr:nth-child(2)");
		await waitParameter(page, "mark", "set");
		await page.waitForSelector("tbody tr.marked");
	},

	async "callers of a function from the menu of a frame"({ page, url }) {
		await open(page, url, STILL);
		await named(page);
		const at = await someFrame(page, 4);
		const name = await hoverName(page, at);
		await page.mouse.click(at.x, at.y, { button: "right" });
		await page.getByRole("menuitem", { name: "Show its callers" }).click();
		await waitParameter(page, "focus", name);
		await untilName(page, 0, 0.1, name, "it is the root now");
		await page.goBack();
		await waitParameter(page, "focus", null);
	},

	async "the table leads to the callers of a function, by mouse and by key"({ page, url }) {
		await open(page, url, "?paused=1");
		await named(page);
		const first = page.locator("tbody tr").first();
		const name = (await first.locator(".cell-name").textContent()).trim();
		await first.click({ button: "right" });
		await page.getByRole("menuitem", { name: "Show its callers" }).click();
		await waitParameter(page, "focus", "set");
		assert.ok(new URL(page.url()).searchParams.get("focus").includes(name));
		await page.goBack();
		await waitParameter(page, "focus", null);
		await painted(page);
		await page.waitForSelector("tbody tr .cell-name");
		await page.focus(".table-scroll");
		await page.keyboard.press("ArrowDown");
		await waitParameter(page, "mark", "set");
		await page.waitForSelector("tbody tr.marked");
		await page.keyboard.press("Enter");
		await page.waitForSelector("[role=menu]");
		await page.keyboard.press("Escape");
		await page.waitForSelector("[role=menu]", { state: "detached" });
		await page.waitForFunction(() => document.activeElement.classList.contains("table-scroll"));
	},

	async "Ctrl and the wheel magnify the graph, Esc goes back"({ page, url }) {
		await open(page, url, STILL);
		const at = await frameAt(page, 3, 0.5);
		await page.mouse.move(at.x, at.y);
		await page.keyboard.down("Control");
		await page.mouse.wheel(0, -240);
		await page.keyboard.up("Control");
		await page.waitForSelector(".magnified");
		await page.focus(".flame-scroll");
		await page.keyboard.press("Escape");
		await page.waitForSelector(".magnified", { state: "detached" });
	},

	async "frames that the answer left out are asked for where the graph is magnified"({ page, url }) {
		const trimOf = (address) => Number(new URL(address).searchParams.get("trim"));
		await page.route("**/api/flamegraph?*", (route) => {
			const asked = new URL(route.request().url());
			if (trimOf(asked) > 0.00001) {
				asked.searchParams.set("trim", "0.02"); // so that much is left out
			}
			route.continue({ url: asked.href });
		});
		await open(page, url, STILL);
		const at = await frameAt(page, 3, 0.98);
		await page.mouse.move(at.x, at.y);
		const again = page.waitForResponse((answer) => answer.url().includes("/api/flamegraph") && trimOf(answer.url()) < 0.00001);
		await page.keyboard.down("Control");
		await page.mouse.wheel(0, -240);
		await page.mouse.wheel(0, -240);
		await page.keyboard.up("Control");
		assert.ok((await again).ok());
		await page.waitForSelector(".magnified");
		await until(async () => {
			const name = await hoverName(page, await someFrame(page, 3)).catch((e) => e.message);
			return { ok: name !== "" && !/has no frame|Timeout/.test(name), said: name };
		}, "a frame is there now");
	},
};
