/* SPDX-License-Identifier: Apache-2.0 */
/* Schema v2, as parca-agent lays it out and as others might, against parca_maker.py. */
#include "made.h"

#include "parca/parca.h"

#define MEMORY ((size_t)64 << 20)

static void is_decoded(const struct made *m)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct err e = { 0 };
	CHECK(profile_init(&p, MEMORY) == OK);
	enum status s = parca_arrow_decode(buf_view(&m->arrow), MEMORY, &p, &stats, &e);
	if (s != OK) {
		print_error("[%s] %s: %s\n", m->name, status_name(s), e.text);
		fail();
	}
	CHECK(stats.zero_values > 0 && p.cut_stacks == 1 && stats.no_stack == 0);
	made_check(m, &p);
	profile_deinit(&p);
}

static void decodes_every_layout(void **state)
{
	(void)state;
	assert_int_equal(made_each("v2_", is_decoded), 7);
}

static void is_refused(const struct made *m)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct err e = { 0 };
	char says[256];
	snprintf(says, sizeof(says), "%.*s", STR_ARG(buf_view(&m->text)));
	CHECK(profile_init(&p, MEMORY) == OK);
	enum status s = parca_arrow_decode(buf_view(&m->arrow), MEMORY, &p, &stats, &e);
	if ((s != E_INVALID && s != E_LIMIT) || !strstr(e.text, says)) {
		print_error("[%s] %s: \"%s\" does not say \"%s\"\n", m->name, status_name(s),
			e.text, says);
		fail();
	}
	CHECK(p.samples.len == 0);
	CHECK(profile_validate(&p, &e) == OK);
	profile_deinit(&p);
}

static void refuses_what_is_wrong(void **state)
{
	(void)state;
	CHECK(made_each("bad_", is_refused) >= 20);
}

/* However little memory there is, nothing but E_LIMIT comes of it. */
static void ends_at_its_limit(const struct made *m)
{
	struct parca_arrow_stats stats = { 0 };
	struct err e = { 0 };
	for (size_t memory = 4096; memory < (4 << 20); memory += memory / 3) {
		struct profile p;
		if (profile_init(&p, memory) != OK)
			continue;
		enum status s = parca_arrow_decode(buf_view(&m->arrow), memory, &p, &stats, &e);
		CHECK(s == OK || s == E_LIMIT);
		CHECK(s == OK || p.samples.len == 0);
		profile_deinit(&p);
	}
}

static void keeps_to_its_memory(void **state)
{
	(void)state;
	CHECK(made_each("v2_lz4", ends_at_its_limit) == 1);
}

TEST_MAIN(cmocka_unit_test(decodes_every_layout), cmocka_unit_test(refuses_what_is_wrong),
	cmocka_unit_test(keeps_to_its_memory))
