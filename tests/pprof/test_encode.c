/* SPDX-License-Identifier: Apache-2.0 */
/* What is written passes a checker that shares nothing with src/ (pprof_check.py). */
#include "profile_example.h"
#include "test.h"

#include "checker.h"
#include "pprof/pprof.h"
#include "profile_dump.h"

/* Samples of `p` as profile.proto can say them: one time, no kinds, no links, one label set. */
static void simplify(struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++) {
		struct profile_sample *s = &p->samples.v[i];
		s->time_ns = EXAMPLE_TIME_NS;
		s->link = 0;
		struct profile_label labels[32];
		uint32_t n = 0;
		const uint32_t sets[] = { s->resource, s->own };
		for (int j = 0; j < 2; j++)
			for (uint32_t k = 0; k < p->label_sets.v[sets[j]].count; k++)
				labels[n++] = p->labels.v[p->label_sets.v[sets[j]].first + k];
		CHECK(profile_add_labels(p, labels, n, &s->own) == OK);
		s->resource = 0;
	}
	for (size_t i = 0; i < p->locations.len; i++)
		p->locations.v[i].kind = FRAME_UNKNOWN;
}

static void rows_are_read_back(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p, back;
	example_profile(&p);
	p.samples.len = 6; /* those of one profile type */
	CLEANUP(buf_deinit) struct buf message, want, got;
	buf_init(&message, 1 << 20);
	buf_init(&want, 1 << 20);
	buf_init(&got, 1 << 20);
	struct err e;
	CHECK_OK(pprof_encode(&p, &message, &e), &e);
	check_bytes(&message, "parca_agent", &got);
	simplify(&p);
	CHECK(profile_dump(&p, &want));
	check_same("checker", buf_view(&got), buf_view(&want));

	CHECK(profile_init(&back, 1 << 20) == OK);
	CHECK_OK(pprof_decode(buf_view(&message), STR("parca_agent"), &back, &e), &e);
	CHECK(profile_validate(&back, NULL) == OK);
	CHECK(back.samples.len == 3); /* equal stacks and labels are one */
	buf_clear(&got);
	CHECK(profile_dump(&back, &got));
	check_same("decoder", buf_view(&got), buf_view(&want));
}

/* Where both sets have a name, the resource's counts; sets equal when united are one. */
static void label_sets_are_united(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = example_head(&p, "x", "samples", "count", 0);
	example_add(&p, 1, 0, head, 0, LABELS(&p, "a=1", "c=3"), LABELS(&p, "a=9", "b=2"), 0);
	example_add(&p, 1, 0, head, 0, LABELS(&p, "a=1"), LABELS(&p, "b=2", "c=3"), 0);
	example_add(&p, 1, 0, head, 0, LABELS(&p, "c=3"), LABELS(&p, "a=1", "b=2"), 0);
	CLEANUP(buf_deinit) struct buf message, got;
	buf_init(&message, 1 << 20);
	buf_init(&got, 1 << 20);
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	check_bytes(&message, "x", &got);
	CHECK_STR(buf_view(&got), "3 x:samples:count:cpu:nanoseconds period=52631578 duration=0 "
				  "time=1700000000000000000 {} {a=1,b=2,c=3,} link=\n");
}

#define COMMENTS PROFILE_LABEL_COMMENTS "="
#define NUMBERS PROFILE_LABEL_NUMBERS "="

