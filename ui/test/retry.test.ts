// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAwaited, isPassing, retryWait } from "../src/model/retry.ts";

test("what may be answered later is asked again, and what is wrong is not", () => {
	for (const status of [429, 502, 503, 504]) {
		assert.ok(isPassing(status, "UNAVAILABLE"));
	}
	assert.ok(isPassing(0, ""), "the server was not reached");
	assert.ok(!isPassing(0, "CLIENT"), "a fault of the page is not mended by asking");
	assert.ok(!isPassing(400, "INVALID") && !isPassing(404, "") && !isPassing(422, "LIMIT"));
});

test("waits grow, have an end, and heed the server", () => {
	assert.ok(retryWait(1, 0) < 1000);
	assert.ok(retryWait(3, 0.5) > retryWait(2, 0.5));
	assert.ok(retryWait(50, 0.99) < 20_000);
	assert.equal(retryWait(1, 0, 5000), 5000);
	assert.notEqual(retryWait(4, 0.1), retryWait(4, 0.9), "pages do not come back together");
});

test("an answer that will not come is not awaited", () => {
	assert.ok(isAwaited(null, null));
	assert.ok(isAwaited(null, { status: 503, code: "UNAVAILABLE" }));
	assert.ok(!isAwaited(null, { status: 400, code: "INVALID" }), "a selector that does not parse");
	assert.ok(!isAwaited({}, null));
});
