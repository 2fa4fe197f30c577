/* SPDX-License-Identifier: Apache-2.0 */
/* What is pushed to a scripted server, and the address that is printed. */
#include "capture.h"
#include "codec/codec.h"
#include "fakes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char file[] = "/tmp/firn-test-open-XXXXXX";
static char (*storage)[256]; /* where the server's lay */

/* Ready, and Ctrl-C at once: the ready line is read first. */
static enum status serve(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	static const char line[] = "127.0.0.1:4711\n";
	(void)e;
	snprintf(*storage, sizeof(*storage), "%s", c->storage_path);
	if (write(c->ready_fd, line, sizeof(line) - 1) != sizeof(line) - 1)
		return E_IO;
	kill(getppid(), SIGTERM);
	fake_wait(stop);
	return OK;
}

static int setup(void **state)
{
	(void)state;
	storage = mmap(
		NULL, sizeof(*storage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fake_server_run = serve;
	fake_status = OK;
	fake_http_status = 200;
	fake_posts = 0;
	fake_body = "{\"samples\":3},{\"type\":\"a:b:c:d:e\"},{\"type\":\"x:cpu:nanoseconds:d:e\","
		    "\"first\":1767323045000,\"last\":1767323105000}";
	strcpy(file, "/tmp/firn-test-open-XXXXXX");
	int fd = mkstemp(file);
	return fd >= 0 && close(fd) == 0 && storage != MAP_FAILED ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(storage, sizeof(*storage)) == 0 ? unlink(file) : -1;
}

static void put(const char *bytes)
{
	FILE *f = fopen(file, "we");
	CHECK(f && fputs(bytes, f) >= 0 && fclose(f) == 0);
}

static void shows_a_file(void **state)
{
	(void)state;
	static const struct {
		const char *name; /* the file */
		bool made;        /* a pprof file is made of it */
	} cases[] = {
		{ "\n\4\b\1\20\2", false },
		{ "main;f 3\n", true },
		{ "x 1 1.0: e:\n\t1 f (a)\n", true },
	};
	FOR_EACH_CASE (k, cases) {
		struct capture c;
		struct stat st;
		char line[128];
		put(k->name);
		snprintf(line, sizeof(line), "open %s --no-browser", file);
		capture_run(&c, cli_open, line);
		CHECK_CASE(k, c.code == CLI_OK);
		CHECK_HAS(c.out, "http://127.0.0.1:4711/?query=x%3Acpu%3Ananoseconds%3Ad%3Ae&from="
				 "2026-01-02T03%3A03%3A05Z&to=2026-01-02T03%3A06%3A05Z\n");
		CHECK_STR(str_of(fake_server), "http://127.0.0.1:4711");
		CHECK_CASE(k, codec_is_gzip(fake_posted, 2) == k->made);
		CHECK_CASE(k, stat(*storage, &st) < 0); /* nothing is kept */
	}
	assert_int_equal(fake_posts, ARRAY_COUNT(cases));
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	struct capture c;
	char line[256];
	capture_run(&c, cli_open, "open /nonexistent");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "firn: open /nonexistent: No such file");
	put("# a page\nof text\n");
	snprintf(line, sizeof(line), "open %s", file);
	capture_run(&c, cli_open, line);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "there is no stack in it");
	assert_int_equal(fake_posts, 0);
	put("\n\4\b\1\20\2");
	fake_http_status = 400;
	fake_body = "{\"error\":\"profile.proto: malformed at byte 1\",\"code\":\"INVALID\"}";
	capture_run(&c, cli_open, line);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "profile.proto: malformed");
	capture_run(&c, cli_open, "open");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, cli_open, "open -h");
	assert_int_equal(c.code, CLI_OK);
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(shows_a_file, setup, teardown),
	cmocka_unit_test_setup_teardown(says_what_is_wrong, setup, teardown))
