/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_dump.h"
#include "test.h"

#include "checker.h"
#include "codec/codec.h"
#include "pb/pb.h"
#include "pprof/pprof.h"

/* ---- real files ---- */

static const char *const files[] = { "alloc_objects", "fgprof", "profile-with-labels", "profile1",
	"single-stack", "two-stacks" };

/* Our reading of a real profile is the checker's, and survives being written again. */
static void check_real(const char *path)
{
	CLEANUP(buf_deinit) struct buf zipped, raw, want, got, again;
	buf_init(&zipped, 64 << 20);
	buf_init(&raw, 64 << 20);
	buf_init(&want, 256 << 20);
	buf_init(&got, 256 << 20);
	buf_init(&again, 64 << 20);
	struct err e;
	CHECK_OK(os_read_file(path, &zipped, &e), &e);
	CHECK_OK(codec_gunzip(zipped.data, zipped.len, &raw, &e), &e);
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 64 << 20) == OK);
	CHECK_OK(pprof_decode(buf_view(&raw), STR("real"), &p, &e), &e);
	CHECK_OK(profile_validate(&p, &e), &e);
	CHECK(p.samples.len > 0);
	CHECK(profile_dump(&p, &got));
	check_file(path, "real", &want);
	check_same(path, buf_view(&got), buf_view(&want));

	CHECK_OK(pprof_encode(&p, &again, &e), &e);
	buf_clear(&got);
	check_bytes(&again, "real", &got);
	check_same("written again", buf_view(&got), buf_view(&want));
}

static void reads_real_files(void **state)
{
	(void)state;
	size_t found = 0;
	const char *data = getenv("FIRN_TEST_DATA");
	if (!data)
		data = SOURCE_ROOT "/../shared/data";
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		char path[512];
		snprintf(path, sizeof(path), "%s/pprof/%s.pb.gz", data, files[i]);
		if (access(path, R_OK) != 0)
			continue;
		found++;
		check_real(path);
	}
	if (found == 0)
		SKIP("no profiles in %s/pprof (FIRN_TEST_DATA)", data);
	CHECK(found == ARRAY_COUNT(files));
}

/* ---- built field by field ---- */

struct file {
	uint64_t mapping_id, function_id, location_id, sample_location, line_function;
	uint64_t location_mapping, string, label_key, label_str;
	int values; /* 1 + how many; 0: two, as the sample types */
	bool unpacked, no_type, no_strings, first_string, twice, number_label, negative_time;
};

static void put_value_type(struct buf *b, uint32_t field, uint64_t type, uint64_t unit)
{
	size_t t = pb_begin(b, field);
	pb_put_u64(b, 1, type);
	pb_put_u64(b, 2, unit);
	pb_end(b, t);
}

static void put_sample(struct buf *b, const struct file *q)
{
	size_t s = pb_begin(b, 2), label;
	uint64_t location = q->sample_location ? q->sample_location : 700;
	int values = q->values ? q->values - 1 : 2;
	if (q->unpacked) {
		pb_put_u64(b, 1, location);
		pb_put_u64(b, 1, location);
	} else {
		pb_put_packed_u64(b, 1, (uint64_t[]){ location, location }, 2);
	}
	for (int i = 0; i < values; i++)
		pb_put_u64_always(b, 2, (uint64_t)i * 5);
	label = pb_begin(b, 3);
	pb_put_u64(b, 1, q->label_key ? q->label_key : 5);
	if (q->number_label)
		pb_put_i64(b, 3, -42);
	else
		pb_put_u64(b, 2, q->label_str ? q->label_str : 6);
	pb_end(b, label);
	pb_end(b, s);
}

static void put_tables(struct buf *b, const struct file *q)
{
	size_t m = pb_begin(b, 3);
	pb_put_u64(b, 1, q->mapping_id == 1 ? 0 : 90);
	pb_put_u64(b, 2, 0x1000);
	pb_put_u64(b, 3, 0x2000);
	pb_put_u64(b, 5, q->string ? q->string : 7);
	pb_put_u64(b, 6, 8);
	pb_end(b, m);
	for (int i = 0; i < (q->twice ? 2 : 1); i++) {
		size_t l = pb_begin(b, 4);
		pb_put_u64(b, 1, q->location_id == 1 ? 0 : 700);
		pb_put_u64(b, 2, q->location_mapping ? q->location_mapping : 90);
		pb_put_u64(b, 3, 0x1234);
		size_t line = pb_begin(b, 4);
		pb_put_u64(b, 1, q->line_function == 1 ? 0 : q->line_function ? 3 : 2);
		pb_put_u64(b, 2, 77);
		pb_end(b, line);
		pb_end(b, l);
	}
	size_t f = pb_begin(b, 5);
	pb_put_u64(b, 1, q->function_id == 1 ? 0 : 2);
	pb_put_u64(b, 2, 9);
	pb_end(b, f);
}

