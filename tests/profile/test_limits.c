/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that pass a limit go, with the reason; the others stay as they were. */
#include "test.h"

#include "profile/profile.h"

#define MEMORY ((size_t)16 << 20)
#define NOW 1700000000000000000

static const struct profile_limits limits = { .labels_max = 3,
	.label_name_bytes_max = 10,
	.label_value_bytes_max = 20,
	.time_min_ns = NOW - 1000,
	.time_max_ns = NOW + 1000 };

static uint32_t make_set(struct profile *p, const char *const pairs[], uint32_t count)
{
	struct profile_label labels[8];
	uint32_t id;
	for (uint32_t i = 0; i < count; i++) {
		CHECK(profile_add_name(p, str_of(pairs[2 * i]), &labels[i].name) == OK);
		CHECK(profile_add_string(p, str_of(pairs[2 * i + 1]), &labels[i].value) == OK);
	}
	CHECK(profile_add_labels(p, labels, count, &id) == OK);
	return id;
}

static uint32_t make_head(struct profile *p, int64_t period)
{
	struct profile_type t = { 0 };
	struct profile_head h = { .period = period, .time_ns = NOW };
	uint32_t id;
	CHECK(profile_add_string(p, STR("cpu"), &t.name) == OK);
	CHECK(profile_add_type(p, &t, &h.type) == OK);
	CHECK(profile_add_head(p, &h, &id) == OK);
	return id;
}

struct what {
	const char *name;
	int64_t time, period;
	const char *pairs[8]; /* own labels */
	const char *says;     /* NULL: taken */
	enum profile_refusal reason;
};

/* clang-format off */
static const struct what cases[] = {
	{ "plain", NOW, 1, { "thread", "1" }, NULL, 0 },
	{ "edges", NOW - 1000, 0, { "ten_bytes_", "20 bytes, just so it" }, NULL, 0 },
	{ "last", NOW + 1000, 1, { 0 }, NULL, 0 },
	{ "old", NOW - 1001, 1, { 0 }, "time 2023-11-14T22:13:19Z (1699999999999998999 ns) is before",
		PROFILE_REFUSED_OLD },
	{ "1970", 0, 1, { 0 }, "time 1970-01-01T00:00:00Z (0 ns) is before", PROFILE_REFUSED_OLD },
	{ "before 1970", -5000000000, 1, { 0 }, "time 1969-12-31", PROFILE_REFUSED_OLD },
	{ "2100", 4102444800000000000, 1, { 0 }, "time 2100-01-01T00:00:00Z (4102444800000000000 ns) is in the future",
		PROFILE_REFUSED_FUTURE },
	{ "period", NOW, -1, { 0 }, "period -1", PROFILE_REFUSED_PERIOD },
	{ "label name", NOW, 1, { "eleven_byte", "x" }, "label eleven_byte: its name has 11 bytes; 10 are allowed",
		PROFILE_REFUSED_LABEL_NAME },
	{ "label value", NOW, 1, { "x", "twenty-one bytes long" }, "label x: its value has 21 bytes; 20 are allowed",
		PROFILE_REFUSED_LABEL_VALUE },
	{ "labels", NOW, 1, { "a", "1", "b", "2", "c", "3" }, "4 labels; 3 are allowed", PROFILE_REFUSED_LABELS },
};
/* clang-format on */

static void add_case(struct profile *p, const struct what *c, uint32_t resource)
{
	uint32_t count = 0;
	while (count < 4 && c->pairs[2 * count])
		count++;
	struct profile_sample s = { .value = 1,
		.time_ns = c->time,
		.head = make_head(p, c->period),
		.resource = resource,
		.own = make_set(p, c->pairs, count) };
	CHECK(profile_add_sample(p, &s) == OK);
}

static void names_the_reason(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct profile p;
		struct profile_refused refused;
		struct err e;
		CHECK(profile_init(&p, MEMORY) == OK);
		uint32_t resource = make_set(&p, (const char *const[]){ "node", "n" }, 1);
		add_case(&p, c, resource);
		CHECK(profile_limit(&p, &limits, &refused) == OK);
		CHECK_CASE(c, refused.samples == (c->says != NULL));
		CHECK_CASE(c, p.samples.len == (c->says == NULL));
		CHECK_CASE(c, !c->says || refused.by_reason[c->reason] == 1);
		if (c->says && !strstr(refused.reason, c->says)) {
			print_error("[%s] %s\n", c->name, refused.reason);
			fail();
		}
		CHECK(profile_validate(&p, &e) == OK);
		profile_deinit(&p);
	}
}

static void keeps_the_others(void **state)
{
	(void)state;
	struct profile p;
	struct profile_refused refused;
	uint64_t sum = 0;
	CHECK(profile_init(&p, MEMORY) == OK);
	uint32_t resource = make_set(&p, (const char *const[]){ "node", "n" }, 1);
	for (int round = 0; round < 3; round++)
		FOR_EACH_CASE (c, cases)
			add_case(&p, c, resource);
	CHECK(profile_limit(&p, &limits, &refused) == OK);
	assert_int_equal(p.samples.len, 9);
	assert_int_equal(refused.samples, 3 * (ARRAY_COUNT(cases) - 3));
	for (int i = 0; i < PROFILE_REFUSALS_COUNT; i++) {
		CHECK(refused.by_reason[i] > 0);
		CHECK(profile_refusal_name((enum profile_refusal)i)[0]);
		sum += refused.by_reason[i];
	}
	assert_int_equal(sum, refused.samples);
	for (size_t i = 0; i < p.samples.len; i++)
		CHECK(p.samples.v[i].time_ns >= NOW - 1000 && p.samples.v[i].time_ns <= NOW + 1000);
	CHECK(strstr(refused.reason, "is before")); /* the first */
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(names_the_reason), cmocka_unit_test(keeps_the_others))
