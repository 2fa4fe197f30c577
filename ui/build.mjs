// SPDX-License-Identifier: Apache-2.0
// Bundles the page into dist/: index.html, app-HASH.js, app-HASH.css, icon.svg, and a file for each view
// that is fetched when it is opened, with what such files share. `--dev` leaves the
// code readable, `--check` writes nothing and says whether dist/ is what the sources give. Nothing but
// esbuild is needed; everything is deterministic.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
/** The first view as it travels, in bytes: a promise of the design. */
export const GZIP_MAX_BYTES = 70_000;

/** What app.js needs at once is fetched with it, not after it. */
function preloads(metafile) {
	const entry = Object.values(metafile.outputs).find((one) => one.entryPoint === "src/main.tsx");
	return entry.imports
		.filter((one) => one.kind === "import-statement")
		.map((one) => `<link rel="modulepreload" href="${one.path.slice(one.path.lastIndexOf("/") + 1)}">\n`)
		.join("");
}

/** A style sheet NAME.lazy.css is a file of its own; who imports it gets its address (app/style.ts). */
const lazyStyles = {
	name: "lazy styles",
	setup(b) {
		b.onLoad({ filter: /\.lazy\.css$/ }, async ({ path }) => {
			const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: b.initialOptions.minify });
			return { contents: code, loader: "file" };
		});
	},
};

/** The files of the page by name. */
async function makePage(dev) {
	const result = await build({
		absWorkingDir: root,
		entryPoints: { app: "src/main.tsx" },
		outdir: "dist",
		entryNames: "[name]-[hash]",
		chunkNames: "[name]-[hash]",
		splitting: true,
		bundle: true,
		minify: !dev,
		write: false,
		metafile: true,
		format: "esm",
		target: ["chrome100", "firefox102", "safari15.4"],
		jsx: "automatic",
		jsxImportSource: "preact",
		assetNames: "[name]-[hash]",
		plugins: [lazyStyles],
		legalComments: "none",
		banner: { js: "/* firn, Apache-2.0; with preact, MIT. */" },
		logLevel: "warning",
	});
	const files = {};
	let html = readFileSync(join(root, "src/index.html"), "utf8");
	for (const file of result.outputFiles) {
		const name = file.path.slice(file.path.lastIndexOf("/") + 1);
		if (name.startsWith("app-")) {
			html = html.replace(name.endsWith(".js") ? "app.js" : "app.css", name);
		}
		files[name] = Buffer.from(file.contents);
	}
	files["index.html"] = Buffer.from(html.replace("<script", `${preloads(result.metafile)}<script`));
	files["icon.svg"] = readFileSync(join(root, "src/icon.svg"));
	return files;
}

/** Builds into ui/dist and returns the sizes: `{files: {name: bytes}, gzipBytes}`. */
export async function buildPage({ dev = false } = {}) {
	const dist = join(root, "dist");
	const files = await makePage(dev);
	rmSync(dist, { recursive: true, force: true });
	mkdirSync(dist, { recursive: true });
	for (const [name, bytes] of Object.entries(files)) {
		writeFileSync(join(dist, name), bytes);
	}
	return measurePage(dist);
}

/** Names of the files in ui/dist that differ from what the sources give. */
async function staleFiles() {
	const dist = join(root, "dist");
	const files = await makePage(false);
	const there = readdirSync(dist).filter((n) => !n.startsWith("."));
	return [...new Set([...there, ...Object.keys(files)])].filter(
		(name) => !there.includes(name) || !files[name]?.equals(readFileSync(join(dist, name))),
	);
}

/** Sizes of a built page: of its files, and of the first view, gzipped. */
export function measurePage(dist) {
	const files = {};
	const html = readFileSync(join(dist, "index.html"), "utf8");
	let gzipBytes = 0;
	for (const name of readdirSync(dist)
		.filter((n) => !n.startsWith("."))
		.sort()) {
		const bytes = readFileSync(join(dist, name));
		files[name] = bytes.length;
		if (name === "index.html" || html.includes(`"${name}"`)) {
			gzipBytes += gzipSync(bytes, { level: 9 }).length;
		}
	}
	return { files, gzipBytes };
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv.includes("--check")) {
	const stale = await staleFiles();
	for (const name of stale) {
		console.error(`ui/dist/${name} is not what ui/src gives: scripts/setup test builds it`);
	}
	process.exit(stale.length > 0 ? 1 : 0);
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const { files, gzipBytes } = await buildPage({ dev: process.argv.includes("--dev") });
	for (const [name, bytes] of Object.entries(files)) {
		console.log(`dist/${name} ${bytes}`);
	}
	console.log(`${gzipBytes} bytes gzipped for the first view`);
	if (gzipBytes > GZIP_MAX_BYTES && !process.argv.includes("--dev")) {
		console.error(`the first view is larger than ${GZIP_MAX_BYTES} bytes gzipped`);
		process.exit(1);
	}
}
