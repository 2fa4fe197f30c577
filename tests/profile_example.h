/* SPDX-License-Identifier: Apache-2.0 */
/* profile_example: a profile that uses every table, for the encoders' tests. */
#pragma once

#include "test.h"

#include "profile/profile.h"

#define EXAMPLE_TIME_NS 1700000000000000000LL
#define EXAMPLE_DURATION_NS 5000000000LL

static inline uint32_t example_text(struct profile *p, const char *s)
{
	uint32_t id;
	CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

/* "a=b" pairs, NULL at the end. */
static inline uint32_t example_labels(struct profile *p, const char *const *pairs)
{
	struct profile_label labels[16];
	uint32_t n = 0, id;
	for (; pairs[n]; n++) {
		struct str rest = str_of(pairs[n]), name = { 0 };
		CHECK(n < ARRAY_COUNT(labels) && str_split(&rest, '=', &name));
		CHECK(profile_add_string(p, name, &labels[n].name) == OK);
		CHECK(profile_add_string(p, rest, &labels[n].value) == OK);
	}
	CHECK(profile_add_labels(p, labels, n, &id) == OK);
	return id;
}
#define LABELS(p, ...) example_labels((p), (const char *const[]){ __VA_ARGS__, NULL })

static inline uint32_t example_head(struct profile *p, const char *name, const char *type,
	const char *unit, int64_t duration_ns)
{
	struct profile_type t = { example_text(p, name), example_text(p, type),
		example_text(p, unit), example_text(p, "cpu"), example_text(p, "nanoseconds"),
		duration_ns != 0 };
	struct profile_head h = {
		.period = 52631578, .time_ns = EXAMPLE_TIME_NS, .duration_ns = duration_ns
	};
	uint32_t id;
	CHECK(profile_add_type(p, &t, &h.type) == OK);
	CHECK(profile_add_head(p, &h, &id) == OK);
	return id;
}

/* A native location without lines, one with an inlined call, a kernel one, a marker. */
static inline void example_stacks(struct profile *p, uint32_t out[3])
{
	uint32_t locs[4];
	struct profile_mapping file = { .filename = example_text(p, "/usr/bin/stress") };
	CHECK(profile_add_build_id(p, STR("0123456789abcdef"), &file.build_id) == OK);
	struct profile_mapping plain = { 0x400000, 0x500000, 0x1000, example_text(p, "/x\"y"), 0 };
	CHECK(profile_add_build_id(p, STR("x00112233445566778899aabbccddeeff"), &plain.build_id) ==
		OK);
	struct profile_mapping kernel = { .filename = example_text(p, "[kernel.kallsyms]") };
	struct profile_function f = { .name = example_text(p, "work(int)"),
		.system_name = example_text(p, "_Z4worki"),
		.filename = example_text(p, "work.cc"),
		.start_line = 10 };
	struct profile_function g = { .name = example_text(p, "main") };
	struct profile_function k = { .name = example_text(p, "do_syscall_64") };
	struct profile_line lines[2] = { { 0, 12, 3 }, { 0, 99, 0 } }, kernel_line = { 0 };
	CHECK(profile_add_function(p, &f, &lines[0].function) == OK);
	CHECK(profile_add_function(p, &g, &lines[1].function) == OK);
	CHECK(profile_add_function(p, &k, &kernel_line.function) == OK);

	struct profile_location l = { .address = 0x1234, .kind = FRAME_NATIVE };
	CHECK(profile_add_mapping(p, &file, &l.mapping) == OK);
	CHECK(profile_add_location(p, &l, NULL, 0, &locs[0]) == OK);
	l.address = 0x401000;
	CHECK(profile_add_mapping(p, &plain, &l.mapping) == OK);
	CHECK(profile_add_location(p, &l, lines, 2, &locs[1]) == OK);
	l = (struct profile_location){ .address = 0xffffffff81000000ULL, .kind = FRAME_KERNEL };
	CHECK(profile_add_mapping(p, &kernel, &l.mapping) == OK);
	CHECK(profile_add_location(p, &l, &kernel_line, 1, &locs[2]) == OK);
	CHECK(profile_add_marker(p, STR("[truncated]"), &locs[3]) == OK);

	CHECK(profile_add_stack(p, locs, 2, &out[0]) == OK);
	CHECK(profile_add_stack(p, (uint32_t[]){ locs[2], locs[0], locs[1] }, 3, &out[1]) == OK);
	CHECK(profile_add_stack(p, (uint32_t[]){ locs[1], locs[3] }, 2, &out[2]) == OK);
}

static inline void example_add(struct profile *p, int64_t value, int64_t after_ns, uint32_t head,
	uint32_t stack, uint32_t resource, uint32_t own, uint32_t link)
{
	struct profile_sample s = { value, EXAMPLE_TIME_NS + after_ns, head, stack, resource, own,
		link };
	CHECK(profile_add_sample(p, &s) == OK);
}

/* 8 samples in two resources, of a delta and a gauge type. */
static inline void example_profile(struct profile *p)
{
	CHECK(profile_init(p, 16 << 20) == OK);
	uint32_t stacks[3], link;
	example_stacks(p, stacks);
	uint32_t cpu = example_head(p, "parca_agent", "samples", "count", EXAMPLE_DURATION_NS);
	uint32_t heap = example_head(p, "memory", "inuse", "bytes", 0);
	uint32_t one = LABELS(p, "node=here", "comm=stress", "executable=stress", "zone=h\xC3\xA9");
	uint32_t two = LABELS(p, "node=here", "comm=other");
	uint32_t t1 = LABELS(p, "pid=10", "thread_id=11", "thread_name=w 1", "cpu=0");
	uint32_t t2 = LABELS(p, "pid=10", "thread_id=12", "thread_name=w 2", "cpu=1");
	CHECK(profile_add_link(p, &(struct profile_link){ { 1, 2, 3 }, { 9 } }, &link) == OK);
	example_add(p, 1, 0, cpu, stacks[0], one, t1, 0);
	example_add(p, 1, 1000, cpu, stacks[0], one, t1, 0);
	example_add(p, 3, 2000, cpu, stacks[0], one, t1, 0);
	example_add(p, 1, EXAMPLE_DURATION_NS, cpu, stacks[1], one, t2, link);
	example_add(p, 1, EXAMPLE_DURATION_NS + 1, cpu, stacks[1], one, t2, 0); /* outside */
	example_add(p, 7, 0, cpu, stacks[2], two, t1, 0);
	example_add(p, 4096, 0, heap, stacks[2], two, 0, 0);
	example_add(p, -5, 0, heap, 0, two, 0, 0); /* no stack */
}
