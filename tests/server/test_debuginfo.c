/* SPDX-License-Identifier: Apache-2.0 */
/* The calls about uploads: each member is read, what is wrong is named, and what a record says
 * decides. tests/system/test_debuginfo.py has every reason in Parca's words, and the stream. */
#include "test.h"

#include "ask.h"
#include "pb/pb.h"
#include "server/debuginfo/debuginfo.h"
#include "server/request/state.h"

#include <stdio.h>

#define ID "0123456789abcdef"

static struct server server;
static struct server_config config;
static char dir[64];

static int setup(void **state)
{
	(void)state;
	struct debuginfo_uploads_config c;
	strcpy(dir, "/tmp/firn_debuginfo_XXXXXX");
	CHECK(mkdtemp(dir));
	memset(&server, 0, sizeof(server));
	server_config_default(&config);
	config.debuginfo_upload_bytes = 1000;
	server.config = &config;
	debuginfo_uploads_config_default(&c);
	c.dir = dir;
	CHECK(debuginfo_uploads_open(&c, &server.uploads, NULL) == OK);
	atomic_store(&server.ready, true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	char command[96];
	debuginfo_uploads_close(server.uploads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

struct asked {
	enum status status;
	char message[ERR_TEXT_MAX];
	char reason[512];
	bool yes;
};

static struct asked call(net_handler_fn *fn, struct buf *message)
{
	struct ask a;
	struct asked out = { 0 };
	struct pb_field f;
	ask_init(&a, "/", "");
	a.r.is_rpc = true;
	a.r.body = buf_view(message);
	fn(&server, &a.r, &a.out);
	out.status = a.out.status;
	snprintf(out.message, sizeof(out.message), "%s", a.out.message);
	struct reader r = reader_over(a.out.body.data, a.out.body.len);
	while (out.status == OK && pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_VARINT)
			out.yes = f.u64;
		if (f.number == 2)
			snprintf(out.reason, sizeof(out.reason), "%.*s", STR_ARG(f.bytes));
	}
	ask_deinit(&a);
	buf_clear(message);
	return out;
}

static void members(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf m;
	buf_init(&m, 4096);
	pb_put_str(&m, 1, STR(ID));
	struct asked got = call(server_debuginfo_should_initiate, &m);
	CHECK(got.status == OK && got.yes && strstr(got.reason, "First time we see this Build ID"));
	pb_put_str(&m, 1, STR(ID));
	pb_put_i64(&m, 2, 1001);
	pb_put_str(&m, 3, STR("h"));
	got = call(server_debuginfo_initiate, &m);
	CHECK(got.status == E_INVALID && strstr(got.message, "upload size 1001 exceeds"));
	pb_put_str(&m, 1, STR(ID));
	pb_put_i64(&m, 2, 1000);
	pb_put_str(&m, 3, STR("h"));
	pb_put_u64(&m, 5, DEBUGINFO_SOURCES);
	CHECK(call(server_debuginfo_initiate, &m).status == OK);
	for (uint64_t force = 0; force < 2; force++) {
		pb_put_str(&m, 1, STR(ID));
		pb_put_u64(&m, 3, force);
		pb_put_u64(&m, 4, DEBUGINFO_SOURCES);
		got = call(server_debuginfo_should_initiate, &m);
		CHECK(got.status == OK && got.yes == (force == 1));
	}
	pb_put_str(&m, 1, STR(ID));
	pb_put_i64(&m, 2, 1000);
	pb_put_str(&m, 3, STR("h"));
	pb_put_u64(&m, 5, DEBUGINFO_SOURCES);
	got = call(server_debuginfo_initiate, &m);
	CHECK(got.status == E_PRECONDITION && strstr(got.message, "still in-progress"));
	pb_put_str(&m, 1, STR(ID));
	pb_put_str(&m, 2, STR("x"));
	pb_put_u64(&m, 3, DEBUGINFO_SOURCES);
	got = call(server_debuginfo_mark_finished, &m);
	CHECK(got.status == E_INVALID && strcmp(got.message, "upload id mismatch") == 0);
}

static void bad_messages(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct str body;
		const char *says;
	} cases[] = {
		{ "torn", { "\x0a\x05x", 3 }, "malformed at byte" },
		{ "no text", { "\x0a\x03\xff\xfe\xfd", 5 }, "build_id is not UTF-8" },
		{ "number as id", { "\x08\x05", 2 }, "build_id is not UTF-8" },
		{ "text as type", { "\x22\x01x", 3 }, "field 4 is not a number" },
		{ "unknown type", { "\x0a\x03xyz\x20\x09", 7 }, "type: 9 is not known" },
		{ "short id", { "\x0a\x02xy", 4 }, "unexpectedly short input" },
		{ "no id", { "", 0 }, "unexpectedly short input" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf m;
		buf_init(&m, 64);
		buf_str(&m, c->body);
		struct asked got = call(server_debuginfo_should_initiate, &m);
		CHECK_CASE(c, got.status == E_INVALID && strstr(got.message, c->says));
	}
	atomic_store(&server.ready, false);
	CLEANUP(buf_deinit) struct buf m;
	buf_init(&m, 64);
	CHECK(call(server_debuginfo_should_initiate, &m).status == E_UNAVAILABLE);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(members, setup, teardown),
	cmocka_unit_test_setup_teardown(bad_messages, setup, teardown))
