// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { meaningOf, orderLabels, typeName, usualType } from "../src/model/types.ts";

const SAMPLES = "process_cpu:samples:count:cpu:nanoseconds:delta";
const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

test("types are called by what they measure, each by another name", () => {
	const agents = "parca_agent:samples:count:cpu:nanoseconds:delta";
	assert.equal(typeName(agents, [agents]), "CPU");
	assert.equal(typeName(agents, [agents, CPU]), "CPU · agents");
	assert.equal(typeName("memory:inuse_space:bytes:space:bytes"), "Memory in use");
	assert.equal(typeName(CPU, [SAMPLES, CPU]), "CPU");
	assert.equal(typeName(SAMPLES, [SAMPLES, CPU]), "CPU samples");
	assert.equal(typeName(SAMPLES, [SAMPLES, CPU, agents]), "CPU samples · process_cpu");
	const heap = "memory:alloc_space:bytes:space:bytes";
	assert.equal(typeName(heap, [heap, `${heap}:delta`]), "Memory allocated");
	assert.equal(typeName(`${heap}:delta`, [heap, `${heap}:delta`]), "Memory allocated (delta)");
	assert.equal(typeName("x:some_things:count::"), "Some things");
	assert.match(meaningOf("memory:alloc_space:bytes:space:bytes").width, /memory it allocated/);
	assert.match(meaningOf("fgprof:time:nanoseconds:wallclock:nanoseconds:delta").name, /Wall-clock/);
});

test("the page begins with CPU time", () => {
	const of = (...types: string[]) => usualType(types.map((type) => ({ type, delta: type.endsWith(":delta") })));
	const labelled = "cpu_labels:samples:count:cpu:nanoseconds";
	const memory = "memory:inuse_space:bytes:space:bytes";
	assert.equal(of(labelled, memory, SAMPLES, CPU)?.type, CPU);
	assert.equal(of(memory, labelled)?.type, labelled);
	assert.equal(of(memory)?.type, memory);
	assert.equal(of(), null);
	assert.deepEqual(orderLabels(["zone", "pod", "job"]), ["job", "pod", "zone"]);
});
