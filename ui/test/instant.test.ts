// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import times from "../../tests/query/times.tsv";
import { parseInstant } from "../src/model/instant.ts";

test("the page reads ends of ranges as the server and the command line do", (t) => {
	process.env.TZ = "Europe/Berlin";
	if (new Date(2026, 6, 1).getTimezoneOffset() !== -120) {
		t.skip("no time zone Europe/Berlin here");
		return;
	}
	const lines = times.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
	assert.ok(lines.length > 40);
	for (const line of lines) {
		const [text, now, end, want] = line.split("\t") as [string, string, string, string];
		const got = parseInstant(text, Date.parse(now), end === "to");
		assert.equal(Number.isNaN(got) ? "-" : got, want === "-" ? want : Date.parse(want), text);
	}
});
