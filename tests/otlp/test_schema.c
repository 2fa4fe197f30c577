/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One content in each version of the schema gives the same profile; and what a message shows of its
 * version. Field numbers are those of opentelemetry-proto v1.7.0, v1.8.0, v1.9.0 and v1.11.0,
 * written out again here.
 */
#include "test.h"

#include "otlp/decoder.h"
#include "otlp/otlp.h"
#include "pb/pb.h"
#include "profile_dump.h"

#define TIME 1700000000000000000ULL
#define MEMORY ((size_t)16 << 20)

enum version { V1_7, V1_8, V1_9, V1_11, VERSIONS };
static const char *const version_names[] = { "1.7", "1.8", "1.9", "1.11" };

struct content {
	bool no_values, no_times, no_attributes, no_link, no_profile_id, no_period_type;
};

/* Element 0 is empty, but in 1.7, where it is one of many. */
static void put_null(struct buf *b, uint32_t table, enum version v)
{
	if (v != V1_7)
		pb_put_str_always(b, table, STR(""));
}

static void put_text(
	struct buf *b, const char *key, uint64_t index, const char *value, enum version v)
{
	size_t a = pb_begin(b, 6), any;
	if (v == V1_7)
		pb_put_str(b, 1, str_of(key));
	else
		pb_put_u64(b, 1, index);
	any = pb_begin(b, 2);
	pb_put_str(b, 1, str_of(value));
	pb_end(b, any);
	pb_end(b, a);
}

static const char *const strings[] = { "", "samples", "count", "cpu", "nanoseconds", "/bin/x",
	"main", "process.executable.build_id.gnu", "profile.frame.type", "thread.id", "main.c" };

static void put_dictionary(struct buf *b, enum version v)
{
	size_t d = pb_begin(b, 2), at, line;
	uint64_t first = v == V1_7 ? 0 : 1; /* the first real element */
	put_null(b, 1, v);
	at = pb_begin(b, 1);
	pb_put_u64(b, 4, 5);
	pb_put_packed_u64(b, 5, (uint64_t[]){ first }, 1);
	pb_end(b, at);
	put_null(b, 2, v);
	for (uint64_t i = 0; i < 2; i++) {
		at = pb_begin(b, 2);
		pb_put_u64_always(b, 1, first);
		pb_put_u64(b, 2, 0x1000 + i);
		line = pb_begin(b, 3);
		pb_put_u64_always(b, 1, first);
		pb_put_u64(b, 2, 7 + i);
		pb_end(b, line);
		pb_put_packed_u64(b, v == V1_7 ? 5 : 4, (uint64_t[]){ first + 1 }, 1);
		pb_end(b, at);
	}
	put_null(b, 3, v);
	at = pb_begin(b, 3);
	pb_put_u64(b, 2, 6); /* only a system name */
	pb_put_u64(b, 3, 10);
	pb_end(b, at);
	put_null(b, 4, v);
	at = pb_begin(b, 4);
	pb_put_str(b, 1, STR("0123456789abcdef"));
	pb_put_str(b, 2, STR("01234567"));
	pb_end(b, at);
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		pb_put_str_always(b, 5, str_of(strings[i]));
	put_null(b, 6, v);
	put_text(b, strings[7], 7, "abcd", v);
	put_text(b, strings[8], 8, "ruby", v);
	put_text(b, strings[9], 9, "42", v);
	if (v == V1_7) { /* attribute_units, no stacks */
		at = pb_begin(b, 7);
		pb_put_u64(b, 1, 9);
		pb_put_u64(b, 2, 2);
		pb_end(b, at);
	} else {
		put_null(b, 7, v);
		at = pb_begin(b, 7);
		pb_put_packed_u64(b, 1, (uint64_t[]){ 2, 1 }, 2);
		pb_end(b, at);
	}
	pb_end(b, d);
}

