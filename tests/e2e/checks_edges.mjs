// SPDX-License-Identifier: Apache-2.0
// What only some answers show: slow ones, long names, many values, many binaries.
import assert from "node:assert/strict";
import { hoverName, named, open, painted, parameter, someFrame, until, waitParameter } from "./page.mjs";

const textOf = (page, selector) => page.locator(selector).textContent();

/** Has an answer of the graph changed before the page gets it. */
async function changeFlame(page, change) {
	await page.route("**/api/flamegraph?*", async (route) => {
		const response = await route.fetch();
		const json = await response.json();
		change(json);
		await route.fulfill({ response, json });
	});
}

export const edgeChecks = {
	async "a graph that is too large says so in graph and chart, with a way out"({ page, url }) {
		page.expected.push("422");
		let refuse = true;
		const body = JSON.stringify({ error: "the answer would have 5000000 nodes", code: "LIMIT" });
		await page.route(/api\/(flamegraph|series)\?/, (route) =>
			refuse ? route.fulfill({ status: 422, contentType: "application/json", body }) : route.continue(),
		);
		await page.goto(`${url}/?paused=1`);
		const blank = page.locator(".profile .blank", { hasText: /Too much for one graph.*5000000 nodes/ });
		await blank.waitFor(); /* at first it says that it asks */
		await page.waitForSelector(".chart[data-error*='5000000 nodes']");
		refuse = false;
		await blank.getByRole("button", { name: /^The last/ }).click();
		await waitParameter(page, "select", "set");
		await page.waitForSelector(".flame-overlay, .profile .blank:not(:has-text('Too much'))");
	},

	async "a graph that takes long says that it is on its way"({ page, url }) {
		let letGo = () => {};
		const held = new Promise((done) => {
			letGo = done;
		});
		await page.route("**/api/flamegraph?*", async (route) => {
			await held;
			await route.continue();
		});
		await page.goto(url);
		await page.waitForSelector(".profile[aria-busy=true]:has-text('Asking for the flame graph')");
		letGo();
		await painted(page);
		await page.waitForSelector(".profile[aria-busy=true]", { state: "detached" });
	},

	async "chips of binaries that are not seen do not get the focus"({ page, url }) {
		await changeFlame(page, (json) => {
			const { nodes, strings } = json;
			nodes.binary = nodes.binary.map((id, i) => {
				return i === 0 ? id : strings.push(`/usr/lib/a-library-with-a-long-name-${i}.so`) - 1;
			});
		});
		await page.setViewportSize({ width: 900, height: 800 });
		await open(page, url, "?paused=1");
		await page.waitForSelector(".binaries .chip");
		const list = page.locator(".binaries ul");
		const top = (await list.boundingBox()).y;
		await page.locator(".binaries .chip").first().focus();
		for (let i = 0; i < 12; i++) {
			const [chip, isIn] = await page.evaluate(() => {
				const box = document.activeElement.getBoundingClientRect();
				return [{ y: box.y, height: box.height }, !!document.activeElement.closest(".binaries ul")];
			});
			if (!isIn) {
				break;
			}
			assert.ok(chip.y >= top - 1 && chip.y < top + chip.height, "in the one row that is seen");
			await page.keyboard.press("Tab");
		}
		assert.equal(await list.evaluate((e) => e.scrollTop), 0);
	},

	async "stepping through matches keeps the share of all, and Esc goes back"({ page, url }) {
		await open(page, url, "?paused=1"); // else the shares move
		await named(page);
		const name = await hoverName(page, await someFrame(page, 3));
		await page.keyboard.press("/");
		await page.keyboard.type(`"${name}"`);
		await waitParameter(page, "search", `"${name}"`); // the whole text, not a part of it
		await page.waitForSelector("[data-testid=search-share]:has-text('matched')");
		const share = (await textOf(page, "[data-testid=search-share]")).split(",")[0];
		const zoom = parameter(page, "zoom");
		for (let i = 0; i < 3; i++) {
			await page.keyboard.press("Enter");
			await page.waitForFunction(() => / of /.test(document.querySelector(".search-place").textContent));
			assert.equal((await textOf(page, "[data-testid=search-share]")).split(",")[0], share);
		}
		await page.keyboard.press("Escape");
		await waitParameter(page, "search", null);
		await until(async () => {
			const now = parameter(page, "zoom");
			return { ok: now === zoom, said: `zoom ${now}` };
		}, "the graph is where it was before the search");
	},

	async "names that differ at their ends can be told apart, however narrow"({ page, url }) {
		await page.route("**/api/series?*", async (route) => {
			const response = await route.fetch();
			const json = await response.json();
			for (const [i, series] of json.series.entries()) {
				for (const label in series.labels) {
					series.labels[label] = `deployment-with-a-rather-long-name-7f9c-${10 + i}`;
				}
			}
			await route.fulfill({ response, json });
		});
		await page.setViewportSize({ width: 1000, height: 800 });
		await open(page, url, "?paused=1");
		await page.waitForSelector(".legend-row .cut-head");
		const hidden = await page.locator(".legend-row .cut-tail").evaluateAll((tails) => {
			const isHidden = (tail) => {
				const range = document.createRange();
				range.setStart(tail.firstChild, tail.textContent.length - 2);
				range.setEnd(tail.firstChild, tail.textContent.length);
				return range.getBoundingClientRect().right > tail.getBoundingClientRect().right + 1;
			};
			return tails.filter(isHidden).length;
		});
		assert.equal(hidden, 0);
	},

	async "many values: how many more there are is said"({ page, url }) {
		const values = Array.from({ length: 1200 }, (_, i) => `value-${String(i).padStart(4, "0")}`);
		await page.route("**/api/labels/comm/values?*", (route) => route.fulfill({ json: { values } }));
		await open(page, url);
		await page.click("[aria-label=Selector]");
		await page.keyboard.type('comm="val');
		await page.waitForSelector("[role=option]");
		await until(async () => {
			const after = await page.locator("[data-after]").getAttribute("data-after", { timeout: 5000 });
			return { ok: after === "1000 more: type to narrow them down", said: after };
		}, "the rest is counted");
		await page.keyboard.type("ue-0999");
		await page.waitForFunction(() => document.querySelectorAll("[role=option]").length === 1);
		assert.equal(await page.locator("[data-after]").count(), 0);
	},

	async "a very long name leaves room for the figures"({ page, url }) {
		const long = `std::map<${"std::pair<int, long>, ".repeat(80)}int>::at`;
		await changeFlame(page, (json) => {
			const { nodes, strings } = json;
			const id = strings.push(long) - 1;
			nodes.name = nodes.name.map((name, i) => (i === 0 ? name : id));
		});
		await open(page, url, "?view=flame");
		await hoverName(page, await someFrame(page, 1));
		const box = await page.locator(".tooltip").boundingBox();
		assert.ok(box.height < 260, `${box.height} pixels high`);
		assert.ok(await page.locator(".tooltip table").isVisible());
	},

	async "libraries and files are found where no function is called so"({ page, url }) {
		await changeFlame(page, (json) => {
			json.nodes.binary[1] = json.strings.push("/usr/lib/libonly-here.so.1") - 1;
		});
		await open(page, url);
		await page.keyboard.press("/");
		await page.keyboard.type("libonly-here");
		await page.waitForSelector("[data-testid=search-share]:has-text('matched by binary')");
	},
};
