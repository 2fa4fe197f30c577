// SPDX-License-Identifier: Apache-2.0
// Links that other tools keep, opened over samples that were sent for them: a server that takes profiles is needed.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { message } from "../../ui/dev/pprof.mjs";
import { painted, untilName } from "./page.mjs";

export const linkFirnOnly = new Set(["a link from a trace opens the page on just that span"]);

/** profile.proto of main → a function, by span: [span id, name of the function, nanoseconds]. */
function profileOf(spans) {
	const strings = ["", "cpu", "nanoseconds", "span_id", "main", ...spans.flatMap(([id, name]) => [id, name])];
	const at = (text) => strings.indexOf(text);
	const functions = ["main", ...spans.map(([, name]) => name)];
	return message(
		[1, message([1, 1], [2, 2])],
		...spans.map(([id, , value], i) => [2, message([1, [i + 2, 1]], [2, value], [3, message([1, 3], [2, at(id)])])]),
		...functions.flatMap((name, i) => [
			[4, message([1, i + 1], [4, message([1, i + 1])])],
			[5, message([1, i + 1], [2, at(name)])],
		]),
		...strings.map((text) => [6, text]),
		[11, message([1, 1], [2, 2])],
		[12, 10_000_000],
	);
}

async function push(page, url, profile) {
	const labels = [
		{ name: "__name__", value: "process_cpu" },
		{ name: "service_name", value: "traced" },
	];
	const samples = [{ rawProfile: Buffer.from(profile).toString("base64") }];
	const answer = await page.request.post(`${url}/push.v1.PusherService/Push`, { data: { series: [{ labels, samples }] } });
	assert.equal(answer.status(), 200, await answer.text());
}

export const linkChecks = {
	async "a link from a trace opens the page on just that span"({ page, url }) {
		const [wanted, other] = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")];
		const spans = [
			[wanted, "charge", 30_000_000],
			[other, "browse", 70_000_000],
		];
		await push(page, url, profileOf(spans));
		// as docs/traces.md has it for Jaeger
		await page.goto(`${url}/?query=%7Bspan_id%3D%22${wanted}%22%7D&from=now-7d`);
		await painted(page);
		assert.equal(await page.locator("[data-testid=request] b").textContent(), wanted);
		await untilName(page, 1, 0.05, "main", "the root's callee");
		await untilName(page, 2, 0.05, "charge", "the span's function");
		await untilName(page, 2, 0.95, "charge", "nothing beside it");
		await page.locator("[data-testid=request] button").click();
		await untilName(page, 2, 0.05, "browse", "without the span both");
	},
};
