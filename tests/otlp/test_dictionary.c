/* SPDX-License-Identifier: Apache-2.0 */
/* What the dictionary's elements become, seen through one sample that uses them all. */
#include "test.h"

#include "otlp/otlp.h"
#include "pb/pb.h"

#define GNU "process.executable.build_id.gnu"
#define CONTENT "process.executable.build_id.firn"
#define CONTENT_ID "x00112233445566778899aabbccddeeff"

static void put_any(struct buf *b, uint32_t field, const char *s)
{
	size_t any = pb_begin(b, field);
	pb_put_str(b, 1, str_of(s));
	pb_end(b, any);
}

struct input {
	const char *first[2]; /* the mapping's attributes: key and value */
	const char *second[2];
	const char *kind;      /* the location's profile.frame.type */
	const char *null_text; /* string_table[0] */
	uint32_t lines;
	bool begins_at_0; /* the locations */
};

static void put_attribute(struct buf *b, uint64_t key, const char *value)
{
	size_t a = pb_begin(b, 6);
	pb_put_u64(b, 1, key);
	put_any(b, 2, value);
	pb_end(b, a);
}

static void put_location(struct buf *b, const struct input *in)
{
	/* Element 0 with content is null all the same, unless it has a function. */
	pb_put_str_always(b, 2, in->begins_at_0 ? STR("\x1a\x02\x08\x01") : STR("\x10\x63"));
	size_t at = pb_begin(b, 2);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 0x10);
	for (uint32_t i = 0; i < in->lines; i++) {
		size_t line = pb_begin(b, 3);
		pb_put_u64(b, 1, 1);
		pb_put_u64(b, 2, i + 1);
		pb_end(b, line);
	}
	pb_put_packed_u64(b, 4, (uint64_t[]){ 3 }, 1);
	pb_end(b, at);
}

static void put_dictionary(struct buf *b, const struct input *in)
{
	const char *const strings[] = { in->null_text, "samples", "count", in->first[0],
		in->second[0], "profile.frame.type", "f" };
	size_t d = pb_begin(b, 2), at;
	pb_put_str_always(b, 1, STR(""));
	at = pb_begin(b, 1);
	pb_put_packed_u64(b, 5, (uint64_t[]){ 1, 2 }, 2);
	pb_put_u64(b, 1, 0x1000);
	pb_end(b, at);
	put_location(b, in);
	pb_put_str_always(b, 3, STR(""));
	at = pb_begin(b, 3);
	pb_put_u64(b, 1, 6);
	pb_put_i64(b, 4, -5); /* no line has this number */
	pb_end(b, at);
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		pb_put_str_always(b, 5, str_of(strings[i]));
	pb_put_str_always(b, 6, STR(""));
	put_attribute(b, 3, in->first[1]);
	put_attribute(b, 4, in->second[1]);
	put_attribute(b, 5, in->kind);
	pb_put_str_always(b, 7, STR(""));
	at = pb_begin(b, 7);
	pb_put_packed_u64(b, 1, (uint64_t[]){ 0, 1 }, 2); /* index 0 is no frame */
	pb_end(b, at);
	pb_end(b, d);
}

static void put_request(struct buf *b, const struct input *in)
{
	size_t rp = pb_begin(b, 1), sp = pb_begin(b, 2), p = pb_begin(b, 2);
	size_t at = pb_begin(b, 1);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 2);
	pb_end(b, at);
	at = pb_begin(b, 2);
	pb_put_u64(b, 1, 1);
	pb_put_packed_u64(b, 4, (uint64_t[]){ 3 }, 1);
	pb_end(b, at);
	pb_put_fixed64(b, 3, 1700000000000000000);
	pb_end(b, p);
	pb_end(b, sp);
	pb_end(b, rp);
	put_dictionary(b, in);
}

