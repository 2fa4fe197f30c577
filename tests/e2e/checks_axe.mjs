// SPDX-License-Identifier: Apache-2.0
// axe-core looks at each view in both themes, and as on a phone: nothing serious or critical.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { named } from "./page.mjs";

/** Views, and what shows that each is there. */
const VIEWS = [
	["?paused=1", ".top tbody tr"],
	["?paused=1&filter=only:name:main&group=binary", "[data-testid=filters]"],
	["?page=compare&paused=1&base_from=now-30m&base_to=now", "[data-testid=verdicts]"],
	["?paused=1&code=main&code_file=/srv/app/serve.py", ".code-table, .code .blank"],
	["?paused=1&code=main&code_as=asm", ".code-table, .code .blank"],
	["?paused=1&view=calls", ".call-box"],
	["?paused=1&view=time", ".strip"],
	["?page=fleet", ".spark"],
	["?page=agents", ".page-panel .health"],
	["?page=targets", ".page-panel h2"],
	["?page=symbols", ".page-head h2"],
	["?page=store", ".tiles"],
];

async function look(page, source) {
	await page.evaluate(source);
	return page.evaluate(async () => {
		const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
		return violations
			.filter((v) => v.impact === "serious" || v.impact === "critical")
			.map((v) => `${v.id}: ${v.nodes.slice(0, 4).map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
	});
}

const axeAt = (root) => join(root, "ui/node_modules/axe-core/axe.min.js");

function check(theme, width = 1366) {
	return async ({ page, url, root }) => {
		if (!existsSync(axeAt(root))) {
			throw new Error("axe-core is not installed: npm ci in ui/");
		}
		const source = readFileSync(axeAt(root), "utf8");
		await page.emulateMedia({ colorScheme: theme });
		await page.setViewportSize({ width, height: 800 });
		const found = [];
		for (const [query, shown] of VIEWS) {
			await page.goto(`${url}/${query}`);
			await page.waitForSelector(shown, { timeout: 60_000 });
			if (!/page=|code=|view=calls|view=time/.test(query)) {
				await named(page);
			}
			found.push(...(await look(page, source)).map((one) => `${query}: ${one}`));
		}
		if (found.length > 0) {
			throw new Error(found.join("\n"));
		}
	};
}

export const axeChecks = {
	"axe-core finds nothing serious in any view: light": check("light"),
	"axe-core finds nothing serious in any view: dark": check("dark"),
	"axe-core finds nothing serious in any view: on a phone": check("dark", 390),
};
