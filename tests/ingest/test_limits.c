/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of single tenants: what a file says, and what becomes of samples by it. */
#include "base/clock.h"
#include "os/os.h"
#include "sink.h"
#include "temp_dir.h"

static const struct ingest_limits base = { .labels = 100,
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
	const struct ingest_limits *a = &tenant_rules_find(&r, STR("a"))->limits;
	CHECK(a->labels == 1 && a->label_name_bytes == 2 && a->label_value_bytes == 3);
	CHECK(a->series == 0 && a->stack_frames == 5 && a->message_bytes == 1 << 20);
	const struct ingest_limits *x = &tenant_rules_find(&r, STR("team-x"))->limits;
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
	static const char *const values[] = { "a", "bbbbbbbbbbbb" };
	struct profile_type type = { .delta = true };
	struct profile_head h = { .period = 1, .time_ns = clock_realtime_ns() };
	uint32_t head;
	CHECK(profile_add_string(p, STR("cpu"), &type.name) == OK);
	CHECK(profile_add_type(p, &type, &h.type) == OK);
	CHECK(profile_add_head(p, &h, &head) == OK);
	for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
		struct profile_sample s = { .head = head, .time_ns = h.time_ns, .value = 3 };
		struct profile_label l;
		CHECK(profile_add_string(p, STR("comm"), &l.name) == OK);
		CHECK(profile_add_string(p, str_of(values[i]), &l.value) == OK);
		CHECK(profile_add_labels(p, &l, 1, &s.resource) == OK);
		CHECK(profile_add_sample(p, &s) == OK);
	}
}

static void write_limits(const char *path, const char *text)
{
	struct err e = { 0 };
	CHECK_OK(os_replace_file(path, text, strlen(text), 0640, &e), &e);
}

static void hold_for_the_tenant(void **state)
{
	(void)state;
	static const struct ingest_protocol protocol = { .name = "mine" };
	static const struct {
		const char *name; /* of the tenant */
		size_t bytes;
		uint64_t refused;
		const char *says;
	} cases[] = {
		{ "free", 65537, 0, "" },
		{ "short", 1000, 1, "(--tenant-limits)" },
		{ "few", 1000, 1,
			"more than 1 series in an hour: no new ones are taken (--tenant-limits)" },
		{ "small", 65536, 0, "" },
	};
	struct temp_dir d;
	char path[128];
	struct ingest in = { 0 };
	struct ingest_inlet *inlet;
	struct fake_sink sink;
	struct ingest_batch b;
	struct err e = { 0 };
	temp_dir_init(&d);
	snprintf(path, sizeof(path), "%s/limits", d.path);
	write_limits(path, "short max-label-value-length=8\nfew max-series-per-tenant=1\n"
			   "small max-profile-size=64KiB\n");
	struct ingest_config c = fake_sink_config;
	c.tenant_limits_file = path;
	c.limits.message_bytes = 32 << 20;
	CHECK_OK(ingest_init(&in, &c, &e), &e);
	CHECK_OK(ingest_inlet(&in, &protocol, &inlet, &e), &e);
	fake_sink_init(&sink);
	ingest_open(&in, &sink.base, NULL);
	FOR_EACH_CASE (t, cases) {
		ingest_batch_init(&b, inlet, "peer", t->bytes);
		CHECK_OK(ingest_batch_begin(&b, str_of(t->name), t->bytes, &e), &e);
		make_two(&b.profile);
		CHECK_OK(ingest_batch_put(&b, (struct hash128){ 0 }, &e), &e);
		CHECK_CASE(t, b.refused.samples == t->refused);
		CHECK_CASE(t, b.profile.samples.len == 2 - t->refused);
		CHECK_CASE(t, t->says[0] ? strstr(b.refused.reason, t->says) != NULL
					 : b.refused.reason[0] == 0);
		ingest_batch_end(&b, OK, "");
	}
	ingest_batch_init(&b, inlet, "peer", 65537);
	CHECK(ingest_batch_begin(&b, STR("small"), 65537, &e) == E_LIMIT);
	CHECK_STR(str_of(e.text),
		"a message of 65537 bytes; tenant \"small\" may send 65536 (--tenant-limits)");
	ingest_batch_end(&b, E_LIMIT, e.text);
	ingest_deinit(&in);
	temp_dir_deinit(&d);
}

static void a_bad_file_is_named(void **state)
{
	(void)state;
	struct temp_dir d;
	char path[128];
	struct ingest in = { 0 };
	struct err e = { 0 };
	temp_dir_init(&d);
	snprintf(path, sizeof(path), "%s/limits", d.path);
	struct ingest_config c = fake_sink_config;
	c.tenant_limits_file = path;
	CHECK(ingest_init(&in, &c, &e) == E_NOTFOUND);
	ingest_deinit(&in);
	write_limits(path, "a b\n");
	memset(&in, 0, sizeof(in));
	CHECK(ingest_init(&in, &c, &e) == E_INVALID);
	CHECK(strstr(e.text, "/limits: line 1: \"b\" is no limit"));
	ingest_deinit(&in);
	temp_dir_deinit(&d);
}

/* 1 to 64 letters, digits and some signs; not the names of folders. */
static void knows_names_of_tenants(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool good;
	} cases[] = { { "a-B_9!.*'()", true }, { "", false }, { ".", false }, { "..", false },
		{ "a/b", false }, { "a|b", false }, { "\xc3\xa4", false },
		{ "0123456789012345678901234567890123456789012345678901234567890123", true },
		{ "01234567890123456789012345678901234567890123456789012345678901234", false } };
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, ingest_is_tenant(str_of(c->name)) == c->good);
	CHECK(!ingest_is_tenant(str_make("a\0b", 3)));
}

TEST_MAIN(cmocka_unit_test(takes_what_is_named), cmocka_unit_test(refuses_what_it_does_not_know),
	cmocka_unit_test(hold_for_the_tenant), cmocka_unit_test(a_bad_file_is_named),
	cmocka_unit_test(knows_names_of_tenants))