/* Numeric labels come back as they were, by either way of writing. */
static void numbers_stay_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *name, *numbers, *bytes, *want;
	} cases[] = {
		{ "numbers", NUMBERS "request=5,size=-7:kilobytes", "bytes=4096",
			" {" NUMBERS "request=5,size=-7:kilobytes,bytes=4096,}" },
		{ "extremes", NUMBERS "a=9223372036854775807,b=-9223372036854775808,c=0", "bytes=0",
			" {" NUMBERS "a=9223372036854775807,b=-9223372036854775808,c=0,bytes=0,}" },
		{ "no numbers", NUMBERS "a,=3,b=x,c=9223372036854775808,d=01,e=2:", "bytes=007",
			" {" NUMBERS "e=2,bytes=007,}" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(profile_deinit) struct profile p, back;
		CLEANUP(buf_deinit) struct buf message, got;
		CHECK(profile_init(&p, 1 << 20) == OK && profile_init(&back, 1 << 20) == OK);
		uint32_t set = LABELS(&p, c->numbers, c->bytes);
		uint32_t head = example_head(&p, "x", "samples", "count", 0);
		example_add(&p, 1, 0, head, 0, 0, set, 0);
		buf_init(&message, 1 << 20);
		CHECK(pprof_encode(&p, &message, NULL) == OK);
		CHECK_OK(pprof_decode(buf_view(&message), STR("x"), &back, NULL), NULL);
		buf_init(&got, 1 << 20);
		dump_labels(&got, &back, back.samples.v[0].own);
		CHECK_STR(buf_view(&got), c->want);
	}
}

static void comments_stay_comments(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p, back;
	CLEANUP(buf_deinit) struct buf message, got;
	CHECK(profile_init(&p, 1 << 20) == OK && profile_init(&back, 1 << 20) == OK);
	uint32_t head = example_head(&p, "x", "samples", "count", 0);
	example_add(&p, 1, 0, head, 0, 0,
		LABELS(&p,
			COMMENTS "a\x1e"
				 "b c",
			"t=1"),
		0);
	example_add(&p, 1, 0, head, 0, 0,
		LABELS(&p, COMMENTS "d\x1e\x1e"
				    "a"),
		0);
	buf_init(&message, 1 << 20);
	buf_init(&got, 1 << 20);
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	CHECK_OK(pprof_decode(buf_view(&message), STR("x"), &back, NULL), NULL);
	dump_labels(&got, &back, back.samples.v[0].own);
	CHECK_STR(buf_view(&got), " {" COMMENTS "a\x1e"
				  "b c\x1e"
				  "d,t=1,}");
}

/* Several sample types are columns of the same rows. */
static void sample_types_are_columns(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p, back;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t stacks[3];
	example_stacks(&p, stacks);
	uint32_t a = example_head(&p, "memory", "alloc_objects", "count", 10);
	uint32_t b = example_head(&p, "memory", "alloc_space", "bytes", 10);
	example_add(&p, 2, 0, a, stacks[0], 0, 0, 0);
	example_add(&p, 64, 0, b, stacks[0], 0, 0, 0);
	example_add(&p, 3, 0, b, stacks[1], 0, 0, 0);
	CLEANUP(buf_deinit) struct buf message, want, got;
	buf_init(&message, 1 << 20);
	buf_init(&want, 1 << 20);
	buf_init(&got, 1 << 20);
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	simplify(&p);
	check_bytes(&message, "memory", &got);
	CHECK(profile_dump(&p, &want));
	check_same("columns", buf_view(&got), buf_view(&want));
	CHECK(profile_init(&back, 1 << 20) == OK);
	CHECK(pprof_decode(buf_view(&message), STR("memory"), &back, NULL) == OK);
	CHECK(back.stacks.len == 3 && back.samples.len == 3);
	/* The file comes before the kernel, though the kernel's frame came first. */
	CHECK_STR(profile_str(&back, back.mappings.v[1].filename), "/x\"y");
}

