// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { endOfSnapshot, readNote } from "../src/model/snapshot.ts";

test("a snapshot says of what it is", () => {
	const span = { fromMs: Date.UTC(2026, 2, 5, 10), toMs: Date.UTC(2026, 2, 5, 11) };
	const note = 'firn: a:b:c:d:e{x=" from 1 to 2"} from 2026-03-05T10:00:00Z to 2026-03-05T11:00:00Z';
	assert.deepEqual(readNote(["other", note]), { type: "a:b:c:d:e", matchers: 'x=" from 1 to 2"', span });
	assert.deepEqual(readNote([`${note} through main`])!.span, span);
	assert.deepEqual(readNote([`${note} through a from 2020-01-01T00:00:00Z to 2020-01-02T00:00:00Z`])!.span, span);
	const named = 'a:b:c:d:e{x="\\" from 2020-01-01T00:00:00Z to 2020-01-02T00:00:00Z"}';
	assert.deepEqual(readNote([`firn: ${named} ${note.slice(note.lastIndexOf("from 2026"))}`])!.span, span);
	for (const matchers of ["x='5\" from 1Z to 2Z'", "x=`\" from 1Z to 2Z`", "x='\\' from 1Z to 2Z'"]) {
		const other = `firn: a:b:c:d:e{${matchers}} ${note.slice(note.lastIndexOf("from 2026"))}`;
		assert.deepEqual(readNote([other]), { type: "a:b:c:d:e", matchers, span });
	}
	for (const none of [[], ["firn: 2 labels are left out"], ["firn: a:b:c:d:e from never to nowZ"]]) {
		assert.equal(readNote(none), null);
	}
});

test("an id says when its snapshot ends", () => {
	assert.equal(endOfSnapshot("a".repeat(22)), null);
	assert.equal(endOfSnapshot(`${"x".repeat(22)}aaaabc`), (32 + 2) * 60_000);
});
