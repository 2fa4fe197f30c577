/* SPDX-License-Identifier: Apache-2.0 */
/* Files of parca-agent's offline mode, as parca_maker.py writes them. */
#include "made.h"

#include "parca/parca.h"

#define MEMORY ((size_t)64 << 20)

static void is_decoded(const struct made *m)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct parca_offline_sum sum;
	struct err e = { 0 };
	bool is_torn = strcmp(m->name, "offline_torn") == 0;
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK(parca_is_offline(buf_view(&m->arrow)));
	CHECK_OK(parca_offline_decode(buf_view(&m->arrow), MEMORY, &p, &stats, &sum, &e), &e);
	CHECK(sum.batches == sum.told);
	CHECK(sum.batches == (is_torn ? 2 : strcmp(m->name, "offline_none") == 0 ? 0 : 4));
	CHECK((sum.rest_bytes > 0) == is_torn);
	CHECK((stats.no_stack > 0) == (strcmp(m->name, "offline_gaps") == 0));
	made_check(m, &p);
	profile_deinit(&p);
}

static void decodes_files(void **state)
{
	(void)state;
	assert_int_equal(made_each("offline_", is_decoded), 5);
}

/* The batches before the bad one stay. */
static void is_refused(const struct made *m)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct parca_offline_sum sum;
	struct err e = { 0 };
	char wanted[256];
	snprintf(wanted, sizeof(wanted), "%.*s", STR_ARG(buf_view(&m->text)));
	CHECK(profile_init(&p, MEMORY) == OK);
	enum status s = parca_offline_decode(buf_view(&m->arrow), MEMORY, &p, &stats, &sum, &e);
	CHECK(s == E_INVALID || s == E_UNSUPPORTED);
	if (!strstr(e.text, wanted))
		print_error("[%s] got: %s\n", m->name, e.text);
	CHECK(strstr(e.text, wanted));
	CHECK(sum.batches <= sum.told && sum.rest_bytes == 0);
	CHECK((p.samples.len > 0) == (sum.batches > 0));
	CHECK_OK(profile_validate(&p, &e), &e);
	profile_deinit(&p);
}

static void refuses_others(void **state)
{
	(void)state;
	assert_int_equal(made_each("cut_", is_refused), 8);
}

/* Without memory it fails as such, and says so. */
static void has_limits(const struct made *m)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct parca_offline_sum sum;
	struct err e = { 0 };
	CHECK(profile_init(&p, MEMORY) == OK);
	enum status s = parca_offline_decode(buf_view(&m->arrow), 4096, &p, &stats, &sum, &e);
	CHECK((s == E_LIMIT || s == E_NOMEM || s == E_INVALID) && e.text[0]);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
}

static void keeps_within_memory(void **state)
{
	(void)state;
	assert_int_equal(made_each("offline_v", has_limits), 2);
}

TEST_MAIN(cmocka_unit_test(decodes_files), cmocka_unit_test(refuses_others),
	cmocka_unit_test(keeps_within_memory))