static void put_file(struct buf *b, const struct file *q)
{
	static const char *const strings[] = { "", "samples", "count", "cpu", "nanoseconds",
		"span.id", "abc", "/bin/x", "ABCD", "main" };
	if (!q->no_type)
		put_value_type(b, 1, 1, 2);
	if (!q->no_type)
		put_value_type(b, 1, 3, 4);
	put_sample(b, q);
	put_tables(b, q);
	for (size_t i = 0; i < ARRAY_COUNT(strings) && !q->no_strings; i++)
		pb_put_str_always(b, 6, str_of(i == 0 && q->first_string ? "x" : strings[i]));
	pb_put_i64(b, 9, q->negative_time ? -1 : 1700000000000000000);
	put_value_type(b, 11, 3, 4);
	pb_put_u64(b, 12, 10000000);
}

#define WANT(label)                                                         \
	"5 n_1:cpu:nanoseconds:cpu:nanoseconds period=10000000 duration=0 " \
	"time=1700000000000000000 {} {span_id=" label ",} link=" FRAME FRAME "\n"
#define FRAME " 1234@1000-2000+0,/bin/x,ABCD/(main|||0:77:0;)"

/* clang-format off */
static const struct {
	const char *name; struct file q; const char *want;
} taken[] = {
	{ "sparse ids",   { 0 },                     WANT("abc") },
	{ "unpacked",     { .unpacked = true },      WANT("abc") },
	{ "number label", { .number_label = true },  WANT("-42") },
};

static const struct {
	const char *name; struct file q; const char *why;
} refused[] = {
	{ "mapping id 0",      { .mapping_id = 1 },        "mapping[0]: id 0" },
	{ "function id 0",     { .function_id = 1 },       "function[0]: id 0" },
	{ "location id 0",     { .location_id = 1 },       "location[0]: id 0" },
	{ "id twice",          { .twice = true },          "location[1]: id 700 is taken" },
	{ "no location",       { .sample_location = 701 }, "sample[0]: location_id 701 does not exist" },
	{ "no mapping",        { .location_mapping = 91 }, "location[0]: mapping_id 91 does not" },
	{ "no function",       { .line_function = 3 },     "function_id 3 does not exist" },
	{ "line without one",  { .line_function = 1 },     "function_id 0 does not exist" },
	{ "no string",         { .string = 10 },           "mapping[0]: filename 10 does not exist" },
	{ "label's key",       { .label_key = 99 },        "a label's key 99 does not exist" },
	{ "label's text",      { .label_str = 99 },        "a label's str 99 does not exist" },
	{ "too few values",    { .values = 2 },            "sample[0]: 1 values for 2 sample types" },
	{ "too many values",   { .values = 4 },            "sample[0]: 3 values for 2 sample types" },
	{ "no types",          { .no_type = true },        "samples without sample_type" },
	{ "no strings",        { .no_strings = true },     "no string_table" },
	{ "first string",      { .first_string = true },   "string_table[0]: not empty" },
	{ "before 1970",       { .negative_time = true },  "negative" },
};
/* clang-format on */

static void takes_what_writers_write(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, taken) {
		CLEANUP(buf_deinit) struct buf b, got;
		buf_init(&b, 1 << 20);
		buf_init(&got, 1 << 20);
		put_file(&b, &c->q);
		CLEANUP(profile_deinit) struct profile p;
		CHECK(profile_init(&p, 1 << 20) == OK);
		struct err e;
		CHECK_OK(pprof_decode(buf_view(&b), STR("n-1"), &p, &e), &e);
		CHECK_OK(profile_validate(&p, &e), &e);
		CHECK_CASE(c, p.zero_samples == 1); /* the first value of two */
		CHECK(profile_dump(&p, &got));
		check_same(c->name, buf_view(&got), str_of(c->want));
	}
}

static void refuses_and_says_why(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, refused) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1 << 20);
		put_file(&b, &c->q);
		CLEANUP(profile_deinit) struct profile p;
		CHECK(profile_init(&p, 1 << 20) == OK);
		struct err e;
		CHECK_CASE(c, pprof_decode(buf_view(&b), STR("n"), &p, &e) == E_INVALID);
		CHECK_CASE(c, p.samples.len == 0);
		if (!strstr(e.text, c->why)) {
			print_error("[%s] \"%s\"\n", c->name, e.text);
			fail();
		}
	}
}