/* `go tool pprof` shows the first mapping as the file that the profile is of. */
static void the_main_program_comes_first(void **state)
{
	(void)state;
	static const struct {
		const char *file;
		int64_t value;
	} stacks[] = { { "[kernel.kallsyms]", 90 }, { "/lib/libc.so.6", 80 }, { "libx.so", 70 },
		{ "/bin/small.sock", 3 }, { "/usr/bin/large", 5 }, { "", 60 } };
	CLEANUP(profile_deinit) struct profile p, back;
	CLEANUP(buf_deinit) struct buf message;
	CHECK(profile_init(&p, 1 << 20) == OK && profile_init(&back, 1 << 20) == OK);
	buf_init(&message, 1 << 20);
	uint32_t head = example_head(&p, "cpu", "samples", "count", 10);
	for (uint32_t i = 0; i < ARRAY_COUNT(stacks); i++) {
		struct profile_mapping m = { 0 };
		struct profile_location l = { .address = 16 + i };
		uint32_t location, stack;
		CHECK(profile_add_string(&p, str_of(stacks[i].file), &m.filename) == OK);
		CHECK(profile_add_mapping(&p, &m, &l.mapping) == OK);
		CHECK(profile_add_location(&p, &l, NULL, 0, &location) == OK);
		CHECK(profile_add_stack(&p, &location, 1, &stack) == OK);
		example_add(&p, stacks[i].value, 0, head, stack, 0, 0, 0);
	}
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	CHECK(pprof_decode(buf_view(&message), STR("cpu"), &back, NULL) == OK);
	static const char *const want[] = { "/usr/bin/large", "/bin/small.sock", "/lib/libc.so.6",
		"libx.so", "[kernel.kallsyms]" };
	for (size_t i = 0; i < ARRAY_COUNT(want); i++)
		CHECK_STR(profile_str(&back, back.mappings.v[i + 1].filename), want[i]);
}

static void refuses_what_one_file_cannot_hold(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t a = example_head(&p, "x", "samples", "count", 0);
	uint32_t b = example_head(&p, "x", "other", "count", 0);
	CHECK(profile_add_string(&p, STR("space"), &p.types.v[p.heads.v[b].type].period_type) ==
		OK);
	example_add(&p, 1, 0, a, 0, 0, 0, 0);
	example_add(&p, 1, 0, b, 0, 0, 0, 0);
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	struct err e;
	CHECK(pprof_encode(&p, &message, &e) == E_INVALID);
	CHECK(strstr(e.text, "cpu") && strstr(e.text, "space"));
	p.samples.len = 1; /* a head that no sample has does not count */
	CHECK(pprof_encode(&p, &message, &e) == OK);
	buf_deinit(&message);
	buf_init(&message, 10);
	CHECK(pprof_encode(&p, &message, &e) == E_LIMIT);
}

static void no_samples_is_a_file(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	CLEANUP(buf_deinit) struct buf message, got;
	buf_init(&message, 1 << 20);
	buf_init(&got, 1 << 20);
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	check_bytes(&message, "x", &got);
	CHECK(got.len == 0);
}

/* From long before 1970 until now is longer than the field can say. */
static void durations_are_clamped(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = example_head(&p, "x", "samples", "count", 0);
	example_add(&p, 1, 0, head, 0, 0, 0, 0);
	p.heads.v[head].time_ns = INT64_MIN;
	CLEANUP(buf_deinit) struct buf message, got;
	buf_init(&message, 1 << 20);
	buf_init(&got, 1 << 20);
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	check_bytes(&message, "x", &got);
	CHECK(memmem(got.data, got.len, "duration=9223372036854775807", 28) != NULL);
}

