// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { magnify, type Part, WHOLE } from "../src/model/magnify.ts";

const wheel = (more: object) => ({
	deltaX: 0,
	deltaY: 0,
	ctrlKey: false,
	metaKey: false,
	shiftKey: false,
	...more,
});

test("Ctrl and the wheel magnify what is below the pointer, and back to the whole", () => {
	const point = (part: Part, x: number) => part.from + x * (part.to - part.from);
	let part: Part = WHOLE;
	for (let i = 0; i < 10; i++) {
		const next = magnify(part, 0.7, wheel({ ctrlKey: true, deltaY: -120 }), 1000)!;
		assert.ok(next.to - next.from < part.to - part.from);
		assert.ok(Math.abs(point(next, 0.7) - point(part, 0.7)) < 1e-9);
		part = next;
	}
	for (let i = 0; i < 1000; i++) {
		part = magnify(part, 0.5, wheel({ ctrlKey: true, deltaY: -240 }), 1000)!;
	}
	assert.ok(part.to > part.from, "it has an end");
	for (let i = 0; i < 1000; i++) {
		part = magnify(part, 0.1, wheel({ ctrlKey: true, deltaY: 240 }), 1000)!;
	}
	assert.deepEqual(part, WHOLE);
});

test("sideways it moves, and plain scrolling is left alone", () => {
	const half = { from: 0.25, to: 0.75 };
	assert.equal(magnify(half, 0.5, wheel({ deltaY: 100 }), 1000), null);
	assert.equal(magnify(WHOLE, 0.5, wheel({ deltaX: 100 }), 1000), null);
	assert.deepEqual(magnify(half, 0.5, wheel({ deltaX: 100 }), 1000), { from: 0.3, to: 0.8 });
	assert.deepEqual(magnify(half, 0.5, wheel({ shiftKey: true, deltaY: -2000 }), 1000), { from: 0, to: 0.5 });
});
