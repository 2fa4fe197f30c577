/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read back with pprof_decode(), and by check_pprof.py in test_store.c. */
#include "codec/codec.h"
#include "fake.h"
#include "pb/pb.h"
#include "pprof/pprof.h"

static void ask(const struct query_request *r, struct profile *p)
{
	CLEANUP(buf_deinit) struct buf gzip, plain;
	struct err e = { 0 };
	buf_init(&gzip, 16 << 20);
	buf_init(&plain, 16 << 20);
	CHECK_OK(query_pprof(&fake_engine, r, &gzip, &e), &e);
	CHECK(codec_is_gzip(gzip.data, gzip.len));
	CHECK_OK(codec_gunzip(gzip.data, gzip.len, &plain, &e), &e);
	CHECK(profile_init(p, 64 << 20) == OK);
	CHECK_OK(pprof_decode(buf_view(&plain), STR("x"), p, &e), &e);
}

static struct str string(const struct profile *p, uint32_t id)
{
	return profile_str(p, id);
}

/* Sum of the samples of the type with that unit, and with that label. */
static int64_t sum_of(
	const struct profile *p, const char *unit, const char *label, const char *value)
{
	int64_t sum = 0;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_type *t = &p->types.v[p->heads.v[s->head].type];
		const struct profile_labels *set = &p->label_sets.v[s->own];
		bool has = !label;
		for (uint32_t k = 0; k < set->count; k++) {
			const struct profile_label *l = &p->labels.v[set->first + k];
			has |= label && str_eq(string(p, l->name), str_of(label)) &&
			       (!value || str_eq(string(p, l->value), str_of(value)));
		}
		if (has && str_eq(string(p, t->sample_unit), str_of(unit)))
			sum += s->value;
	}
	return sum;
}

static void gives_counts_and_time(void **state)
{
	(void)state;
	struct profile p;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, NS_PER_SEC, 2, PERIOD, "comm=a,pid=7,cpu=1,thread_id=9",
		"main@/bin/app;f>g@/bin/app");
	fake_sample(
		CPU, NS_PER_SEC, 3, PERIOD, "comm=b,pid=8,cpu=2", "main@/bin/app;0x10@/bin/app");
	ask(&r, &p);
	CHECK(sum_of(&p, "count", NULL, NULL) == 5);
	CHECK(sum_of(&p, "nanoseconds", NULL, NULL) == 5 * PERIOD);
	CHECK(sum_of(&p, "nanoseconds", "comm", "a") == 2 * PERIOD);
	CHECK(sum_of(&p, "count", "pid", "8") == 3);
	CHECK(sum_of(&p, "count", "cpu", NULL) == 0); /* would make each sample its own */
	CHECK(sum_of(&p, "count", "thread_id", NULL) == 0);
	CHECK(strtab_find(&p.strings, STR("g")) != MAP_NONE);
	CHECK(strtab_find(&p.strings, STR("sym_0x10")) != MAP_NONE);
	profile_deinit(&p);
	r.by[r.by_count++] = STR("cpu");
	ask(&r, &p);
	CHECK(sum_of(&p, "count", "cpu", "2") == 3 && sum_of(&p, "count", "comm", NULL) == 0);
	profile_deinit(&p);
}

static void has_both_columns_for_every_period(void **state)
{
	(void)state;
	struct profile p;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, NS_PER_SEC, 2, PERIOD, "comm=a", "main@x");
	fake_sample(CPU, NS_PER_SEC, 3, 1, "comm=b", "main@x");
	ask(&r, &p);
	CHECK(sum_of(&p, "count", NULL, NULL) == 5);
	CHECK(sum_of(&p, "nanoseconds", "comm", "b") == 3);
	CHECK(sum_of(&p, "nanoseconds", NULL, NULL) == 2 * PERIOD + 3);
	profile_deinit(&p);
}

