/* SPDX-License-Identifier: Apache-2.0 */
/* Who a verb says that it is. */
#include "test.h"

#include "capture.h"
#include "cli/ask/credentials.h"
#include "cli/cli.h"
#include "fakes.h"
#include "os/os.h"

#include <unistd.h>

static void makes_a_header(void **state)
{
	(void)state;
	char path[64];
	struct err e;
	snprintf(path, sizeof(path), "/tmp/firn-test-credentials-%d", (int)getpid());
	CHECK_OK(os_replace_file(path, " abc\n", 5, 0600, &e), &e);
	const struct {
		const char *name;
		struct cli_credentials who;
		const char *want; /* NULL: refused */
	} cases[] = {
		{ "none", { NULL, "", NULL }, "" },
		{ "token", { "abc", NULL, NULL }, "authorization: Bearer abc\n" },
		{ "file", { NULL, path, NULL }, "authorization: Bearer abc\n" },
		{ "basic", { NULL, NULL, "alice:secret" },
			"authorization: Basic YWxpY2U6c2VjcmV0\n" },
		{ "two", { "abc", path, NULL }, NULL },
		{ "no colon", { NULL, NULL, "alice" }, NULL },
		{ "no file", { NULL, "/nowhere/x", NULL }, NULL },
	};
	FOR_EACH_CASE (c, cases) {
		struct fetch *f = NULL;
		enum status s = cli_fetch_new("http://h:1", &c->who, &f, &e);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		CHECK_CASE(c, !c->want || strcmp(fake_headers, c->want) == 0);
		fetch_free(f);
	}
	unlink(path);
}

/* The flags of a verb, and what it says where it is refused. */
static void verbs_send_it(void **state)
{
	(void)state;
	static struct capture c;
	fake_body = "{\"error\":\"the token is not known here\",\"code\":\"UNAUTHENTICATED\"}";
	fake_http_status = 401;
	capture_run(&c, cli_query, "query --bearer-token abc");
	CHECK(c.code == CLI_FAILED);
	CHECK(strstr(c.err, "the token is not known here (--bearer-token-file, --basic-auth)"));
	CHECK_STR(str_of(fake_headers), "authorization: Bearer abc\n");
	fake_http_status = 200;
	fake_body = "{}";
}

TEST_MAIN(cmocka_unit_test(makes_a_header), cmocka_unit_test(verbs_send_it))
