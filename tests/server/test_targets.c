/* SPDX-License-Identifier: Apache-2.0 */
/* No targets, and bad requests are told so. */
#include "test.h"

#include "ask.h"

static void answers(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct str body;
		enum status want;
	} cases[] = { { "any", { "", 0 }, OK }, { "active", { "\x08\x01", 2 }, OK },
		{ "more", { "\x08\x02\x12\x01x", 5 }, OK },
		{ "text", { "\x0a\x01x", 3 }, E_INVALID }, { "torn", { "\x08", 1 }, E_INVALID } };
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		ask_init(&a, "/", "");
		a.r.is_rpc = true;
		a.r.body = c->body;
		server_targets(NULL, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == c->want);
		CHECK_CASE(c, a.out.status != OK || a.out.body.len == 0);
		ask_deinit(&a);
	}
}

TEST_MAIN(cmocka_unit_test(answers))
