/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

#include <stdlib.h>

static void pushes_files(void **state)
{
	(void)state;
	struct capture c;
	char path[] = "/tmp/firn-test-push-XXXXXX", line[256];
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, "\x01proto", 6) == 6);
	close(fd);
	fake_body = "{\"samples\":42}";
	snprintf(line, sizeof(line), "push %s --labels a=b,c=d -l e=f --name n", path);
	capture_run(&c, cli_push, line);
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/push?name=n&labels=a%3Db&labels=c%3Dd&labels=e%3Df");
	CHECK_STR(str_of(fake_posted), "\x01proto");
	CHECK_HAS(c.out, ": 42 samples stored");

	/* The others go on. */
	snprintf(line, sizeof(line), "push /nonexistent %s", path);
	fake_posts = 0;
	capture_run(&c, cli_push, line);
	CHECK(c.code == CLI_FAILED && fake_posts == 1);
	CHECK_HAS(c.err, "/nonexistent: No such file");

	fake_http_status = 400;
	fake_body = "{\"error\":\"profile.proto: malformed at byte 1\",\"code\":\"INVALID\"}";
	snprintf(line, sizeof(line), "push %s", path);
	capture_run(&c, cli_push, line);
	CHECK(c.code == CLI_USAGE);
	CHECK_HAS(c.err, ": profile.proto: malformed at byte 1");
	fake_status = E_UNAVAILABLE;
	capture_run(&c, cli_push, line);
	assert_int_equal(c.code, CLI_UNREACHABLE);
	fake_status = OK;
	fake_http_status = 200;
	unlink(path);
}

/* A text is named as what it is, and not sent. */
static void knows_what_is_no_pprof(void **state)
{
	(void)state;
	struct capture c;
	static const struct {
		const char *bytes, *want;
	} files[] = {
		{ "main;f 3\n", " is a text; push takes pprof files" },
		{ "a 1 1.0: 5 cycles:\n\t1 f (a)\n", " is what `perf script` prints; push takes" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		char path[] = "/tmp/firn-test-push-XXXXXX", line[256];
		int fd = mkstemp(path);
		ssize_t len = (ssize_t)strlen(files[i].bytes);
		CHECK(fd >= 0 && write(fd, files[i].bytes, (size_t)len) == len);
		close(fd);
		fake_posts = 0;
		snprintf(line, sizeof(line), "push %s", path);
		capture_run(&c, cli_push, line);
		CHECK(c.code == CLI_USAGE && fake_posts == 0);
		CHECK_HAS(c.err, files[i].want);
		unlink(path);
	}
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_push, "push -h");
	assert_int_equal(c.code, CLI_OK);
	check_width(c.out);
	capture_run(&c, cli_push, "push x --labels y");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, cli_push, "push");
	assert_int_equal(c.code, CLI_USAGE);
}

TEST_MAIN(cmocka_unit_test(pushes_files), cmocka_unit_test(knows_what_is_no_pprof),
	cmocka_unit_test(helps))
