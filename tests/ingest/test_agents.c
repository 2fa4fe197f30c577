/* SPDX-License-Identifier: Apache-2.0 */
/* The list of agents: one entry for each, the last push of each, a tenant's own. */
#include "test.h"

#include "base/clock.h"
#include "ingest/ingest.h"

#define MEMORY ((size_t)1 << 20)

static struct agent_list agents;

static int setup(void **state)
{
	(void)state;
	agent_list_init(&agents);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	agent_list_deinit(&agents);
	return 0;
}

static void push(
	const char *tenant, const char *node, const char *peer, int64_t begin, const char *error)
{
	struct profile p;
	struct profile_label l;
	uint32_t id;
	CHECK(profile_init(&p, MEMORY) == OK);
	if (node) {
		CHECK(profile_add_string(&p, STR("node"), &l.name) == OK);
		CHECK(profile_add_string(&p, str_of(node), &l.value) == OK);
		CHECK(profile_add_labels(&p, &l, 1, &id) == OK);
	}
	agent_list_note(&agents, &p,
		&(struct agent_push){ .tenant = str_of(tenant),
			.user_agent = STR("firn/0.1.0 and more"),
			.peer = peer,
			.error = error,
			.begin_ns = begin,
			.end_ns = begin + 1500000000,
			.refused = error[0] ? 3 : 0 });
	profile_deinit(&p);
}

static void add_text(void *ctx, const struct agent_entry *a)
{
	buf_printf(
		ctx, "%s@%s|%s|%d;", a->node, a->address, a->error, (int)(a->took_ns / NS_PER_MS));
}

static void check_list(const char *tenant, const char *expected)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, MEMORY);
	agent_list_each(&agents, str_of(tenant), clock_realtime_ns(), add_text, &b);
	CHECK_STR(buf_view(&b), expected);
}

static void lists_a_tenants_own(void **state)
{
	(void)state;
	int64_t now = clock_realtime_ns();
	push("", "b", "10.0.0.2:1", now, "");
	push("", "a", "10.0.0.1:1", now, "it failed");
	push("", "a", "10.0.0.1:2", now, "it failed again");
	push("t", NULL, "[::1]:77", now, "");
	check_list("", "a@10.0.0.1|it failed again|1500;b@10.0.0.2||1500;");
	check_list("t", "@[::1]||1500;");
	check_list("u", "");
}

static void forgets(void **state)
{
	(void)state;
	int64_t now = clock_realtime_ns();
	push("", "old", "10.0.0.1:1", now - AGENT_FORGOTTEN_NS - NS_PER_SEC, "");
	push("", "new", "10.0.0.1:1", now - AGENT_FORGOTTEN_NS / 2, "");
	check_list("", "new@10.0.0.1||1500;");
	assert_int_equal(agent_list_count(&agents, now), 1);
	assert_int_equal(agent_list_count(&agents, now + AGENT_FORGOTTEN_NS), 0);
}

static void count(void *ctx, const struct agent_entry *a)
{
	buf_printf(ctx, "%s %s|%s|%d|%d;", a->version, a->error, a->failure, a->failure_ns > 0,
		(int)a->refused);
}

static void check_counted(const char *expected)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, MEMORY);
	agent_list_each(&agents, STR(""), clock_realtime_ns(), count, &b);
	CHECK_STR(buf_view(&b), expected);
}

static void keeps_the_last_failure_and_what_was_refused(void **state)
{
	(void)state;
	int64_t now = clock_realtime_ns();
	push("", "a", "10.0.0.1:1", now, "");
	check_counted("firn/0.1.0 ||0|0;");
	push("", "a", "10.0.0.1:1", now, "first");
	push("", "a", "10.0.0.1:2", now, "second");
	check_counted("firn/0.1.0 second|second|1|6;");
	push("", "a", "10.0.0.1:1", now, "");
	check_counted("firn/0.1.0 |second|1|6;");
}

static void has_a_limit(void **state)
{
	(void)state;
	int64_t now = clock_realtime_ns();
	for (int i = 0; i < AGENTS_MAX + 10; i++) {
		char node[16];
		snprintf(node, sizeof(node), "%d", i);
		push("", node, "10.0.0.1:1", now - NS_PER_SEC + i, "");
	}
	assert_int_equal(agent_list_count(&agents, now), AGENTS_MAX);
}

#define UNIT(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

TEST_MAIN(UNIT(lists_a_tenants_own), UNIT(forgets),
	UNIT(keeps_the_last_failure_and_what_was_refused), UNIT(has_a_limit))