static void put_sample(struct buf *b, enum version v, const struct content *c)
{
	/*                                 values, attributes, link, times */
	static const uint32_t numbers[][4] = { { 3, 4, 5, 6 }, { 2, 3, 4, 5 }, { 2, 3, 4, 5 },
		{ 4, 2, 3, 5 } };
	const uint32_t *n = numbers[v];
	size_t s = pb_begin(b, 2), at;
	if (v == V1_7) {
		pb_put_u64(b, 1, 1);
		pb_put_u64(b, 2, 2);
	} else {
		pb_put_u64(b, 1, 1);
	}
	for (uint32_t field = 2; field < 7; field++) {
		if (field == n[0] && !c->no_values)
			pb_put_packed_u64(
				b, n[0], (uint64_t[]){ 5, 6 }, c->no_times && v != V1_7 ? 1 : 2);
		if (field == n[1] && !c->no_attributes)
			pb_put_packed_u64(b, n[1], (uint64_t[]){ v == V1_7 ? 2 : 3 }, 1);
		if (field == n[2] && !c->no_link)
			pb_put_u64_always(b, n[2], v == V1_7 ? 0 : 1);
		if (field != n[3] || c->no_times)
			continue;
		if (v == V1_7) {
			pb_put_packed_u64(b, 6, (uint64_t[]){ TIME + 1, TIME + 2 }, 2);
			continue;
		}
		at = pb_begin(b, 5);
		buf_u64(b, TIME + 1);
		buf_u64(b, TIME + 2);
		pb_end(b, at);
	}
	pb_end(b, s);
}

static void put_pair(struct buf *b, uint32_t field, uint64_t x, uint64_t y)
{
	size_t at = pb_begin(b, field);
	pb_put_u64(b, 1, x);
	pb_put_u64(b, 2, y);
	pb_end(b, at);
}

static void put_profile(struct buf *b, enum version v, const struct content *c)
{
	size_t p = pb_begin(b, 2);
	put_pair(b, 1, 1, 2);
	if (v == V1_7 && c->no_times)
		put_pair(b, 1, 3, 4); /* a second sample type for the second value */
	put_sample(b, v, c);
	if (v == V1_7) {
		pb_put_packed_u64(b, 3, (uint64_t[]){ 0, 1, 0 }, 3);
		pb_put_u64(b, 4, TIME);
		pb_put_u64(b, 5, 1000000000);
	} else {
		pb_put_fixed64(b, 3, TIME);
		pb_put_u64(b, 4, 1000000000);
	}
	if (!c->no_period_type)
		put_pair(b, v == V1_7 ? 6 : 5, 3, 4);
	pb_put_u64(b, v == V1_7 ? 7 : 6, 1000);
	if (!c->no_profile_id)
		pb_put_str(b, (uint32_t[]){ 10, 8, 7, 7 }[v], STR("0123456789abcdef"));
	pb_put_packed_u64(
		b, (uint32_t[]){ 14, 12, 11, 11 }[v], (uint64_t[]){ v == V1_7 ? 2 : 3 }, 1);
	pb_end(b, p);
}

static void put_request(struct buf *b, enum version v, const struct content *c)
{
	size_t rp = pb_begin(b, 1), sp = pb_begin(b, 2);
	put_profile(b, v, c);
	pb_end(b, sp);
	pb_end(b, rp);
	put_dictionary(b, v);
}

static void decode(enum version v, const struct content *c, struct buf *got)
{
	struct profile p;
	struct buf b;
	struct otlp_rejects rejects;
	struct err e = { 0 };
	buf_init(&b, MEMORY);
	put_request(&b, v, c);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK_OK(otlp_decode(buf_view(&b), &p, &rejects, &e), &e);
	if (rejects.profiles)
		print_error("[%s] %s\n", version_names[v], rejects.reason);
	CHECK(rejects.profiles == 0);
	CHECK_OK(profile_validate(&p, &e), &e);
	CHECK(profile_dump(&p, got));
	profile_deinit(&p);
	buf_deinit(&b);
}

/* clang-format off */
static const struct { const char *name; struct content c; } contents[] = {
	{ "whole", { 0 } },
	{ "no link", { .no_link = true } },
	{ "no attributes", { .no_attributes = true } },
	{ "no id", { .no_profile_id = true, .no_attributes = true } },
	{ "timestamps alone", { .no_values = true } },
	{ "values alone", { .no_times = true } },
	{ "values and nothing else", { .no_times = true, .no_attributes = true, .no_link = true } },
	{ "no period type", { .no_period_type = true } },
};
/* clang-format on */

static void versions_agree(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, contents) {
		struct buf want;
		buf_init(&want, MEMORY);
		decode(V1_11, &c->c, &want);
		CHECK_CASE(c, want.len > 100);
		for (int v = 0; v < VERSIONS - 1; v++) {
			struct buf got;
			/* Without profile_id 1.8 looks like 1.9, whose attributes of a profile have
			 * another number; two values of one sample are of 1.7 alone. */
			if ((v == V1_8 && c->c.no_profile_id) || (v == V1_7 && c->c.no_times))
				continue;
			buf_init(&got, MEMORY);
			decode((enum version)v, &c->c, &got);
			if (!str_eq(buf_view(&got), buf_view(&want))) {
				print_error("[%s of %s] got:\n%.*swant:\n%.*s", c->name,
					version_names[v], STR_ARG(buf_view(&got)),
					STR_ARG(buf_view(&want)));
				fail();
			}
			buf_deinit(&got);
		}
		buf_deinit(&want);
	}
}

