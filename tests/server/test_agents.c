/* SPDX-License-Identifier: Apache-2.0 */
/* The list of agents, as AgentsService answers it. */
#include "test.h"

#include "ask.h"
#include "base/clock.h"
#include "pb/pb.h"
#include "server/parca/parca.h"
#include "server/request/state.h"

#include <stdio.h>

#define MEMORY ((size_t)1 << 20)

static struct server server;

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	agent_list_init(&server.ingest.agents);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	agent_list_deinit(&server.ingest.agents);
	return 0;
}

static void push(const char *node, const char *peer, int64_t begin, const char *error)
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
	agent_list_note(&server.ingest.agents, &p,
		&(struct agent_push){ .tenant = STR(""),
			.user_agent = STR("firn/0.1.0"),
			.peer = peer,
			.error = error,
			.begin_ns = begin,
			.end_ns = begin + 1500000000,
			.refused = error[0] ? 3 : 0 });
	profile_deinit(&p);
}

struct seen {
	char text[1024]; /* "id|error|seconds|nanos|version|refused|failure;" of each */
};

static void read_time(struct str bytes, uint64_t out[2])
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	out[0] = out[1] = 0;
	while (pb_next(&r, &f))
		if (f.number == 1 || f.number == 2)
			out[f.number - 1] = f.u64;
	CHECK(!r.failed);
}

static struct seen list(void)
{
	struct ask a;
	struct seen out = { 0 };
	struct pb_field f, g;
	uint64_t took[2], last[2];
	ask_init(&a, "/", "");
	server_agents(&server, &a.r, &a.out);
	struct reader r = reader_over(a.out.body.data, a.out.body.len);
	while (pb_next(&r, &f)) {
		struct reader agent = pb_message(&f);
		struct str id = STR(""), error = STR(""), version = STR(""), failure = STR("");
		uint64_t refused = 0;
		while (pb_next(&agent, &g)) {
			if (g.number == 1)
				id = g.bytes;
			else if (g.number == 2)
				error = g.bytes;
			else if (g.number == 3)
				read_time(g.bytes, last);
			else if (g.number == 4)
				read_time(g.bytes, took);
			else if (g.number == 1000)
				version = g.bytes;
			else if (g.number == 1001)
				refused = g.u64;
			else if (g.number == 1002)
				failure = g.bytes;
		}
		CHECK(last[0] > 1000000000);
		size_t n = strlen(out.text);
		snprintf(out.text + n, sizeof(out.text) - n, "%.*s|%.*s|%d|%d|%.*s|%d|%.*s;",
			STR_ARG(id), STR_ARG(error), (int)took[0], (int)took[1], STR_ARG(version),
			(int)refused, STR_ARG(failure));
	}
	CHECK(!r.failed);
	ask_deinit(&a);
	return out;
}

static void lists_who_pushed(void **state)
{
	(void)state;
	int64_t now = clock_realtime_ns();
	assert_string_equal(list().text, "");
	push("b", "10.0.0.2:1", now, "");
	push("a", "10.0.0.1:1", now, "it failed");
	push("a", "10.0.0.1:2", now, "it failed again");
	push(NULL, "[::1]:77", now, "");
	assert_string_equal(list().text,
		"[::1]||1|500000000|firn/0.1.0|0|;"
		"a|it failed again|1|500000000|firn/0.1.0|6|it failed again;"
		"b||1|500000000|firn/0.1.0|0|;");
	push("a", "10.0.0.1:3", now, "");
	assert_string_equal(list().text, "[::1]||1|500000000|firn/0.1.0|0|;"
					 "a||1|500000000|firn/0.1.0|6|it failed again;"
					 "b||1|500000000|firn/0.1.0|0|;");
}

#define UNIT(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

TEST_MAIN(UNIT(lists_who_pushed))
