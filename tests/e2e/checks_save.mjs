// SPDX-License-Identifier: Apache-2.0
// Checks of what can be taken away.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { copied, dropFile, frameAt, hoverName, named, open, until } from "./page.mjs";

/** The bytes of what a click downloads. */
async function download(page, name) {
	await page.getByRole("button", { name: /^Save/ }).click();
	const [file] = await Promise.all([
		page.waitForEvent("download"),
		page.locator(".menu-list button", { hasText: name }).first().click(),
	]);
	return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

export const saveChecks = {
	async "what is seen is saved as picture, table and stacks"({ page, url }) {
		await open(page, url, "?paused=1&filter=only:name:main");
		await named(page);
		await page.waitForSelector("tbody tr .cell-number");
		const png = await download(page, /^Picture.*PNG/);
		assert.equal(png.name, "firn.png");
		assert.deepEqual([...png.bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
		assert.ok(png.bytes.readUInt32BE(16) >= 1600 && png.bytes.length > 5000, `${png.bytes.length} bytes`);
		const svg = (await download(page, /SVG/)).bytes.toString();
		assert.match(svg, /^<svg .*xmlns/);
		const wrong = await page.evaluate(
			(text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent ?? "",
			svg,
		);
		assert.equal(wrong, "");
		await until(async () => {
			// names that come late make fewer rows: the file has as many as there were before or are after
			const rows = async () => Number(await page.locator("table.top").getAttribute("aria-rowcount")) - 1;
			const before = await rows();
			const table = (await download(page, /CSV/)).bytes.toString().trim().split("\r\n");
			assert.match(table[0], /^function,binary,file,runtime,self/);
			return { ok: [before, await rows()].includes(table.length - 1), said: `${table.length - 1} rows, not ${before}` };
		}, "a row for each of the table");
		const [unit, ...stacks] = (await download(page, /^Stacksfolded/)).bytes.toString().trim().split("\n");
		assert.equal(unit, "# unit: nanoseconds");
		assert.ok(stacks.length > 0);
		assert.ok(stacks.every((line) => /main.* \d+(\.\d+)?$/i.test(line)), stacks[0]);
	},

	async "each form of other tools is there"({ page, url }) {
		await open(page, url, "?paused=1");
		await page.getByRole("button", { name: /^Save/ }).click();
		const links = await page.locator(".menu-list a").evaluateAll((all) => all.map((a) => a.href));
		assert.equal(links.length, 5);
		for (const format of ["html", "speedscope", "firefox", "folded"]) {
			assert.ok(links.some((href) => href.includes("/api/flamegraph") && href.includes(`format=${format}`) && (format === "html" || href.includes("trim=0"))), format);
		}
		assert.ok(links.some((href) => href.includes("/api/pprof")));
	},

	async "a link has absolute times, filters and what is compared"({ page, url }) {
		const clipboard = await copied(page);
		await page.goto(`${url}/?page=compare&filter=hide:name:main&base_from=now-30m&base_to=now-20m&values=absolute`);
		await page.getByRole("button", { name: "Copy link" }).click();
		let text = "";
		await until(async () => {
			text = await clipboard();
			return { ok: text !== "", said: text };
		}, "copied");
		const p = new URL(text).searchParams;
		assert.ok(Date.parse(p.get("from")) > 0 && Date.parse(p.get("to")) > 0, text);
		assert.equal(Date.parse(p.get("base_to")) - Date.parse(p.get("base_from")), 600_000);
		assert.deepEqual([p.get("page"), p.get("filter"), p.get("values")], ["compare", "hide:name:main", "absolute"]);
	},

	async "a file that is dropped is shown, and sent nowhere"({ page, url }) {
		await open(page, url, "?paused=1");
		const asked = [];
		page.on("request", (r) => r.method() !== "GET" && asked.push(r.url()));
		await dropFile(page, "stacks.txt", "# unit: nanoseconds\nmain;parse;read 30000000\nmain;write 10000000\n");
		await page.waitForSelector("[data-testid=local-file] .flame-overlay");
		await until(async () => {
			const names = await page.locator("tbody tr .cell-name").allTextContents();
			const said = names.map((n) => n.trim()).join(",");
			return { ok: said === "read,write,main,parse", said };
		}, "functions by self");
		await page.getByRole("button", { name: "Callers", exact: true }).click();
		await until(async () => {
			await page.mouse.move(1, 1);
			const said = await hoverName(page, await frameAt(page, 1));
			return { ok: said === "read", said };
		}, "turned around");
		await dropFile(page, "wrong.txt", "no stacks here");
		await page.waitForSelector("[data-testid=bad-file]");
		await page.getByRole("button", { name: "Back to the server's samples" }).click();
		await page.waitForSelector(".timeline");
		assert.deepEqual(asked, []);
	},

	async "a snapshot is kept on the server for a time, and its link shows it"({ page, url }) {
		page.expected.push("404");
		await open(page, url, "?paused=1&view=flame");
		await page.getByRole("button", { name: /^Save/ }).click();
		await page.selectOption("[aria-label='How long it is kept']", "7d");
		const kept = page.waitForRequest((request) => request.method() === "POST");
		await page.getByRole("button", { name: "Keep, copy a link" }).click();
		assert.equal(new URL((await kept).url()).searchParams.get("expires"), "7d");
		const link = await page.getByLabel("Link to the snapshot").inputValue();
		assert.match(link, /[?&]shared=[a-z2-7]{28}$/);
		await page.waitForSelector(".keep [role=status]:has-text('it is there until 20')");
		await page.goto(link);
		await page.waitForSelector("[data-testid=local-file] .flame-overlay");
		assert.match(await page.locator(".file-about").textContent(), /^CPU of everything, .*\d\d:\d\d – .*; kept on this server until 2\d\d\d-/);
		assert.equal(await page.locator("table.top").count(), 0, "the view is that of the link");
		await page.getByRole("button", { name: "To the server's samples" }).click();
		await page.waitForSelector(".timeline");
		await page.goto(`${url}/?shared=${"a".repeat(25)}`);
		await page.waitForSelector("text=The link is not whole");
		await page.goto(`${url}/?shared=${"a".repeat(28)}`);
		await page.waitForSelector("text=This snapshot is not here");
		await page.getByRole("button", { name: "To the server's samples" }).click();
		await page.waitForSelector(".timeline");
	},
};
