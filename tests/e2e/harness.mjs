// SPDX-License-Identifier: Apache-2.0
// Servers and the browser for the checks of the page.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Headless shell is the same browser without a window; it takes some 40 % less of the processor.
const CHROMIUM = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
	"--no-sandbox",
	"--disable-gpu",
	"--disable-quic",
	"--no-first-run",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-sync",
];

/** Chromium under playwright-core of ui/node_modules, or null where there is none. */
export async function openBrowser(root) {
	const executablePath = CHROMIUM.find((path) => existsSync(path));
	if (!executablePath) {
		return null;
	}
	const require = createRequire(join(root, "ui/package.json"));
	const { chromium } = require("playwright-core");
	return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/** Resolves with the first line that matches; rejects when the process ends before it. */
function firstLine(child, pattern, waitMs) {
	return new Promise((resolve, reject) => {
		let text = "";
		const timer = setTimeout(() => reject(new Error(`no answer in ${waitMs} ms: ${text}`)), waitMs);
		const listen = (chunk) => {
			text += chunk;
			const found = pattern.exec(text);
			if (found) {
				clearTimeout(timer);
				resolve(found);
			}
		};
		child.stdout.on("data", listen);
		child.stderr.on("data", listen);
		child.on("exit", (code) => {
			clearTimeout(timer);
			reject(new Error(`ended with ${code}: ${text}`));
		});
	});
}

/** Whether a process that was started is gone, by itself or by a signal. */
const isGone = (child) => child.exitCode !== null || child.signalCode !== null;

/** How a process ended, in words. */
const howItEnded = (child) => (child.signalCode ? `ended by ${child.signalCode}` : `ended with exit code ${child.exitCode}`);

function stopper(child, then = () => {}) {
	return async () => {
		if (!isGone(child)) {
			const ended = new Promise((resolve) => child.on("exit", resolve));
			child.kill("SIGTERM");
			const timer = setTimeout(() => child.kill("SIGKILL"), 90_000);
			await ended;
			clearTimeout(timer);
		}
		then();
	};
}

/** The server of made samples, on a free port; fill() gives one that is --empty its first ones. */
export async function startMock(root, args) {
	const child = spawn(process.execPath, [join(root, "ui/dev/mock.mjs"), ...args]);
	const [url] = await firstLine(child, /http:\/\/127\.0\.0\.1:\d+/, 90_000);
	return { url, fill: () => child.kill("SIGUSR2"), stop: stopper(child) };
}

/** Whether a server has samples of at least three programs: what a check asks of any host. */
async function hasSamples(url) {
	const answer = await fetch(`${url}/api/labels/comm/values`);
	return answer.ok && (await answer.json()).values.length >= 3;
}

/** `firn up` with a store of its own; resolves once it is ready and has samples. */
export async function startFirn(program) {
	const folder = mkdtempSync(join(tmpdir(), "firn-e2e-"));
	const args = ["up", "--http-address", "127.0.0.1:0", "--storage-path", folder];
	const child = spawn(program, args);
	let said = "";
	const listen = (chunk) => {
		said = (said + chunk).slice(-4000);
	};
	child.stdout.on("data", listen);
	child.stderr.on("data", listen);
	const stop = stopper(child, () => rmSync(folder, { recursive: true, force: true }));
	/** "" while it runs; else how it ended, and what it said last. */
	const gone = () => (isGone(child) ? `firn up ${howItEnded(child)}: ${said}` : "");
	const end = Date.now() + 120_000;
	while (Date.now() < end) {
		const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
		const ok =
			url &&
			(await fetch(`${url}/ready`).then(
				(r) => r.ok && hasSamples(url),
				() => false,
			));
		if (ok) {
			return { url, stop, gone };
		}
		if (isGone(child)) {
			break;
		}
		await new Promise((resolve) => setTimeout(resolve, 200));
	}
	const why = gone() || `firn up is not ready: ${said}`;
	await stop();
	throw new Error(why);
}

/**
 * Makes a page as slow as one on a machine that has other work: its processor `rate` times slower, and 200 ms
 * between the letters that are typed, so that each half of a word is an answer of its own.
 */
export async function slowDown(page, rate) {
	const cdp = await page.context().newCDPSession(page);
	await cdp.send("Emulation.setCPUThrottlingRate", { rate });
	const type = page.keyboard.type.bind(page.keyboard);
	page.keyboard.type = (text, options) => type(text, { delay: 200, ...options });
}

/** Listens for what no check may cause: console errors, exceptions, requests to other hosts. */
export function watch(page) {
	const found = [];
	const requests = [];
	/** Answers with a status that a check wants to see. */
	page.expected = [];
	page.on("console", (message) => {
		// why nothing was found is asked for so, and told by a 404
		const reason = message.location().url.includes("required=1") && message.text().includes("404");
		if ((message.type() === "error" || message.type() === "warning") && !reason) {
			found.push(`console: ${message.text()}`);
		}
	});
	page.on("pageerror", (e) => found.push(`exception: ${e.message}`));
	page.on("request", (request) => requests.push(request.url()));
	return {
		problems(url) {
			const expected = (text) => page.expected.some((part) => text.includes(part));
			const foreign = requests.filter((one) => !one.startsWith(`${url}/`));
			return [
				...found.filter((text) => !expected(text)),
				...foreign
					.filter((one) => !expected(one))
					.map((one) => `a request to another host: ${one}`),
			];
		},
	};
}
