// SPDX-License-Identifier: Apache-2.0
// Checks of the flame chart over time.
import assert from "node:assert/strict";
import { open, painted, parameter, until, waitParameter } from "./page.mjs";

const STRIP = ".strip";

/** Whether something is painted in the first row. */
const isPainted = (page) =>
	page.evaluate(() => {
		const canvas = document.querySelector(".strip");
		const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
		return data.some((byte) => byte !== 0);
	});

/** The length of the stretch that is seen, in milliseconds, by the clocks at its ends. */
async function stretch(page) {
	const text = await page.locator("[data-testid=time-span]").textContent();
	const [from, to] = [...text.matchAll(/(\d+):(\d+):(\d+)\.(\d+)/g)].map(([, h, m, s, ms]) => ((+h * 60 + +m) * 60 + +s) * 1000 + +ms);
	return (to - from + 864e5) % 864e5;
}

export const timeChecks = {
	async "what ran when: a row for each thread or value, magnified, moved, and the graph of a stretch"({ page, url }) {
		await open(page, url, "?paused=1");
		await page.keyboard.press("5");
		await waitParameter(page, "view", "time");
		await page.waitForSelector(STRIP);
		await page.selectOption("[data-testid=time] [aria-label=Rows]", "comm");
		await waitParameter(page, "time_by", "comm");
		// rows of threads or CPUs stay until those of programs are there
		await page.waitForSelector(".time-rows[data-by=comm]");
		await until(async () => ({ ok: await isPainted(page), said: "an empty row" }), "calls are painted");
		const whole = await stretch(page);
		await page.click("[aria-label='Shorter stretch']");
		await until(async () => ({ ok: Math.abs((await stretch(page)) - whole / 2) < 20, said: `${whole} ${await stretch(page)}` }), "half of it");
		const before = await page.locator("[data-testid=time-span]").textContent();
		const box = await page.locator(STRIP).first().boundingBox();
		await page.mouse.move(box.x + 300, box.y + 10);
		await page.mouse.down();
		await page.mouse.move(box.x + 500, box.y + 10, { steps: 4 });
		await page.mouse.up();
		await until(async () => {
			const said = await page.locator("[data-testid=time-span]").textContent();
			return { ok: said !== before, said };
		}, "dragged to an earlier time");
		const longer = page.locator("[aria-label='Longer stretch']");
		// not all there is: on a busy host that has more calls than a chart holds
		for (let i = 0; i < 3 && (await longer.isEnabled()); i++) {
			await longer.click();
		}
		await page.waitForSelector(STRIP);
		// the first row may be another one once the longer stretch is there
		const opened = page.locator(".time-name[aria-expanded=true]");
		await until(async () => {
			if ((await opened.count()) === 0) {
				await page.locator(".time-name").first().click();
			}
			return { ok: (await opened.count()) > 0, said: "no row is open" };
		}, "a row opens");
		await until(async () => {
			for (let x = 0.02; x < 1; x += 0.02) {
				const strip = await page.locator(STRIP).first().boundingBox();
				await page.mouse.move(strip.x + strip.width * x, strip.y + 6);
				if ((await page.locator(".tooltip-name").count()) > 0) {
					return { ok: true, said: "" };
				}
			}
			return { ok: false, said: await page.locator(".time-name b").first().textContent() };
		}, "a call says what it is");
		await page.click("text=Graph of it");
		await waitParameter(page, "view", null);
		await painted(page);
		assert.ok(parameter(page, "select"));
		assert.match(parameter(page, "query"), /comm="/);
	},

	async "what ran when, on a live page up to now"({ page, url }) {
		await page.goto(`${url}/?view=time&time_by=comm`);
		await page.waitForSelector(STRIP);
		const span = () => page.locator("[data-testid=time-span]").textContent();
		const first = await span();
		const whole = await stretch(page);
		await until(async () => ({ ok: (await span()) !== first, said: first }), "it follows");
		assert.ok(Math.abs((await stretch(page)) - whole) < 2, "as long as before");
		await page.getByRole("button", { name: "Live" }).click();
		await page.waitForSelector("[data-testid=live][aria-pressed=false]");
		await page.waitForSelector(STRIP);
	},

	async "what ran when, by the label of the link, grouped and filtered"({ page, url }) {
		await page.goto(`${url}/?paused=1&view=time&time_by=comm&group=runtime`);
		const row = page.locator(".time-name").first();
		await row.click();
		await page.waitForSelector(".time-name[aria-expanded=true]");
		assert.equal(await page.locator("[data-testid=time] [aria-label=Rows]").inputValue(), "comm");
		const height = async () => (await page.locator(STRIP).first().boundingBox()).height;
		const grouped = await height();
		await page.goto(`${url}/?paused=1&view=time&time_by=comm`);
		await row.click();
		await until(async () => ({ ok: (await height()) > grouped, said: `${grouped} ${await height()}` }), "functions are more levels than runtimes");
		await page.goto(`${url}/?paused=1&view=time&time_by=comm&filter=hide:name:%2F.%2F`);
		await page.waitForSelector("text=The filters leave nothing in this stretch");
	},

	async "a chart of too many calls says so, with a way out"({ page, url }) {
		page.expected.push("422");
		let refuse = true;
		await page.route("**/api/flamechart?*", (route) =>
			refuse
				? route.fulfill({ status: 422, contentType: "application/json", body: JSON.stringify({ error: "a flame chart of 300000 calls", code: "LIMIT" }) })
				: route.continue(),
		);
		await page.goto(`${url}/?paused=1&view=time`);
		await page.waitForSelector("[data-testid=time] [role=alert]");
		assert.match(await page.locator("[data-testid=time] [role=alert]").textContent(), /Too much for a chart.*300000 calls/);
		const whole = await stretch(page);
		refuse = false;
		await page.locator("[data-testid=time] [role=alert] button").click();
		await until(async () => ({ ok: (await stretch(page)) < whole / 4, said: String(await stretch(page)) }), "a shorter one");
		await page.waitForSelector(".time-rows, [data-testid=time] .blank:not([role=alert])");
	},
};