/* 1.7: a value for each sample type. */
static void splits_columns(void **state)
{
	(void)state;
	struct buf got;
	buf_init(&got, MEMORY);
	decode(V1_7, &(struct content){ .no_times = true, .no_attributes = true, .no_link = true },
		&got);
	buf_u8(&got, 0);
	const char *text = (const char *)got.data;
	CHECK(strstr(text, "5 unknown:samples:count:cpu:nanoseconds:delta period=1000"));
	CHECK(strstr(text, "6 unknown:cpu:nanoseconds:cpu:nanoseconds:delta period=1000"));
	CHECK(strstr(text, "(main|main|main.c|0:8:0;)"));
	buf_deinit(&got);
}

static void knows_what_it_reads(void **state)
{
	(void)state;
	static const enum otlp_schema schemas[] = { SCHEMA_1_7, SCHEMA_1_8, SCHEMA_1_9,
		SCHEMA_1_10 };
	for (int v = 0; v < VERSIONS; v++) {
		struct buf b;
		buf_init(&b, MEMORY);
		put_request(&b, (enum version)v, &(struct content){ 0 });
		CHECK(otlp_schema_of(buf_view(&b)) == schemas[v]);
		buf_deinit(&b);
	}
	CHECK(otlp_schema_of(STR("")) == SCHEMA_1_10);
	CHECK(otlp_schema_of(STR("\xFF\xFF")) == SCHEMA_1_10);
}

/* Before 1.7 each profile had its own tables: there is no dictionary, and the refusal says so. */
static void refuses_what_is_older(void **state)
{
	(void)state;
	struct profile p;
	struct buf b;
	struct otlp_rejects rejects;
	struct err e;
	buf_init(&b, MEMORY);
	size_t rp = pb_begin(&b, 1), sp = pb_begin(&b, 2), profile = pb_begin(&b, 2);
	pb_put_str(&b, 10, STR("a string table"));
	pb_end(&b, profile);
	pb_end(&b, sp);
	pb_end(&b, rp);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK(otlp_decode(buf_view(&b), &p, &rejects, &e) == E_INVALID);
	CHECK(strstr(e.text, "no dictionary (OTLP profiles before 1.7 are not taken)"));
	profile_deinit(&p);
	buf_deinit(&b);
}

static void refuses_ranges_beyond(void **state)
{
	(void)state;
	struct profile p;
	struct buf b;
	struct otlp_rejects rejects;
	struct err e;
	buf_init(&b, MEMORY);
	size_t rp = pb_begin(&b, 1), sp = pb_begin(&b, 2), profile = pb_begin(&b, 2);
	put_pair(&b, 1, 1, 2);
	size_t s = pb_begin(&b, 2);
	pb_put_u64(&b, 1, 2);
	pb_put_u64(&b, 2, 2);
	pb_put_packed_u64(&b, 3, (uint64_t[]){ 1 }, 1);
	pb_end(&b, s);
	pb_put_packed_u64(&b, 3, (uint64_t[]){ 0, 1, 0 }, 3);
	pb_put_u64(&b, 4, TIME);
	pb_end(&b, profile);
	pb_end(&b, sp);
	pb_end(&b, rp);
	put_dictionary(&b, V1_7);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK_OK(otlp_decode(buf_view(&b), &p, &rejects, &e), &e);
	CHECK(rejects.profiles == 1 &&
		strstr(rejects.reason, "samples[0].locations_length: 4 is out of range"));
	profile_deinit(&p);
	buf_deinit(&b);
}

/* Ranges that overlap: the time they take is bounded, whatever a few bytes say. */
static void bounds_overlapping_ranges(void **state)
{
	(void)state;
	enum { PLACES = 100000, SAMPLES = 1 << 17 };
	struct profile p;
	struct buf b;
	struct otlp_rejects rejects;
	struct err e;
	static uint64_t places[PLACES];
	buf_init(&b, MEMORY);
	size_t rp = pb_begin(&b, 1), sp = pb_begin(&b, 2), profile = pb_begin(&b, 2);
	put_pair(&b, 1, 1, 2);
	for (int i = 0; i <= SAMPLES; i++) {
		size_t s = pb_begin(&b, 2);
		pb_put_u64(&b, 2, PLACES);
		pb_end(&b, s);
	}
	pb_put_packed_u64(&b, 3, places, PLACES);
	pb_put_u64(&b, 4, TIME);
	pb_end(&b, profile);
	pb_end(&b, sp);
	pb_end(&b, rp);
	put_dictionary(&b, V1_7);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK(otlp_decode(buf_view(&b), &p, &rejects, &e) == E_LIMIT);
	CHECK(strstr(e.text, "frames together") != NULL);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
	buf_deinit(&b);
}

