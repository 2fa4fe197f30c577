// SPDX-License-Identifier: Apache-2.0
// axe-core looks at each view, and at what opens over it, in both themes, and as on a phone: nothing moderate,
// serious or critical.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dropFile, named, open, someFrame } from "./page.mjs";

/** Views, and what shows that each is there. */
const VIEWS = [
	["?paused=1", ".top tbody tr"],
	["?paused=1&filter=only:name:main&group=binary", "[data-testid=filters]"],
	["?page=compare&paused=1&base_from=now-30m&base_to=now", "[data-testid=verdicts]"],
	["?paused=1&code=main&code_file=/srv/app/serve.py", ".code-table, .code .blank"],
	["?paused=1&code=main&code_as=asm", ".code-table, .code .blank"],
	["?paused=1&view=calls", ".call-box"],
	["?paused=1&view=time", ".strip"],
	["?paused=1&view=flame&sandwich=1&focus=main", "[data-testid=sandwich], .sandwich"],
	["?paused=1&search=main", ".search-share"],
	["?from=nowhere", "[data-testid=bad-range]"],
	["?shared=none", "[data-testid=no-snapshot]"],
	["?page=fleet", ".spark"],
	["?page=agents", ".page-panel .health"],
	["?page=targets", ".page-panel h2"],
	["?page=symbols", ".page-head h2"],
	["?page=store", ".tiles"],
];

const press = (name) => (page) => page.getByRole("button", { name, exact: true }).first().click();

/** What opens over the view of the graph, what shows that it is there, and how it is opened. */
const PANELS = [
	["the menu of a frame", ".menu", async (page) => {
		const at = await someFrame(page, 1);
		await page.mouse.click(at.x, at.y, { button: "right" });
	}],
	["Save", ".popover-panel", (page) => page.getByRole("button", { name: /^Save/ }).click()],
	["Filter", ".popover-panel", press("Filter")],
	["the selector's builder", "[data-testid=builder]", (page) => page.locator(".selector button").first().click()],
	["the range", ".range-panel", (page) => page.locator(".top-bar .range .button").first().click()],
	["views by name", ".popover-panel", (page) => page.locator(".saved-menu > .button").click()],
	["the help", "dialog", press("Help")],
];

/** Files that are dropped, their text, and what shows that they are there. */
const FILES = [
	["stacks.txt", "main;parse;read 30\nmain;write 10\n", "[data-testid=local-file] .flame-overlay"],
	["wrong.txt", "no stacks here", "[data-testid=bad-file]"],
];

/** What axe says of the page as it is; by all rules, or by the one that depends on the theme. */
async function look(page, source, all) {
	if (!(await page.evaluate(() => "axe" in globalThis))) {
		await page.evaluate(source);
	}
	return page.evaluate(async (every) => {
		const rules = every ? {} : { runOnly: { type: "rule", values: ["color-contrast"] } };
		const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"], ...rules });
		return violations
			.filter((v) => v.impact !== "minor")
			.map((v) => `${v.id}: ${v.nodes.slice(0, 4).map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
	}, all);
}

const axeAt = (root) => join(root, "ui/node_modules/axe-core/axe.min.js");

/** Themes and widths, all of which a page that is open takes on at once; of the last only the colours are new. */
const LOOKS = [
	["light", 1366],
	["dark", 390],
	["dark", 1366],
];

/** What axe says of the page as it is, in each theme, and as on a phone. */
async function lookAll(page, source, what) {
	const found = [];
	for (const [theme, width] of LOOKS) {
		await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
		await page.setViewportSize({ width, height: 800 });
		await page.waitForFunction((t) => document.documentElement.dataset.theme === t && document.getAnimations().length === 0, theme);
		const known = theme === "dark" && width === 1366;
		found.push(...(await look(page, source, !known)).map((one) => `${what}, ${theme}, ${width} wide: ${one}`));
	}
	return found;
}

function check(...parts) {
	return async ({ page, url, root }) => {
		if (!existsSync(axeAt(root))) {
			throw new Error("axe-core is not installed: npm ci in ui/");
		}
		const source = readFileSync(axeAt(root), "utf8");
		const found = [];
		for (const part of parts) {
			await part(page, url, async (what) => found.push(...(await lookAll(page, source, what))));
		}
		if (found.length > 0) {
			throw new Error(found.join("\n"));
		}
	};
}

async function views(page, url, lookAt) {
	for (const [query, shown] of VIEWS) {
		await page.goto(`${url}/${query}`);
		await page.waitForSelector(shown, { timeout: 60_000 });
		if (!/page=|code=|view=calls|view=time|from=|shared=/.test(query)) {
			await named(page);
		}
		await lookAt(query);
	}
}

async function panels(page, url, lookAt) {
	await open(page, url, "?paused=1&view=flame");
	await named(page);
	for (const [name, shown, show] of PANELS) {
		await show(page);
		await page.waitForSelector(shown);
		await lookAt(name);
		await page.keyboard.press("Escape");
		await page.waitForSelector(shown, { state: "detached" });
	}
}

async function files(page, url, lookAt) {
	for (const [name, text, shown] of FILES) {
		await dropFile(page, name, text);
		await page.waitForSelector(shown);
		await lookAt(name);
	}
}

export const axeChecks = {
	"axe-core finds nothing of weight in any view": check(views),
	"axe-core finds nothing of weight in what opens over a view": check(panels, files),
};