static void keeps_what_matches(void **state)
{
	(void)state;
	struct profile p;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, NS_PER_SEC, 2, PERIOD, "", "main@x;outer>Inner@x;leaf@x");
	fake_sample(CPU, NS_PER_SEC, 3, PERIOD, "", "main@x;leaf@x");
	r.match = STR("inner");
	ask(&r, &p);
	CHECK(sum_of(&p, "count", NULL, NULL) == 2);
	CHECK(sum_of(&p, "nanoseconds", NULL, NULL) == 2 * PERIOD);
	profile_deinit(&p);
	r.match = STR("leaf");
	ask(&r, &p);
	CHECK(sum_of(&p, "count", NULL, NULL) == 5);
	profile_deinit(&p);
	r.match = STR("nowhere");
	ask(&r, &p);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
}

static void leaves_other_units_alone(void **state)
{
	(void)state;
	struct profile p;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, NS_PER_SEC, 2048, 0, "", "main@/bin/app");
	ask(&r, &p);
	CHECK(sum_of(&p, "bytes", NULL, NULL) == 2048 && p.samples.len == 1);
	profile_deinit(&p);
}

static void is_empty_without_samples(void **state)
{
	(void)state;
	struct profile p;
	CLEANUP(buf_deinit) struct buf out;
	struct query_request r = fake_request("");
	struct err e = { 0 };
	buf_init(&out, 1 << 16);
	CHECK(query_pprof(&fake_engine, &r, &out, &e) == E_NOTFOUND);
	CHECK_STR(str_of(e.text), "there are no samples yet, of any type");
	r = fake_request(HEAP);
	ask(&r, &p);
	CHECK(p.samples.len == 0);
	/* What reads it merges it with others of the type. */
	CHECK(p.types.len == 2);
	CHECK_STR(profile_str(&p, p.types.v[1].sample_type), "inuse_space");
	CHECK_STR(profile_str(&p, p.types.v[1].period_unit), "bytes");
	profile_deinit(&p);
}

/* More than is compressed at once. */
static void writes_many_bytes(void **state)
{
	(void)state;
	enum { DEPTH = 1900, SAMPLES = 2400, AT_ONCE = 4 << 20 };
	static char stack[DEPTH * 8];
	struct profile p;
	struct query_request r = fake_request(CPU);
	size_t len = 0;
	for (int i = 0; i < DEPTH; i++)
		len += (size_t)snprintf(
			stack + len, sizeof(stack) - len, "%sf%d@b", i ? ";" : "", i % 100);
	fake_sample(CPU, NS_PER_SEC, 1, PERIOD, "comm=0", stack);
	struct profile_sample sample = fake_profile.samples.v[0];
	struct profile_label label = { 0 };
	CHECK(profile_add_string(&fake_profile, STR("comm"), &label.name) == OK);
	for (int i = 1; i < SAMPLES; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%d", i);
		CHECK(profile_add_string(&fake_profile, str_of(text), &label.value) == OK);
		CHECK(profile_add_labels(&fake_profile, &label, 1, &sample.resource) == OK);
		CHECK(profile_add_sample(&fake_profile, &sample) == OK);
	}
	static_assert(DEPTH * SAMPLES > AT_ONCE, "what pprof.c compresses at once");
	ask(&r, &p);
	CHECK(sum_of(&p, "count", NULL, NULL) == SAMPLES);
	CHECK(sum_of(&p, "nanoseconds", "comm", "2399") == PERIOD);
	CHECK(p.stacks.v[p.samples.v[0].stack].count == DEPTH);
	profile_deinit(&p);
	r.match = STR("f100");
	ask(&r, &p);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
}

