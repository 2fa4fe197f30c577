// SPDX-License-Identifier: Apache-2.0
// The page by fingers only, 390 pixels wide: each menu opens within the window, and the sandwich works.
import assert from "node:assert/strict";
import { fits, open, parameter, until, waitParameter } from "./page.mjs";

const WIDTH = 390;
const HEIGHT = 844;

/** A page of a phone, which is closed at the end. */
async function onPhone(browser, run) {
	const phone = await browser.newContext({ viewport: { width: WIDTH, height: HEIGHT }, hasTouch: true, isMobile: true });
	const page = await phone.newPage();
	page.setDefaultTimeout(60_000);
	try {
		const cdp = await phone.newCDPSession(page);
		/** Rests on a point until what it opens is there. */
		const rest = async (at, until) => {
			const point = { x: Math.round(at.x), y: Math.round(at.y) };
			await cdp.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [point] });
			await page.waitForSelector(until);
			await cdp.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
		};
		await run(page, rest);
	} finally {
		await phone.close();
	}
}

/** Waits until an element lies within the window. */
const within = (page, selector) =>
	until(async () => {
		const box = await page.locator(selector).boundingBox();
		return { ok: box !== null && box.x >= 0 && box.x + box.width <= WIDTH, said: JSON.stringify(box) };
	}, `${selector} lies within the window`);

/** Taps where an element leaves most room beside it, above or below. */
async function tapBeside(page, selector) {
	const { x, y, width, height } = await page.locator(selector).boundingBox();
	const gaps = [
		{ room: x, at: [x / 2, y + height / 2] },
		{ room: WIDTH - x - width, at: [(WIDTH + x + width) / 2, y + height / 2] },
		{ room: y, at: [WIDTH / 2, y / 2] },
		{ room: HEIGHT - y - height, at: [WIDTH / 2, (HEIGHT + y + height) / 2] },
	];
	gaps.sort((a, b) => b.room - a.room);
	await page.touchscreen.tap(...gaps[0].at);
}

/** The widest frame of a canvas that is seen: a point in its row. */
async function inRow(page, canvas, row) {
	const box = await page.locator(canvas).boundingBox();
	return { x: box.x + box.width * 0.2, y: box.y + row * 20 + 9 };
}

export const touchChecks = {
	async "by fingers: graph and comparison begin by the middle of the screen"({ browser, url }) {
		await onPhone(browser, async (page) => {
			const begins = (what) =>
				until(async () => {
					const { y } = await page.locator(".flame-canvas").boundingBox();
					return { ok: y <= HEIGHT / 2, said: `at ${y} of ${HEIGHT}` };
				}, what);
			await page.addInitScript(() => localStorage.setItem("firn.hint", "seen"));
			await open(page, url, "?paused=1&view=flame");
			await begins("the graph begins by the middle but for the words of the first visit");
			await open(page, url, "?page=compare&paused=1&base_from=now-15m&base_to=now");
			await page.getByRole("button", { name: "Time and selector of the base" }).tap();
			await begins("so does the comparison");
			await fits(page, WIDTH, "the comparison");
		});
	},

	async "by fingers: what each button of the bars opens lies within the window"({ browser, url }) {
		await onPhone(browser, async (page) => {
			await open(page, url, "?paused=1");
			for (const name of ["nav-menu", "range", "builder", "saved-menu", "filter-menu", "save-menu"]) {
				const button = page.locator(`.popover.${name} > button`).first();
				await button.tap();
				await within(page, `.popover.${name} > .popover-panel`);
				await fits(page, WIDTH, name);
				await button.tap();
				await page.waitForSelector(".popover-panel", { state: "detached" });
			}
			await page.locator(".nav-menu > button").tap();
			await page.locator(".nav-menu").getByText("Compare").tap();
			await waitParameter(page, "page", "compare");
		});
	},

	async "by fingers: from a row to the sandwich, from its halves to their menus"({ browser, url }) {
		await onPhone(browser, async (page, rest) => {
			await open(page, url, "?paused=1");
			await page.locator("tbody .row-menu").first().tap();
			await within(page, ".menu");
			await page.getByRole("menuitem", { name: "Callers and callees" }).tap();
			await waitParameter(page, "sandwich", "1");
			for (const half of [".sandwich-half.callers", ".sandwich-half:not(.callers)"]) {
				const canvas = `${half} .flame-overlay`;
				await page.locator(half).scrollIntoViewIfNeeded();
				await page.waitForFunction((c) => document.querySelector(c)?.width !== 300, canvas);
				const height = (await page.locator(canvas).boundingBox()).height;
				// the function itself: the lowest row of its callers, the first of its callees
				const at = await inRow(page, canvas, half.includes("not") ? 0 : Math.floor(height / 20) - 1);
				await rest(at, ".menu");
				await within(page, ".menu");
				assert.equal((await page.locator(".menu-title").textContent()).trim(), parameter(page, "focus"), half);
				await tapBeside(page, ".menu");
				await page.waitForSelector(".menu", { state: "detached" });
			}
			const room = page.locator(".sandwich-share input");
			await within(page, ".sandwich-share input");
			await room.fill("0.15");
			await fits(page, WIDTH, "the sandwich");
			await page.locator(".sandwich .focus-chip button").tap();
			await waitParameter(page, "focus", null);
		});
	},
};
