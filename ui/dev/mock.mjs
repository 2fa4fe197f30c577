// SPDX-License-Identifier: Apache-2.0
// A server with made samples and the page of dist/, for development and for tests of the page:
//   node dev/mock.mjs [--port N] [--size tiny|small|normal|big] [--empty] [--delay MS]
// --empty: without samples until SIGUSR2 comes.
// Writes "http://127.0.0.1:PORT" to stdout once it listens. Headers are those of the real server.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { agentsOf } from "./agents.mjs";
import { chartOf } from "./chart.mjs";
import { coresAt, PROCESSES } from "./data.mjs";
import { snapshotOf } from "./pprof.mjs";
import { metrics } from "./metrics.mjs";
import { instructionsOf, sourceOf } from "./source.mjs";
import { flameOf, groupsOf, makeStacks, topOf } from "./tree.mjs";

const dist = join(dirname(fileURLToPath(import.meta.url)), "../dist");
const TYPE = "parca_agent:samples:count:cpu:nanoseconds:delta";
const ALLOC = "memory:alloc_space:bytes:space:bytes:delta";
const SIZES = {
	tiny: { stacks: 12, depth: 1 },
	small: { stacks: 2500, depth: 5 },
	normal: { stacks: 9000, depth: 5 },
	big: { stacks: 16000, depth: 12 },
};

const argument = (name, usual) => {
	const at = process.argv.indexOf(`--${name}`);
	return at < 0 ? usual : process.argv[at + 1];
};
const size = SIZES[argument("size", "normal")];
const delayMs = Number(argument("delay", "0"));
const empty = process.argv.includes("--empty");
let firstMs = Date.now() + (empty ? 1e12 : -40 * 60_000);
process.on("SIGUSR2", () => {
	firstMs = Date.now();
});
let flames = 0;
let views = [];

class Bad extends Error {}

