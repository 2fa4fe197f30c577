// SPDX-License-Identifier: Apache-2.0
// Bundles test/*.test.ts and runs them with Node's own runner. Ends with "N passed, N failed".
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const names = readdirSync(join(root, "test")).filter((name) => name.endsWith(".test.ts"));
const out = mkdtempSync(join(tmpdir(), "firn-ui-test-"));
try {
	await build({
		absWorkingDir: root,
		entryPoints: names.map((name) => `test/${name}`),
		outdir: out,
		outExtension: { ".js": ".mjs" },
		bundle: true,
		platform: "node",
		format: "esm",
		loader: { ".tsv": "text" },
		target: "node18",
		sourcemap: "inline",
		logLevel: "warning",
	});
	const bundles = names.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
	const args = ["--enable-source-maps", "--test", "--test-reporter=tap", ...bundles];
	const run = spawnSync(process.execPath, args, { encoding: "utf8" });
	const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(run.stdout)?.[1] ?? 0);
	const [passed, failed] = [count("pass"), count("fail")];
	const wrong = run.status !== 0 || failed > 0 || passed === 0;
	if (wrong) {
		process.stdout.write(run.stdout + run.stderr);
	}
	console.log(`${passed} passed, ${wrong ? Math.max(failed, 1) : 0} failed`);
	process.exitCode = wrong ? 1 : 0;
} finally {
	rmSync(out, { recursive: true, force: true });
}
