// SPDX-License-Identifier: Apache-2.0
// Checks of the source of a function, and of the call graph.
import assert from "node:assert/strict";
import { ask, fits, named, open, painted, parameter, until, waitParameter } from "./page.mjs";

/** A function of the answer that has a source file. */
async function withFile(page, url) {
	const answer = await ask(page, `${url}/api/top`);
	const { rows } = await answer.json();
	// the only one of its name: the page marks rows by name
	const called = new Map();
	for (const { name } of rows) {
		called.set(name, (called.get(name) ?? 0) + 1);
	}
	const single = rows.filter((row) => called.get(row.name) === 1);
	const first = [...single.filter((row) => row.file.startsWith("/")), ...single.filter((row) => /^[^/]/.test(row.file))];
	for (const row of first.slice(0, 20)) {
		const source = await ask(page, `${url}/api/source?file=${encodeURIComponent(row.file)}`);
		if (source.ok() && (await source.json()).places.length > 0) {
			return row;
		}
	}
	return undefined;
}

export const codeChecks = {
	async "the source of a function from its row, with values beside the lines, and back by Esc"({ page, url }) {
		const row = await withFile(page, url);
		if (!row) {
			return; // nothing on this host has line numbers
		}
		const name = encodeURIComponent(row.name);
		await page.goto(`${url}/?view=table&paused=1&mark=${name}`);
		await page.waitForSelector("tbody tr.marked");
		await page.focus(".table-scroll");
		await page.keyboard.press("m");
		await page.click("[role=menuitem]:has-text('Source and instructions')");
		await waitParameter(page, "code", row.name);
		await page.waitForSelector(".code-table tbody tr");
		assert.equal(await page.locator(".code-title h2").textContent(), row.name);
		assert.equal(await page.locator(".code-title p").textContent(), parameter(page, "code_file"));
		await page.focus(".code-scroll");
		// the rows in sight are those from the function's first line on: lines with values may be further down
		await page.keyboard.press("n");
		await page.waitForSelector(".code-table tr.here.warm .bar", { state: "attached" });
		await until(async () => {
			const said = await page.locator("[data-testid=code-place]").textContent();
			return { ok: /line \d+, 1 of \d+/.test(said), said };
		}, "the first line");
		await page.reload();
		await page.waitForSelector(".code-table tbody tr");
		await page.keyboard.press("Escape");
		await waitParameter(page, "code", null);
		await page.waitForSelector(".table-scroll");
	},

	async "v on a frame opens its source; where the text is not at hand the way to have it is said"({ page, url }) {
		await open(page, url, "?view=flame&paused=1");
		await page.goto(`${url}/?paused=1&code=_PyEval_EvalFrameDefault&code_binary=python3.11&code_file=Python/ceval.c`);
		await page.waitForSelector("[data-testid=code-origin]");
		assert.match(await page.locator("[data-testid=code-origin]").textContent(), /firn debuginfo upload --type=sources --build-id=0f3a/);
		assert.ok((await page.locator(".code-table tbody tr").count()) > 0);
		await page.selectOption(".code-bar select", "11223344556677");
		await page.waitForSelector(".code-table tbody tr.warm");
		await page.click(".code-bar button");
		await painted(page);
	},

	async "a source file that is newer than the samples is doubted, also where the range moves"({ page, url }) {
		const row = await withFile(page, url);
		if (!row) {
			return;
		}
		let modified = Date.now();
		await page.route("**/api/source?*", async (route) => {
			const answer = await route.fetch({ maxRetries: 3 });
			const body = { ...(await answer.json()), origin: "host", text: "x\n".repeat(9000), modified };
			await route.fulfill({ response: answer, json: body });
		});
		const q = new URLSearchParams({ paused: "1", code: row.name, code_binary: row.binary, code_file: row.file });
		await page.goto(`${url}/?${q}`);
		await page.waitForSelector("[data-testid=code-origin].doubt");
		assert.match(await page.locator("[data-testid=code-origin]").textContent(), /changed after these samples began/);
		modified -= 864e5;
		await page.reload();
		await page.waitForSelector("[data-testid=code-origin]:not(.doubt)");
	},

	async "instructions of a function, with source lines between them"({ page, url }) {
		await page.goto(`${url}/?paused=1&code=_PyEval_EvalFrameDefault&code_binary=python3.11&code_file=Python/ceval.c`);
		await page.waitForSelector(".code-table");
		await page.click(".code-bar .segments button:has-text('Instructions')");
		await waitParameter(page, "code_as", "asm");
		await page.waitForSelector(".code-table.asm tr.between");
		assert.match(await page.locator(".code-table tr.between").first().textContent(), /^ceval\.c:5352/);
		assert.match(await page.locator(".code-table").textContent(), /401008mov rax, qword ptr/);
		await page.goto(`${url}/?paused=1&code=_PyEval_EvalFrameDefault&code_as=asm`);
		await page.waitForSelector(".code-table.asm");
		assert.equal(await page.locator(".code-title p").textContent(), "python3.11", "the binary that costs most");
		await page.goto(`${url}/?paused=1&code=main&code_binary=cc1plus&code_as=asm`);
		await until(async () => {
			const text = await page.locator(".code").textContent();
			return { ok: /not at hand.*upload --type=executable|No instructions of its own/.test(text), said: text };
		}, "the way to have them");
	},

	async "no source, and a file without samples, say so"({ page, url }) {
		await page.goto(`${url}/?paused=1&code=nothing&code_binary=x&code_file=/nowhere/none.zz`);
		await until(async () => {
			const text = await page.locator(".code").textContent();
			return { ok: /No samples in this file/.test(text), said: text };
		}, "a blank panel");
	},

	async "the call graph: boxes with figures, their menus, marks and keys"({ page, url }) {
		await open(page, url, "?paused=1");
		await named(page);
		await page.keyboard.press("4");
		await page.waitForSelector(".call-box");
		assert.equal(parameter(page, "view"), "calls");
		const box = page.locator(".call-box").nth(2);
		const label = await box.getAttribute("aria-label");
		assert.match(label, /self .* %, total .* %$/);
		assert.ok((await page.locator(".call-line").count()) > 3);
		await box.focus();
		await page.keyboard.press("Enter");
		await page.waitForSelector("[role=menu]");
		const name = await page.locator(".menu-title").textContent();
		assert.ok(name !== "" && label.startsWith(`${name}, `), `${name} is the title for ${label}`);
		await page.keyboard.press("Escape");
		await page.waitForSelector("[role=menu]", { state: "detached" });
		const width = () => page.locator("[data-testid=calls]").evaluate((svg) => svg.clientWidth);
		const before = await width();
		await page.click("button[aria-label=Larger]");
		await until(async () => ({ ok: (await width()) > before, said: `${before}` }), "larger");
		await page.locator(".call-box").nth(2).focus();
		await page.keyboard.press("s");
		await waitParameter(page, "focus", name);
		await page.waitForSelector("[data-testid=sandwich]");
	},

	async "a view is saved on the server, opened by its name, and deleted"({ page, url }) {
		await open(page, url, "?paused=1&search=main");
		await page.click(".saved-menu > button");
		const name = `view ${Date.now() % 100000}`;
		await page.getByLabel("Name of this view").fill(name);
		await page.click(".saved-new button");
		await page.waitForSelector(`.saved-view:has-text("${name}")`);
		await page.goto(`${url}/?paused=1`);
		await painted(page);
		await page.click(".saved-menu > button");
		await page.click(`.saved-view a:has-text("${name}")`);
		await waitParameter(page, "search", "main");
		await painted(page);
		await page.click(".saved-menu > button");
		await page.click(`button[aria-label="Delete ${name}"]`);
		await page.waitForSelector(`.saved-view:has-text("${name}")`, { state: "detached" });
	},

	async "a selector is built from labels and values of the server, and stays at hand"({ page, url }) {
		await open(page, url, "?paused=1");
		const query = () => (parameter(page, "query") ?? "").replace(/^[^{]*/, "");
		const list = "[data-testid=builder]";
		await page.click(".selector .builder > button");
		await page.waitForSelector(`${list} option[value=comm]`, { state: "attached" });
		await page.selectOption(`${list} [aria-label=Label]`, "comm");
		const value = page.getByLabel("Value of comm");
		await until(async () => ({ ok: (await value.locator("option").count()) > 1, said: "no values" }), "values");
		const first = await value.locator("option").nth(1).textContent();
		await value.selectOption(first);
		await until(async () => ({ ok: query() === `{comm="${first}"}`, said: query() }), "in force");
		await page.waitForFunction(() => localStorage.getItem("firn.recent") !== null);
		await page.selectOption(`${list} [aria-label=Operator]`, "=~");
		await page.getByLabel("Expression for comm").waitFor();
		await until(async () => ({ ok: query() === `{comm=~"${first}"}`, said: query() }), "another operator");
		await page.click(`${list} [aria-label='Without this condition']`);
		await until(async () => ({ ok: query() === "", said: query() }), "without it");
		await page.keyboard.press("Escape");
		await page.goto(`${url}/?paused=1`);
		await painted(page);
		await page.click(".selector .builder > button");
		await page.click(`${list} .builder-recent >> nth=0`);
		await until(async () => ({ ok: query().includes("comm"), said: query() }), "the recent one");
	},

	async "the chart marks what was annotated"({ page, url }) {
		await page.request.post(`${url}/api/annotations?text=deploy%20v1.2`);
		await open(page, url, "?from=now-1h");
		await page.waitForSelector(".timeline[data-marks*='deploy v1.2']");
	},

	async "the chart marks where a further version begins, and not the one that was there before"({ page, url }) {
		const json = (body) => ({ contentType: "application/json", body: JSON.stringify(body) });
		await page.route(/\/api\/labels\?/, async (route) => {
			const { labels } = await (await route.fetch()).json();
			await route.fulfill(json({ labels: [...labels, "version"] }));
		});
		await page.route(/\/api\/series\?.*by=version/, (route) => {
			const from = Math.floor(Date.now() / 10_000) * 10_000 - 1_800_000;
			const points = (minute) => [0, 1, 2, 3].map((k) => [from + (minute + k) * 60_000, 1e9]);
			const series = [["1.4", 0], ["1.5", 15]].map(([version, minute]) => ({ labels: { version }, points: points(minute) }));
			return route.fulfill(json({ unit: "nanoseconds", step: 10_000, by: ["version"], series }));
		});
		await open(page, url, "?from=now-30m");
		await page.waitForSelector(".timeline[data-marks*='1.5']");
		assert.doesNotMatch(await page.locator(".timeline").getAttribute("data-marks"), /1\.4/);
	},

	async "a source is no wider than a phone"({ page, url }) {
		await page.setViewportSize({ width: 390, height: 800 });
		const row = await withFile(page, url);
		if (!row) {
			return;
		}
		const q = new URLSearchParams({ paused: "1", code: row.name, code_binary: row.binary, code_file: row.file });
		await page.goto(`${url}/?${q}`);
		await page.waitForSelector(".code-table");
		await fits(page, 390, "source");
	},
};

/** Those about what only the server of made samples has. */
export const codeMockOnly = new Set([
	"v on a frame opens its source; where the text is not at hand the way to have it is said",
	"instructions of a function, with source lines between them",
	"the chart marks where a further version begins, and not the one that was there before",
]);