function parseTime(text, now) {
	if (text === "now") {
		return now;
	}
	const ago = /^now-(\d+)([smhd])$/.exec(text);
	if (ago) {
		return now - Number(ago[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[ago[2]];
	}
	const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text);
	if (Number.isNaN(ms)) {
		throw new Bad(`from/to: "${text}" is not a time`);
	}
	return ms;
}

function parseSelector(text) {
	const match = /^([^{]*)(?:\{(.*)\})?$/s.exec(text);
	if (!match) {
		throw new Bad(`query: at byte ${text.length}: "}" is missing`);
	}
	const matchers = [];
	let rest = match[2] ?? "";
	while (rest.trim() !== "") {
		const one = /^\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(,|$)/.exec(rest);
		if (!one) {
			const at = text.length - rest.length - 1;
			throw new Bad(
				`query: at byte ${at}: expected label="value", found ${JSON.stringify(rest.trim().slice(0, 12))}`,
			);
		}
		const value = one[3].replace(/\\(.)/g, "$1");
		matchers.push({ label: one[1], op: one[2], test: tester(one[2], value) });
		rest = rest.slice(one[0].length);
	}
	return { type: match[1] || TYPE, matchers };
}

function tester(op, value) {
	if (op === "=" || op === "!=") {
		return (v) => (v === value) === (op === "=");
	}
	try {
		const pattern = new RegExp(`^(?:${value})$`);
		return (v) => pattern.test(v) === (op === "=~");
	} catch {
		throw new Bad(`query: ${JSON.stringify(value)} is not a regular expression`);
	}
}

function ask(p) {
	const now = Date.now();
	const { type, matchers } = parseSelector(p.get("query") ?? TYPE);
	const from = Math.max(parseTime(p.get("from") ?? "now-15m", now), firstMs);
	const to = Math.min(parseTime(p.get("to") ?? "now", now), now);
	const known = type === TYPE || type === ALLOC;
	const processes = known
		? PROCESSES.filter((one) => matchers.every((m) => m.test(one.labels[m.label] ?? "")))
		: [];
	return { from, to, processes, unit: type === ALLOC ? "bytes" : "nanoseconds" };
}

function stacksOf({ from, to, processes }) {
	const parts = [];
	for (const one of processes) {
		let value = 0;
		const step = Math.max(10_000, (to - from) / 100);
		for (let t = from; t < to; t += step) {
			value += coresAt(one, t) * Math.min(step, to - t) * 1e6;
		}
		if (value > 0) {
			parts.push([one, value]);
		}
	}
	return makeStacks(parts, size.stacks, size.depth, 7);
}

function series(p) {
	const { from, to, processes, unit } = ask(p);
	const by = p.getAll("by");
	const stepText = p.get("step") ?? "10";
	const stepMs = 1000 * Number.parseFloat(stepText);
	const groups = new Map();
	for (const one of processes) {
		const labels = Object.fromEntries(by.map((l) => [l, one.labels[l] ?? ""]));
		const key = JSON.stringify(labels);
		const group = groups.get(key) ?? { labels, members: [] };
		group.members.push(one);
		groups.set(key, group);
	}
	const out = [...groups.values()].map(({ labels, members }) => {
		const points = [];
		for (let t = Math.floor(from / stepMs) * stepMs; t < to; t += stepMs) {
			const length = Math.min(t + stepMs, to) - Math.max(t, from);
			const sum = members.reduce((a, m) => a + coresAt(m, t), 0);
			points.push([t, Math.round(sum * length * 1e6)]);
		}
		return { labels, points };
	});
	const sum = (s) => s.points.reduce((a, [, v]) => a + v, 0);
	out.sort((a, b) => sum(b) - sum(a));
	const limit = Number(p.get("limit") ?? 0) || out.length;
	const rest = out.splice(limit);
	if (rest.length > 0) {
		const points = rest[0].points.map(([t], i) => [
			t,
			rest.reduce((a, s) => a + s.points[i][1], 0),
		]);
		out.push({ other: true, points });
	}
	return { unit, step: stepMs, by, series: out };
}

function answer(path, p) {
	const now = Date.now();
	if (path === "/api/types") {
		const none = now < firstMs;
		const one = (type, unit) => ({ type, unit, delta: true, first: firstMs, last: now });
		return { types: none ? [] : [one(TYPE, "nanoseconds"), one(ALLOC, "bytes")] };
	}
	if (path === "/api/labels") {
		const names = new Set(ask(p).processes.flatMap((one) => Object.keys(one.labels)));
		return { labels: [...names].sort() };
	}
	const values = /^\/api\/labels\/(\w+)\/values$/.exec(path);
	if (values) {
		const all = new Set(
			ask(p)
				.processes.map((one) => one.labels[values[1]])
				.filter(Boolean),
		);
		return { values: [...all].sort() };
	}
	if (path === "/api/series") {
		return series(p);
	}
	if (path === "/api/flamegraph") {
		flames++;
		const pending = flames < 3 && size !== SIZES.tiny ? 41 : 0;
		const options = {
			invert: p.get("invert") === "1",
			trim: Number(p.get("trim") ?? 1e-4),
			pending,
		};
		const question = ask(p);
		const stacks = stacksOf(question);
		return { ...flameOf(stacks, { ...options, groups: groupsOf(stacks, p.get("by"), Number(p.get("limit") ?? 10)) }), unit: question.unit };
	}
	if (path === "/api/flamechart") return chartOf(ask(p), p.get("by") ?? "", size.depth);
	if (path === "/api/top") {
		return { ...topOf(stacksOf(ask(p)), Number(p.get("limit") ?? 0)), unit: ask(p).unit };
	}
	if (path === "/api/source") return sourceOf(topOf(stacksOf(ask(p)), 0), ask(p).unit, p.get("file") ?? "");
	if (path === "/api/instructions") return instructionsOf(topOf(stacksOf(ask(p)), 0), ask(p).unit, p.get("function"), p.get("binary"));
	if (path === "/api/annotations") {
		return { annotations: [{ time: now - 300_000, text: "deploy v1.2" }] };
	}
	if (path === "/api/views") {
		const name = p.get("name");
		views = views.filter((view) => view.name !== name);
		if (p.has("url")) views.push({ time: now, name, url: p.get("url") });
		return { views };
	}
	if (path === "/api/snapshots") return { id: "snapshotsnapshotsnapshotaaaa", path: "/shared/snapshotsnapshotsnapshotaaaa", expires: now + 864e5 };
	if (path === "/api/agents") return { agents: now < firstMs ? [] : agentsOf(now) };
	if (path === "/api/targets") {
		const discoveries = [
			{ job: "api", key: "static_configs", found: "2", lastError: "" },
			{ job: "web", key: "dns_sd_configs", found: "0", lastError: "web.example: no answer from 10.0.0.2" },
		];
		return { discoveries, targets: { api: { targets: [target("http://127.0.0.1:6060/debug/pprof/profile", ""), target("http://127.0.0.1:6061/debug/pprof/profile", "connection refused")] } } };
	}
	return null;
}

function target(url, lastError) {
	return {
		discoveredLabels: { labels: [{ name: "__address__", value: new URL(url).host }, { name: "job", value: "api" }] },
		labels: { labels: [{ name: "job", value: "api" }, { name: "instance", value: new URL(url).host }] },
		nextScrape: new Date(Date.now() + 6000).toISOString(),
		lastError,
		lastScrape: new Date(Date.now() - 4000).toISOString(),
		lastScrapeDuration: "1.002s",
		url,
		health: lastError ? "HEALTH_BAD" : "HEALTH_GOOD",
	};
}

const TYPES = {
	".html": "text/html; charset=utf-8",
	".js": "text/javascript",
	".css": "text/css",
	".svg": "image/svg+xml",
};
const POLICY =
	"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

function send(request, response, status, type, body) {
	const headers = { "content-type": type, "cache-control": "no-cache" };
	if (/\bgzip\b/.test(request.headers["accept-encoding"] ?? "") && body.length > 500) {
		body = gzipSync(body, { level: 1 });
		headers["content-encoding"] = "gzip";
	}
	if (type.startsWith("text/html")) {
		headers["content-security-policy"] = POLICY;
	}
	response.writeHead(status, headers).end(body);
}

const server = createServer((request, response) => {
	const url = new URL(request.url, "http://localhost");
	if (url.pathname.startsWith("/api/")) {
		setTimeout(() => {
			let status = 200;
			let body;
			try {
				body = answer(url.pathname, url.searchParams);
				if (!body) {
					status = 404;
					body = { error: `there is nothing at ${url.pathname}`, code: "NOT_FOUND" };
				}
			} catch (e) {
				status = e instanceof Bad ? 400 : 500;
				body = { error: e.message, code: status === 400 ? "INVALID" : "INTERNAL" };
			}
			send(request, response, status, "application/json", Buffer.from(JSON.stringify(body)));
		}, delayMs);
		return;
	}
	if (url.pathname === "/shared/snapshotsnapshotsnapshotaaaa") {
		send(request, response, 200, "application/octet-stream", snapshotOf(TYPE, Date.now()));
		return;
	}
	if (url.pathname === "/metrics") {
		send(request, response, 200, "text/plain", Buffer.from(metrics(firstMs)));
		return;
	}
	const name = url.pathname.slice(1) || "index.html";
	const path = join(dist, name);
	if (!/^[\w.-]+$/.test(name) || !existsSync(path)) {
		send(request, response, 404, "text/plain", Buffer.from("not found\n"));
		return;
	}
	send(request, response, 200, TYPES[extname(name)] ?? "application/octet-stream", readFileSync(path));
});
// a request on a connection that is closed just then would fail: connections stay open
server.keepAliveTimeout = 0;
server.listen(Number(argument("port", "0")), "127.0.0.1", () => {
	console.log(`http://127.0.0.1:${server.address().port}`);
});
