/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "cli/ask/ask.h"
#include "fakes.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static struct cli_ask question;
static const char *output;

static int ask(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 16);
	cli_url_begin(&url, "/api/x");
	for (int i = 1; i + 1 < argc; i += 2)
		cli_url_add(&url, argv[i], argv[i + 1]);
	return cli_ask(&question, &url, "json", output);
}

static int setup(void **state)
{
	(void)state;
	fake_status = OK;
	fake_http_status = 200;
	fake_body = "{\"a\":1}";
	output = NULL;
	question = (struct cli_ask){ .server = "http://here:1", .from = "now-15m", .to = "now" };
	return 0;
}

static void asks(void **state)
{
	(void)state;
	struct capture c;
	question.query = "{a=\"x y\"}";
	question.match = "ä&=";
	capture_run(&c, ask, "x by comm step ''");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_server), "http://here:1");
	CHECK_STR(str_of(fake_url), "/api/x?by=comm&query=%7Ba%3D%22x%20y%22%7D&from=now-15m&to=now"
				    "&match=%C3%A4%26%3D&format=json&required=1");
	CHECK_STR(str_of(c.out), "{\"a\":1}\n");
	fake_body = "text\n";
	capture_run(&c, ask, "x");
	CHECK_STR(str_of(c.out), "text\n");
}

/* Times that depend on the time zone are those of this host, not the server's. */
static void reads_times_here(void **state)
{
	(void)state;
	struct capture c;
	setenv("TZ", "TST-3", 1);
	tzset();
	question.from = "2026-01-31 14:05";
	question.to = "1767323045000";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/x?from=1769857500.000000000&to=1767323045000&format=json"
				    "&required=1");
	question.from = "yesterday";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "--from: 'yesterday' is not a time: expected now");
	unsetenv("TZ");
	tzset();
}

static void writes_a_file(void **state)
{
	(void)state;
	struct capture c;
	char path[] = "/tmp/firn-test-ask-XXXXXX", content[64] = "";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	output = path;
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out), "");
	fd = open(path, O_RDONLY);
	CHECK(read(fd, content, sizeof(content)) == 7);
	CHECK_STR(str_of(content), "{\"a\":1}");
	close(fd);
	unlink(path);
	output = "/nonexistent/file";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/nonexistent");
}

/* What is no plain file is written to, and is still there after it. */
static void never_replaces_what_is_no_file(void **state)
{
	(void)state;
	struct capture c;
	struct stat st;
	char dir[] = "/tmp/firn-test-ask-XXXXXX", link[64], target[64];
	CHECK(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(target, sizeof(target), "%s/target", dir);
	int fd = open(target, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && symlink(target, link) == 0);
	output = link;
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_OK);
	CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
	CHECK(fstat(fd, &st) == 0 && st.st_size == 7);
	close(fd);
	unlink(target);
	unlink(link);
	rmdir(dir);
	output = "/dev/null";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_OK);
	CHECK(lstat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
	output = "-";
	capture_run(&c, ask, "x");
	CHECK_STR(str_of(c.out), "{\"a\":1}\n");
}

static void tells_who_is_to_blame(void **state)
{
	(void)state;
	struct capture c;
	fake_status = E_UNAVAILABLE;
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_UNREACHABLE);
	CHECK_HAS(c.err, "no firn server answers at http://here:1: connect: Connection refused");
	fake_status = OK;
	fake_http_status = 400;
	fake_body =
		"{\"error\":\"selector: expected \\\"x\\\" at\\ncolumn 1\",\"code\":\"INVALID\"}";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_STR(str_of(c.err), "firn: selector: expected \"x\" at column 1\n");
	CHECK_STR(str_of(c.out), "");
	fake_http_status = 503;
	fake_body = "{\"error\":\"busy \\u00e4\\u001b[31m\"}";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_STR(str_of(c.err), "firn: busy ä?[31m\n");
	fake_body = "plain text\n";
	capture_run(&c, ask, "x");
	CHECK_STR(str_of(c.err), "firn: plain text\n");
	fake_body = "";
	capture_run(&c, ask, "x");
	CHECK_STR(str_of(c.err), "firn: the server answered with HTTP status 503\n");
	fake_body = "<html>\n\x1b</html>";
	capture_run(&c, ask, "x");
	CHECK_STR(str_of(c.err), "firn: <html>  </html>\n");
	question.server = "https://here";
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "--server: https://here: TLS is not spoken");
	setenv("FIRN_SERVER", "https://here", 1);
	question.server = getenv("FIRN_SERVER"); /* as cli_parse() fills it */
	capture_run(&c, ask, "x");
	CHECK_HAS(c.err, "firn: FIRN_SERVER: https://here: TLS is not spoken");
	unsetenv("FIRN_SERVER");
}

/* What is typed first has its answer at once. */
static void knows_what_is_no_selector(void **state)
{
	(void)state;
	static const struct {
		const char *name, *says;
	} cases[] = {
		{ "python3", "'{comm=\"python3\"}' is a program of this name" },
		{ "comm=\"x\"", "conditions stand in braces" },
	};
	FOR_EACH_CASE (k, cases) {
		struct capture c;
		char line[64];
		snprintf(line, sizeof(line), "top %s", k->name);
		fake_url[0] = 0;
		capture_run(&c, cli_top, line);
		CHECK_CASE(k, c.code == CLI_USAGE);
		CHECK_HAS(c.err, k->says);
		CHECK_CASE(k, fake_url[0] == 0);
	}
}

static void says_that_nothing_is_found(void **state)
{
	(void)state;
	struct capture c;
	fake_status = OK;
	fake_http_status = 404;
	fake_body = "{\"error\":\"no sample has a label x\",\"code\":\"NOTFOUND\"}";
	capture_run(&c, cli_top, "top {x=\"y\"}");
	assert_int_equal(c.code, CLI_NOTHING);
	CHECK_STR(str_of(c.err), "firn: no sample has a label x\n");
	fake_http_status = 200;
	fake_body = "{}";
}

static void refuses_a_long_question(void **state)
{
	(void)state;
	struct capture c;
	static char text[1 << 17];
	memset(text, 'x', sizeof(text) - 1);
	text[0] = '{';
	question.query = text;
	capture_run(&c, ask, "x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "too long");
}

TEST_MAIN(cmocka_unit_test_setup(asks, setup), cmocka_unit_test_setup(reads_times_here, setup),
	cmocka_unit_test_setup(writes_a_file, setup),
	cmocka_unit_test_setup(never_replaces_what_is_no_file, setup),
	cmocka_unit_test_setup(tells_who_is_to_blame, setup),
	cmocka_unit_test_setup(knows_what_is_no_selector, setup),
	cmocka_unit_test_setup(says_that_nothing_is_found, setup),
	cmocka_unit_test_setup(refuses_a_long_question, setup))