/* One sample for equal stacks and labels, whatever their periods. */
static void adds_up_periods(void **state)
{
	(void)state;
	struct profile p;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, NS_PER_SEC, 2, PERIOD, "comm=a", "main@/bin/app");
	fake_sample(CPU, NS_PER_SEC, 3, 10, "comm=a", "main@/bin/app");
	fake_sample(CPU, NS_PER_SEC, 4, 0, "comm=a", "main@/bin/app");
	fake_sample(CPU, NS_PER_SEC, 5, 10, "comm=b", "main@/bin/app");
	ask(&r, &p);
	CHECK(p.samples.len == 2 * 2);
	CHECK(sum_of(&p, "count", "comm", "a") == 9 && sum_of(&p, "count", "comm", "b") == 5);
	CHECK(sum_of(&p, "nanoseconds", "comm", "a") == 2 * PERIOD + 34);
	CHECK(sum_of(&p, "nanoseconds", "comm", "b") == 50);
	profile_deinit(&p);
}

/* The string that field 13 of the message refers to is the text; NULL: there is none. */
static void check_comment(const struct query_request *r, const char *text)
{
	CLEANUP(buf_deinit) struct buf gzip, plain;
	struct err e = { 0 };
	struct pb_field f;
	uint64_t comment = 0, strings = 0;
	bool found = false;
	buf_init(&gzip, 1 << 20);
	buf_init(&plain, 1 << 20);
	CHECK_OK(query_pprof(&fake_engine, r, &gzip, &e), &e);
	CHECK_OK(codec_gunzip(gzip.data, gzip.len, &plain, &e), &e);
	struct reader m = reader_over(plain.data, plain.len);
	while (pb_next(&m, &f)) /* strings come last */
		if (f.number == 13)
			comment = f.u64;
		else if (f.number == 6 && strings++ == comment)
			found = text && comment && str_eq(f.bytes, str_of(text));
	CHECK(!m.failed && found == (text != NULL) && (comment != 0) == found);
}

/* Of more labels than a sample may have, those that are left out are counted in a comment. */
static void says_what_is_left_out(void **state)
{
	(void)state;
	struct profile p;
	struct query_request r = fake_request(CPU);
	const char *comment =
		"firn: 2 labels are left out, 128 are the most; ask for those you need (by=)";
	fake_sample(CPU, NS_PER_SEC, 1, PERIOD, "cpu=1", "main@x");
	for (int i = 0; i < 130; i++) {
		char label[16];
		snprintf(label, sizeof(label), "l%03d=v", i);
		if (i == 128) {
			ask(&r, &p);
			CHECK(p.samples.len == 2 * 129);
			check_comment(&r, NULL);
			profile_deinit(&p);
		}
		fake_sample(CPU, NS_PER_SEC, 1, PERIOD, label, "main@x");
	}
	r.note = STR("firn: what it shows");
	check_comment(&r, "firn: what it shows"); /* the last of two */
	r.note = STR("");
	ask(&r, &p);
	check_comment(&r, comment);
	CHECK(sum_of(&p, "count", "l127", "v") == 1);
	CHECK(sum_of(&p, "count", NULL, NULL) == 131 && sum_of(&p, "count", "l128", NULL) == 0);
	profile_deinit(&p);
	r.by[r.by_count++] = STR("l128");
	ask(&r, &p);
	check_comment(&r, NULL);
	CHECK(sum_of(&p, "count", "l128", "v") == 1);
	profile_deinit(&p);
}

static void passes_failures_on(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_request r = fake_request(CPU);
	struct err e = { 0 };
	buf_init(&out, 16);
	fake_sample(CPU, NS_PER_SEC, 2, PERIOD, "", "main@/bin/app");
	CHECK(query_pprof(&fake_engine, &r, &out, &e) == E_LIMIT);
	fake_error = E_IO;
	CHECK(query_pprof(&fake_engine, &r, &out, &e) == E_IO);
	fake_error = OK;
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(gives_counts_and_time), WITH_STORE(has_both_columns_for_every_period),
	WITH_STORE(keeps_what_matches), WITH_STORE(leaves_other_units_alone),
	WITH_STORE(is_empty_without_samples), WITH_STORE(passes_failures_on),
	WITH_STORE(writes_many_bytes), WITH_STORE(adds_up_periods),
	WITH_STORE(says_what_is_left_out))