/* One stack of ids, in a file of LOCATIONS locations. */
#define LOCATIONS 300

static enum status decode_ids(
	const uint64_t *ids, size_t count, bool moved, struct profile *p, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	put_value_type(&b, 1, 1, 2);
	size_t s = pb_begin(&b, 2);
	pb_put_packed_u64(&b, 1, ids, count);
	pb_put_u64(&b, 2, 5);
	pb_end(&b, s);
	for (uint64_t i = 1; i <= LOCATIONS; i++) {
		size_t l = pb_begin(&b, 4);
		pb_put_u64(&b, 1, i);
		pb_put_u64(&b, 3, moved && i == 2 ? 0x1001 : 0x1000 + i);
		pb_end(&b, l);
	}
	for (int i = 0; i < 3; i++)
		pb_put_str_always(&b, 6, str_of(i ? "x" : ""));
	CHECK(profile_init(p, 1 << 20) == OK);
	return pprof_decode(buf_view(&b), STR("n"), p, e);
}

/* Ids of one and two bytes, alone and next to each other; also where two of them are one location.
 */
static void reads_ids_of_any_length(void **state)
{
	(void)state;
	uint64_t ids[64];
	for (uint64_t seed = 1; seed < 400; seed++) {
		size_t count = 1 + seed % ARRAY_COUNT(ids);
		for (size_t i = 0; i < count; i++) {
			uint64_t x = hash_u64(seed * 64 + i);
			ids[i] = 1 + (x % 8 == 0 ? x / 8 % 127 : 127 + x / 8 % (LOCATIONS - 127));
		}
		for (int moved = 0; moved < 2; moved++) {
			CLEANUP(profile_deinit) struct profile p;
			struct err e;
			CHECK_OK(decode_ids(ids, count, moved, &p, &e), &e);
			const struct profile_stack *st = &p.stacks.v[p.samples.v[0].stack];
			CHECK(st->count == count);
			for (size_t i = 0; i < count; i++) {
				uint64_t want = moved && ids[i] == 2 ? 1 : ids[i];
				uint32_t at = p.stack_locations.v[st->first + i];
				CHECK(p.locations.v[at].address == 0x1000 + want);
			}
		}
	}
}

static void refuses_ids_beyond_the_table(void **state)
{
	(void)state;
	for (size_t at = 0; at < 8; at++) {
		CLEANUP(profile_deinit) struct profile p;
		struct err e;
		uint64_t ids[8];
		for (size_t i = 0; i < 8; i++)
			ids[i] = i == at ? LOCATIONS + 1 : LOCATIONS;
		CHECK(decode_ids(ids, 8, false, &p, &e) == E_INVALID);
		CHECK(strstr(e.text, "sample[0]: location_id 301 does not exist"));
	}
}

static void torn_files_are_refused(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	put_file(&b, &(struct file){ 0 });
	size_t strings = 0; /* whole once the string table is */
	for (size_t len = 1; len < b.len; len++) {
		CLEANUP(profile_deinit) struct profile p;
		CHECK(profile_init(&p, 1 << 20) == OK);
		struct err e = { 0 };
		enum status s = pprof_decode(str_make(b.data, len), STR("n"), &p, &e);
		CHECK(s == OK || (s == E_INVALID && e.text[0] && p.samples.len == 0));
		strings += s == OK;
	}
	CHECK(strings <= 4); /* cut between the last scalar fields */
}

static void memory_is_limited(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	put_file(&b, &(struct file){ 0 });
	for (int i = 0; i < 2000; i++)
		put_sample(&b, &(struct file){ 0 });
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 32 << 10) == OK);
	struct err e;
	CHECK(pprof_decode(buf_view(&b), STR("n"), &p, &e) == E_LIMIT);
	CHECK(p.samples.len == 0 && strstr(e.text, "sample["));
}

TEST_MAIN(cmocka_unit_test(reads_real_files), cmocka_unit_test(takes_what_writers_write),
	cmocka_unit_test(refuses_and_says_why), cmocka_unit_test(reads_ids_of_any_length),
	cmocka_unit_test(refuses_ids_beyond_the_table), cmocka_unit_test(torn_files_are_refused),
	cmocka_unit_test(memory_is_limited))