/* What `go tool pprof` would strip has no system name in the file, and has it again when read. */
static void a_name_in_brackets_is_said_once(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool system;
	} names[] = { { "<module>", false }, { "function <app.lua:12>", false }, { "main", true },
		{ "list.<locals>", true } };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		CLEANUP(profile_deinit) struct profile p, back;
		CHECK(profile_init(&p, 1 << 20) == OK && profile_init(&back, 1 << 20) == OK);
		uint32_t head = example_head(&p, "x", "samples", "count", 0);
		example_add(&p, 1, 0, head, 0, 0, 0, 0);
		struct profile_function f = { 0 };
		struct profile_line line = { 0 };
		struct profile_location loc = { .kind = FRAME_UNKNOWN };
		uint32_t location;
		CHECK(profile_add_string(&p, str_of(names[i].name), &f.name) == OK);
		f.system_name = f.name;
		CHECK(profile_add_function(&p, &f, &line.function) == OK);
		CHECK(profile_add_location(&p, &loc, &line, 1, &location) == OK);
		CHECK(profile_add_stack(&p, &location, 1, &p.samples.v[0].stack) == OK);
		CLEANUP(buf_deinit) struct buf message;
		buf_init(&message, 1 << 20);
		CHECK(pprof_encode(&p, &message, NULL) == OK);
		CHECK(pprof_decode(buf_view(&message), STR("x"), &back, NULL) == OK);
		const struct profile_function *got = &back.functions.v[1];
		CHECK_STR(profile_str(&back, got->name), names[i].name);
		CHECK_STR(profile_str(&back, got->system_name), names[i].name);
		bool both = false; /* fields 2 and 3 of a function, with one index */
		for (size_t at = 0; at + 3 < message.len; at++)
			both |= message.data[at] == 0x10 && message.data[at + 2] == 0x18 &&
				message.data[at + 1] == message.data[at + 3];
		CHECK(both == names[i].system);
	}
}

/* Sample by sample, into a buffer that is emptied after each, it is the same file. */
static void a_stream_says_the_same(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t stacks[3];
	example_stacks(&p, stacks);
	uint32_t a = example_head(&p, "memory", "alloc_objects", "count", 10);
	uint32_t b = example_head(&p, "memory", "alloc_space", "bytes", 10);
	uint32_t set = LABELS(&p, "a=1", "c=3");
	for (int i = 0; i < 3; i++) {
		example_add(&p, 2 + i, 0, a, stacks[i], 0, i ? set : 0, 0);
		example_add(&p, 64 * i, 0, b, stacks[i], 0, i ? set : 0, 0);
	}
	CLEANUP(buf_deinit) struct buf message, piece, want, got;
	buf_init(&message, 1 << 20);
	buf_init(&piece, 1 << 20);
	buf_init(&want, 1 << 20);
	buf_init(&got, 1 << 20);
	CHECK(pprof_encode(&p, &message, NULL) == OK);
	check_bytes(&message, "memory", &want);
	buf_clear(&message);

	const uint32_t types[] = { p.heads.v[a].type, p.heads.v[b].type };
	const struct profile_head *head = &p.heads.v[a];
	struct pprof_stream *s;
	CHECK(pprof_stream_new(&p, types, ARRAY_COUNT(types), &s) == OK);
	pprof_stream_types(s, &message);
	for (int i = 0; i < 3; i++) {
		const struct profile_stack *stack = &p.stacks.v[stacks[i]];
		const int64_t values[] = { 2 + i, 64 * i };
		pprof_stream_sample(s, p.stack_locations.v + stack->first, stack->count, values,
			i ? set : 0, &piece);
		buf_put(&message, piece.data, piece.len);
		buf_clear(&piece);
	}
	pprof_stream_tables(s, head->time_ns, head->duration_ns, head->period, &piece);
	buf_put(&message, piece.data, piece.len);
	CHECK(pprof_stream_status(s) == OK);
	pprof_stream_free(s);
	pprof_stream_free(NULL);
	check_bytes(&message, "memory", &got);
	check_same("stream", buf_view(&got), buf_view(&want));
	CHECK(want.len > 0);
}

TEST_MAIN(cmocka_unit_test(the_main_program_comes_first), cmocka_unit_test(numbers_stay_numbers),
	cmocka_unit_test(comments_stay_comments), cmocka_unit_test(a_stream_says_the_same),
	cmocka_unit_test(rows_are_read_back), cmocka_unit_test(label_sets_are_united),
	cmocka_unit_test(sample_types_are_columns),
	cmocka_unit_test(refuses_what_one_file_cannot_hold), cmocka_unit_test(no_samples_is_a_file),
	cmocka_unit_test(durations_are_clamped), cmocka_unit_test(a_name_in_brackets_is_said_once))