/* A resource with `count` attributes around two profiles, the first with one of its own. */
static void put_resource(struct buf *b, int count, bool same)
{
	char key[32];
	size_t rp = pb_begin(b, 1), resource = pb_begin(b, 1);
	for (int i = 0; i < count; i++) {
		size_t a = pb_begin(b, 1), any;
		snprintf(key, sizeof(key), "k%d", same ? 0 : i);
		pb_put_str(b, 1, str_of(key));
		any = pb_begin(b, 2);
		pb_put_str(b, 1, i ? STR("later") : STR("first"));
		pb_end(b, any);
		pb_end(b, a);
	}
	pb_end(b, resource);
	size_t sp = pb_begin(b, 2);
	for (int i = 0; i < 2; i++) {
		size_t profile = pb_begin(b, 2), s;
		put_pair(b, 1, 1, 2);
		s = pb_begin(b, 2);
		pb_put_packed_u64(b, 3, (uint64_t[]){ 1 }, 1);
		pb_end(b, s);
		pb_put_packed_u64(b, 3, (uint64_t[]){ 0 }, 1);
		pb_put_u64(b, 4, TIME);
		pb_end(b, profile);
	}
	pb_end(b, sp);
	pb_end(b, rp);
	put_dictionary(b, V1_7);
}

static void bounds_attributes(void **state)
{
	(void)state;
	struct profile p;
	struct buf b;
	struct otlp_rejects rejects;
	struct err e;
	for (int same = 0; same < 2; same++) {
		buf_init(&b, MEMORY);
		put_resource(&b, 1000, same);
		CHECK(profile_init(&p, MEMORY) == OK);
		CHECK_OK(otlp_decode(buf_view(&b), &p, &rejects, &e), &e);
		CHECK(rejects.profiles == (same ? 0 : 2));
		CHECK(same || strstr(rejects.reason, "attributes: more than 128"));
		CHECK(p.samples.len == (same ? 2 : 0));
		if (same) {
			const struct profile_labels *set = &p.label_sets.v[p.samples.v[1].resource];
			CHECK(set->count == 1 &&
				p.samples.v[0].resource == p.samples.v[1].resource);
			CHECK_STR(profile_str(&p, p.labels.v[set->first].value), "first");
		}
		profile_deinit(&p);
		buf_deinit(&b);
	}
}

static void bounds_values(void **state)
{
	(void)state;
	struct profile p;
	struct buf b;
	struct otlp_rejects rejects;
	struct err e;
	static uint64_t zeros[OTLP_OBSERVATIONS_MAX + 1];
	buf_init(&b, MEMORY);
	size_t rp = pb_begin(&b, 1), sp = pb_begin(&b, 2), profile = pb_begin(&b, 2);
	put_pair(&b, 1, 1, 2);
	size_t s = pb_begin(&b, 2);
	pb_put_packed_u64(&b, 3, zeros, OTLP_OBSERVATIONS_MAX + 1);
	pb_end(&b, s);
	pb_put_packed_u64(&b, 3, (uint64_t[]){ 0 }, 1);
	pb_put_u64(&b, 4, TIME);
	pb_end(&b, profile);
	pb_end(&b, sp);
	pb_end(&b, rp);
	put_dictionary(&b, V1_7);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK_OK(otlp_decode(buf_view(&b), &p, &rejects, &e), &e);
	CHECK(rejects.profiles == 1 &&
		strstr(rejects.reason, "samples[0].values: more than 1048576"));
	profile_deinit(&p);
	buf_deinit(&b);
}

TEST_MAIN(cmocka_unit_test(versions_agree), cmocka_unit_test(splits_columns),
	cmocka_unit_test(knows_what_it_reads), cmocka_unit_test(refuses_what_is_older),
	cmocka_unit_test(refuses_ranges_beyond), cmocka_unit_test(bounds_overlapping_ranges),
	cmocka_unit_test(bounds_attributes), cmocka_unit_test(bounds_values))
