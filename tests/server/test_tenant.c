/* SPDX-License-Identifier: Apache-2.0 */
/* Whose samples a request is about. */
#include "test.h"

#include "ask.h"
#include "server/request/state.h"
#include "server/request/tenant.h"

static void names(void **state)
{
	(void)state;
	static const struct {
		const char *name, *first, *second, *want; /* want NULL: refused */
	} cases[] = {
		{ "none", NULL, NULL, "" },
		{ "plain", "team-a", NULL, "team-a" },
		{ "blanks around", " a ", NULL, "a" },
		{ "signs", "!-_.*'()", NULL, "!-_.*'()" },
		{ "twice the same", "a", "a", "a" },
		{ "twice", "a", "b", NULL },
		{ "empty", "", NULL, NULL },
		{ "dot", ".", NULL, NULL },
		{ "dots", "..", NULL, NULL },
		{ "slash", "a/b", NULL, NULL },
		{ "several", "a|b", NULL, NULL },
		{ "control", "a\x01", NULL, NULL },
		{ "not ASCII", "\xc3\xa4", NULL, NULL },
		{ "longest", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			NULL, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
		{ "too long", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			NULL, NULL },
	};
	struct server_config config = { .tenant_header = "x-scope-orgid" };
	struct server server = { .config = &config };
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		struct str got = STR("?");
		struct err e = { 0 };
		ask_init(&a, "/", "");
		ask_header(&a, "x-other", "z");
		if (c->first)
			ask_header(&a, "x-scope-orgid", c->first);
		if (c->second)
			ask_header(&a, "x-scope-orgid", c->second);
		enum status s = server_tenant(&server, &a.r, &got, &e);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		CHECK_CASE(c, !c->want || str_eq(got, str_of(c->want)));
		CHECK_CASE(c, c->want || strstr(e.text, "x-scope-orgid"));
		ask_deinit(&a);
	}
}

static void off(void **state)
{
	(void)state;
	struct server_config config = { 0 };
	struct server server = { .config = &config };
	struct ask a;
	struct str got;
	struct err e;
	ask_init(&a, "/", "");
	ask_header(&a, "x-scope-orgid", "../nonsense");
	CHECK_OK(server_tenant(&server, &a.r, &got, &e), &e);
	CHECK(got.len == 0);
	ask_deinit(&a);
}

TEST_MAIN(cmocka_unit_test(names), cmocka_unit_test(off))