/* clang-format off */
static const struct {
	const char *name; struct input in; const char *build_id; enum frame_kind kind;
} cases[] = {
	{ "gnu", { { GNU, "AbCd" }, { "x", "y" }, "native", "", 1 }, "AbCd", FRAME_NATIVE },
	{ "gnu before content id", { { GNU, "ab" }, { CONTENT, CONTENT_ID }, "jit", "", 1 },
		"ab", FRAME_JIT },
	{ "gnu after content id", { { CONTENT, CONTENT_ID }, { GNU, "ab" }, "kernel", "", 1 },
		"ab", FRAME_KERNEL },
	{ "content id", { { CONTENT, CONTENT_ID }, { "x", "y" }, "marker", "", 1 },
		CONTENT_ID, FRAME_MARKER },
	{ "htlhash is not kept", { { "process.executable.build_id.htlhash", "abcd" }, { "x", "y" },
		"cobol", "", 1 }, "", FRAME_UNKNOWN },
	{ "another form of id", { { GNU, "a/b-c/d" }, { "x", "y" }, "go", "", 0 }, "a/b-c/d", FRAME_GO },
	{ "no build id", { { "y", "ab" }, { "x", "y" }, "go", "", 0 }, "", FRAME_GO },
	{ "string 0 with text", { { GNU, "ab" }, { "x", "y" }, "go", "what?", 1 }, "ab", FRAME_GO },
	{ "as many lines as fit", { { GNU, "ab" }, { "x", "y" }, "go", "", PROFILE_LINES_MAX },
		"ab", FRAME_GO },
};
/* clang-format on */

static void elements_become_the_tables(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(profile_deinit) struct profile p;
		buf_init(&b, 1 << 20);
		put_request(&b, &c->in);
		CHECK(profile_init(&p, 1 << 20) == OK);
		struct otlp_rejects rejects;
		struct err e;
		CHECK_OK(otlp_decode(buf_view(&b), &p, &rejects, &e), &e);
		CHECK_STR(str_of(rejects.reason), "");
		CHECK_OK(profile_validate(&p, &e), &e);
		CHECK_CASE(c, p.samples.len == 1);
		const struct profile_stack *stack = &p.stacks.v[p.samples.v[0].stack];
		CHECK_CASE(c, stack->count == 1);
		const struct profile_location *l =
			&p.locations.v[p.stack_locations.v[stack->first]];
		const struct profile_mapping *m = &p.mappings.v[l->mapping];
		CHECK_CASE(c, l->address == 0x10 && l->kind == c->kind && m->start == 0x1000);
		CHECK_CASE(c, str_eq(profile_str(&p, m->build_id), str_of(c->build_id)));
		CHECK_CASE(c, profile_str(&p, m->filename).len == 0);
		CHECK_CASE(c, l->line_count == c->in.lines);
		for (uint32_t i = 0; i < l->line_count; i++)
			CHECK_CASE(c, p.lines.v[l->line_first + i].line == i + 1);
		if (l->line_count)
			CHECK_CASE(c,
				p.functions.v[p.lines.v[l->line_first].function].start_line == 0);
	}
}

/* As the canary-exporter of Pyroscope writes them. */
static void locations_may_begin_at_0(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(profile_deinit) struct profile p;
	struct input in = cases[0].in;
	struct otlp_rejects rejects;
	struct err e;
	buf_init(&b, 1 << 20);
	in.begins_at_0 = true;
	put_request(&b, &in);
	CHECK(profile_init(&p, 1 << 20) == OK);
	CHECK_OK(otlp_decode(buf_view(&b), &p, &rejects, &e), &e);
	CHECK_OK(profile_validate(&p, &e), &e);
	const struct profile_stack *stack = &p.stacks.v[p.samples.v[0].stack];
	CHECK(stack->count == 2);
	CHECK(p.locations.v[p.stack_locations.v[stack->first]].address == 0);
	CHECK(p.locations.v[p.stack_locations.v[stack->first]].line_count == 1);
	CHECK(p.locations.v[p.stack_locations.v[stack->first + 1]].address == 0x10);
}

static void too_many_lines_reject_the_profile(void **state)
{
	(void)state;
	const struct input in = { { GNU, "ab" }, { "x", "y" }, "go", "", PROFILE_LINES_MAX + 1 };
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(profile_deinit) struct profile p;
	buf_init(&b, 1 << 20);
	put_request(&b, &in);
	CHECK(profile_init(&p, 1 << 20) == OK);
	struct otlp_rejects rejects;
	CHECK(otlp_decode(buf_view(&b), &p, &rejects, NULL) == OK);
	CHECK(rejects.profiles == 1 && p.samples.len == 0);
	CHECK(strstr(rejects.reason, "location_table[1]: too many lines") ||
		strstr(rejects.reason, "stack_table[1]") || strstr(rejects.reason, "stack_index"));
}

TEST_MAIN(cmocka_unit_test(elements_become_the_tables), cmocka_unit_test(locations_may_begin_at_0),
	cmocka_unit_test(too_many_lines_reject_the_profile))
