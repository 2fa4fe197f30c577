// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { versionMarks } from "../src/model/marks.ts";

test("a version is marked where it begins, if others were there before", () => {
	const series = [
		{ labels: { version: "1.1" }, points: [[1000, 5], [1010, 5]] as [number, number][] },
		{ labels: { version: "1.2" }, points: [[1050, 5]] as [number, number][] },
		{ labels: {}, points: [[1050, 5]] as [number, number][] },
	];
	assert.deepEqual(versionMarks({ series, step: 10 }, 1000), [{ ms: 1050, text: "1.2" }]);
	assert.deepEqual(versionMarks({ series: [], step: 10 }, 1000), []);
});
