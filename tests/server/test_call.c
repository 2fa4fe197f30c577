/* SPDX-License-Identifier: Apache-2.0 */
/* The frame around a call: tenant, readiness, and what becomes of a failure and of its answer. */
#include "made.h"
#include "server/request/call.h"

static struct ask asked;
static enum status wanted;
static int calls;

static enum status counted(struct server_call *c)
{
	calls++;
	CHECK(c->s == &made && c->engine && c->deadline_ns > 0);
	buf_str(c->out, c->tenant);
	buf_cstr(c->out, "!");
	return wanted == OK ? OK : err_set(c->e, wanted, "said no");
}

static net_handler_fn handle;
SERVER_CALL_HANDLER(handle, counted)

static void ask_for(const char *tenant, enum status want)
{
	ask_deinit(&asked);
	ask_init(&asked, "/", "");
	ask_header(&asked, "x-scope-orgid", tenant);
	wanted = want;
	calls = 0;
	handle(&made, &asked.r, &asked.out);
}

static void answers(void **state)
{
	(void)state;
	ask_for("t1", OK);
	CHECK(calls == 1 && asked.out.status == OK);
	CHECK_STR(buf_view(&asked.out.body), made_config.tenant_header ? "t1!" : "!");
	ask_for("t1", E_NOTFOUND);
	CHECK(calls == 1 && asked.out.status == E_NOTFOUND);
	CHECK(strcmp(asked.out.message, "said no") == 0);
}

static void waits_for_the_store(void **state)
{
	(void)state;
	atomic_store(&made.ready, false);
	ask_for("t1", OK);
	CHECK(calls == 0 && asked.out.status == E_UNAVAILABLE);
	atomic_store(&made.ready, true);
}

static void limits_the_answer(void **state)
{
	(void)state;
	ask_for("t1", OK);
	asked.out.body.max = 0;
	buf_clear(&asked.out.body);
	handle(&made, &asked.r, &asked.out);
	CHECK(asked.out.status == E_LIMIT);
}

static int teardown(void **state)
{
	ask_deinit(&asked);
	return made_teardown(state);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers),
		cmocka_unit_test(waits_for_the_store), cmocka_unit_test(limits_the_answer) };
	return cmocka_run_group_tests(tests, made_setup, teardown);
}
