/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_top, "top");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url),
		"/api/top?limit=20&sort=self&from=now-15m&to=now&format=text&required=1");
	CHECK_STR(str_of(fake_server), "http://127.0.0.1:7070");
	CHECK_STR(str_of(c.out), "{}\n");
	setenv("FIRN_SERVER", "http://there:1", 1);
	capture_run(&c, cli_top,
		"top {} --limit 3 --sort total --match mem --from now-1h --to 5 --format text "
		"--query other");
	unsetenv("FIRN_SERVER");
	CHECK_STR(str_of(fake_server), "http://there:1");
	CHECK_STR(str_of(fake_url), "/api/"
				    "top?limit=3&sort=total&query=%7B%7D&from=now-1h&to=5&match="
				    "mem&format=text&required=1");
}

/* On a terminal: drawn again and again over itself, until Ctrl-C. */
static void watches(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_top, "top --watch");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "--watch is for a table on a terminal");
	capture_run(&c, cli_top, "top /proc/self/exe");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "`firn open /proc/self/exe` shows it");
	capture_run(&c, cli_top, "top --interval 5s");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "--interval is for --watch");

	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	int end = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	const struct winsize size = { .ws_row = 10, .ws_col = 90 };
	CHECK(end >= 0 && ioctl(end, TIOCSWINSZ, &size) == 0);
	fflush(NULL);
	pid_t watcher = fork();
	if (watcher == 0) {
		char verb[] = "top", flag[] = "--watch", often[] = "--interval=100ms";
		char *argv[] = { verb, flag, often, NULL };
		alarm(60); /* where the test fails */
		fake_answers = 4;
		fake_body = "1s\x1b[31m\n\nSELF FUNCTION\n";
		if (dup2(end, 1) != 1)
			_exit(99);
		int code = cli_top(3, argv);
		bool asked = strcmp(fake_url, "/api/top?limit=6&sort=self&width=90&from=now-1m&to="
					      "now&format=text&required=1") == 0;
		_exit(asked ? code : 98);
	}
	char text[4096] = "", *at = text;
	int homes = 0;
	while (homes < 3) {
		ssize_t n = read(terminal, at, (size_t)(text + sizeof(text) - 1 - at));
		CHECK(n > 0);
		at[n] = 0;
		for (char *p = at; (p = strstr(p, "\033[H")); p++)
			homes++;
		at = at + n > text + 3000 ? text : at + n;
	}
	CHECK_HAS(text, "\033[H1s\xEF\xBF\xBD[31m\033[K");
	/* The server goes: that is one line below what is shown, no wider than the terminal. */
	static const char gone[] =
		"FUNCTION\033[K\r\nno firn server answers at http://127.0.0.1:7070: "
		"connect: Connection refused. `firn up` s\033[J";
	int seen = 0;
	text[0] = 0;
	for (at = text; seen < 2;) {
		ssize_t n = read(terminal, at, (size_t)(text + sizeof(text) - 1 - at));
		CHECK(n > 0);
		at += n;
		*at = 0;
		seen = 0;
		for (char *p = text; (p = strstr(p, gone)); p++)
			seen++;
		CHECK(at < text + 3500);
	}
	int wait_status = 0;
	CHECK(kill(watcher, SIGINT) == 0);
	close(end);
	/* What it writes meanwhile must not fill the terminal. */
	while (waitpid(watcher, &wait_status, WNOHANG) == 0)
		if (read(terminal, text, sizeof(text)) < 0)
			usleep(1000);
	CHECK(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), CLI_OK);
	close(terminal);
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_top, "top --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "firn top");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(watches), cmocka_unit_test(helps))
