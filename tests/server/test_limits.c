/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of single tenants: what a file says, and what becomes of samples by it. */
#include "made.h"
#include "server/ingest.h"

static const struct server_limits base = { .labels = 100,
	.label_name_bytes = 101,
	.label_value_bytes = 102,
	.stack_frames = 103,
	.series = 104,
	.message_bytes = 32 << 20 };

static void takes_what_is_named(void **state)
{
	(void)state;
	CLEANUP(tenant_rules_deinit) struct tenant_rules r = { 0 };
	struct err e;
	CHECK_OK(tenant_rules_parse(
			 STR("# all of them\n\n"
			     "a max-label-names-per-series=1 max-label-name-length=2\t"
			     "max-label-value-length=3 max-series-per-tenant=0 "
			     "max-profile-stacktrace-depth=5 max-profile-size=1MiB # one\n"
			     "  team-* max-series-per-tenant=9\r\n"
			     "team-x max-series-per-tenant=10\n"
			     "\"\" max-series-per-tenant=7"),
			 &base, &r, &e),
		&e);
	const struct server_limits *a = &tenant_rules_find(&r, STR("a"))->limits;
	CHECK(a->labels == 1 && a->label_name_bytes == 2 && a->label_value_bytes == 3);
	CHECK(a->series == 0 && a->stack_frames == 5 && a->message_bytes == 1 << 20);
	const struct server_limits *x = &tenant_rules_find(&r, STR("team-x"))->limits;
	CHECK(x->series == 9 && x->labels == 100 && x->message_bytes == 32 << 20);
	CHECK(tenant_rules_find(&r, STR(""))->limits.series == 7);
	CHECK(!tenant_rules_find(&r, STR("b")) && !tenant_rules_find(&r, STR("aa")));
}

/* clang-format off */
static const struct { const char *name, *text, *says; } refused[] = {
	{ "no limit", "a b=1", "line 1: \"b=1\" is no limit of a tenant" },
	{ "no value", "\na max-series-per-tenant", "line 2: max-series-per-tenant: expected 0 to" },
	{ "too much", "a max-label-names-per-series=257", "expected 1 to 256, got \"257\"" },
	{ "more than the server takes", "a max-profile-size=33MiB", "max-profile-size: expected 65536 to 33554432" },
	{ "negative", "a max-series-per-tenant=-1", "got \"-1\"" },
	{ "no tenant", "a/b max-series-per-tenant=1", "\"a/b\" is no tenant's name" },
	{ "quoted", "\"a\" max-series-per-tenant=1", "is no tenant's name" },
};
/* clang-format on */

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, refused) {
		struct tenant_rules r = { 0 };
		struct err e = { 0 };
		CHECK_CASE(c, tenant_rules_parse(str_of(c->text), &base, &r, &e) == E_INVALID);
		if (!strstr(e.text, c->says)) {
			print_error("[%s] \"%s\"\n", c->name, e.text);
			fail();
		}
		CHECK_CASE(c, r.v.len == 0);
	}
}

/* Two series with one label each. */
static void make_two(struct profile *p)
{
	uint32_t head;
	struct profile_type type = { made_text(p, "cpu"), made_text(p, "samples"),
		made_text(p, "count"), made_text(p, "cpu"), made_text(p, "nanoseconds"), true };
	struct profile_head h = { .period = 1, .time_ns = MADE_NS, .duration_ns = 1000 };
	CHECK(profile_add_type(p, &type, &h.type) == OK);
	CHECK(profile_add_head(p, &h, &head) == OK);
	made_sample(p, head, MADE_NS, 3, "a", "main;f");
	made_sample(p, head, MADE_NS, 2, "bbbbbbbbbbbb", "main;g");
}

static void hold_for_the_tenant(void **state)
{
	(void)state;
	static const struct {
		const char *tenant;
		uint64_t refused;
		const char *says;
	} cases[] = {
		{ "free", 0, "" },
		{ "short", 1, "(--tenant-limits)" },
		{ "few", 1,
			"more than 1 series in an hour: no new ones are taken (--tenant-limits)" },
	};
	char path[96];
	struct err e = { 0 };
	struct str text = STR("short max-label-value-length=8\nfew max-series-per-tenant=1\n"
			      "small max-profile-size=64KiB\n");
	snprintf(path, sizeof(path), "%s/limits", made_dir);
	CHECK_OK(os_replace_file(path, text.p, text.len, 0640, &e), &e);
	CHECK_OK(ingest_init(&made.ingest, &made_config.limits, path, &e), &e);
	made.store = made_store;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct str tenant = str_of(cases[i].tenant);
		struct profile_refused out = { 0 };
		struct profile p;
		CHECK_OK(ingest_profile_init(&made.ingest, tenant, &p, 1000, &e), &e);
		make_two(&p);
		CHECK_OK(ingest_store(
				 &made, INGEST_OTLP, tenant, &p, hash128(&i, sizeof(i)), &out, &e),
			&e);
		CHECK(out.samples == cases[i].refused && p.samples.len == 2 - out.samples);
		CHECK(cases[i].says[0] ? strstr(out.reason, cases[i].says) != NULL
				       : out.reason[0] == 0);
		profile_deinit(&p);
	}
	CHECK(ingest_check_size(&made.ingest, STR("small"), 65537, &e) == E_LIMIT);
	CHECK_STR(str_of(e.text),
		"a message of 65537 bytes; tenant \"small\" may send 65536 (--tenant-limits)");
	CHECK_OK(ingest_check_size(&made.ingest, STR("small"), 65536, &e), &e);
	CHECK_OK(ingest_check_size(&made.ingest, STR("free"), 65537, &e), &e);
	ingest_deinit(&made.ingest);
}

static void a_bad_file_is_named(void **state)
{
	(void)state;
	char path[96];
	struct err e = { 0 };
	snprintf(path, sizeof(path), "%s/limits", made_dir);
	CHECK(ingest_init(&made.ingest, &made_config.limits, path, &e) == E_NOTFOUND);
	ingest_deinit(&made.ingest);
	CHECK_OK(os_replace_file(path, "a b\n", 4, 0640, &e), &e);
	CHECK(ingest_init(&made.ingest, &made_config.limits, path, &e) == E_INVALID);
	CHECK(strstr(e.text, "/limits: line 1: \"b\" is no limit"));
	ingest_deinit(&made.ingest);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, made_setup, made_teardown)
TEST_MAIN(cmocka_unit_test(takes_what_is_named), cmocka_unit_test(refuses_what_it_does_not_know),
	TEST(hold_for_the_tenant), TEST(a_bad_file_is_named))
