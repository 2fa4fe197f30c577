// SPDX-License-Identifier: Apache-2.0
// Holds what Biome does not: lines of a file, the licence line, no open ends.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const FILE_LINES_MAX = 300;
/** Style sheets are tables of rules: longer ones are still easy to read. */
const CSS_LINES_MAX = 600;
const problems = [];

function check(path) {
	const name = relative(root, path);
	const text = readFileSync(path, "utf8");
	const lines = text.split("\n").length - 1;
	const most = name.endsWith(".css") ? CSS_LINES_MAX : FILE_LINES_MAX;
	if (lines > most) {
		problems.push(`${name}: ${lines} lines, at most ${most}`);
	}
	if (!text.slice(0, 80).includes("SPDX-License-Identifier: Apache-2.0")) {
		problems.push(`${name}: no licence line`);
	}
	const open = /\b(TODO|FIXME|XXX|HACK)\b/.exec(text);
	if (open && !name.endsWith("sizes.mjs")) {
		problems.push(`${name}: an open end (${open[1]})`);
	}
}

function walk(folder) {
	for (const entry of readdirSync(folder, { withFileTypes: true })) {
		const path = join(folder, entry.name);
		if (entry.isDirectory()) {
			walk(path);
		} else if (/\.(ts|tsx|mjs|css)$/.test(entry.name)) {
			check(path);
		}
	}
}

for (const folder of ["src", "test", "dev", "../tests/e2e", "../bench"]) {
	walk(join(root, folder));
}
for (const problem of problems) {
	console.error(problem);
}
process.exit(problems.length > 0 ? 1 : 0);
