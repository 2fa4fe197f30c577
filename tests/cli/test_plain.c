/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/plain.h"
#include "test.h"

#include <pty.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FFFD "\xEF\xBF\xBD"

static void check_plain(const char *in, size_t len, const char *kept, const char *want)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 16);
	cli_plain(str_make(in, len), kept, &out);
	CHECK(buf_status(&out) == OK);
	CHECK_STR(buf_view(&out), want);
}

static void controls_are_replaced(void **state)
{
	(void)state;
	check_plain("", 0, "", "");
	check_plain("plain", 5, "", "plain");
	check_plain("a\x1b[31mb", 7, "", "a" FFFD "[31mb");
	check_plain("\0a\x7f", 3, "\n", FFFD "a" FFFD);
	check_plain("a\tb\nc\r", 6, "\n\t", "a\tb\nc" FFFD);
	check_plain("a\tb\n", 4, "", "a" FFFD "b" FFFD);
	/* C1: U+009B is a CSI of its own; U+00A0 and U+0085's neighbours are text. */
	check_plain("\xC2\x9B"
		    "2J\xC2\xA0\xC2\x80",
		8, "", FFFD "2J\xC2\xA0" FFFD);
	/* U+202E turns the direction, U+2029 and U+2070 do not. */
	check_plain("\xE2\x80\xAE"
		    "a\xE2\x80\xA9\xE2\x81\xA7\xE2\x81\xB0",
		13, "", FFFD "a\xE2\x80\xA9" FFFD "\xE2\x81\xB0");
	check_plain("\xC3\xBC\xF0\x9F\x98\x80", 6, "", "\xC3\xBC\xF0\x9F\x98\x80");
	/* Bytes that are no UTF-8, and what a lone 0x9B would be to a terminal of 8 bits. */
	check_plain("\x9B"
		    "1m\xC2",
		4, "", FFFD "1m" FFFD);
}

/* Into a pipe or file nothing is changed. */
static void files_get_all_bytes(void **state)
{
	(void)state;
	char got[16] = "";
	FILE *f = tmpfile();
	CHECK(f);
	CHECK(cli_show(f, str_make("a\x1b[1m\0\xff", 7)) && fflush(f) == 0);
	CHECK(pread(fileno(f), got, sizeof(got), 0) == 7);
	CHECK(memcmp(got, "a\x1b[1m\0\xff", 7) == 0);
	fclose(f);
}

/* More than one step, with a character across its end. */
static void terminals_get_plain_text(void **state)
{
	(void)state;
	enum { LEN = 65534 };
	static char text[LEN + 16], got[LEN + 4096];
	int main_fd, terminal;
	if (openpty(&main_fd, &terminal, NULL, NULL, NULL) < 0)
		SKIP("no pseudo terminal here");
	memset(text, 'a', LEN);
	for (size_t i = 63; i < LEN; i += 64)
		text[i] = '\n';
	memcpy(text + LEN, "\xF0\x9F\x98\x80\x1b]0;\n", 9);
	FILE *f = fdopen(terminal, "w");
	CHECK(f);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(cli_show(f, str_make(text, LEN + 9)) && fflush(f) == 0 ? 0 : 1);
	fclose(f);
	size_t len = 0;
	int status = -1;
	for (ssize_t n; len < sizeof(got) && (n = read(main_fd, got + len, sizeof(got) - len)) > 0;)
		len += (size_t)n;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(main_fd);
	CHECK(len > LEN && !memchr(got, 0x1b, len));
	CHECK(memmem(got, len, "\xF0\x9F\x98\x80" FFFD "]0;", 10));
}

TEST_MAIN(cmocka_unit_test(controls_are_replaced), cmocka_unit_test(files_get_all_bytes),
	cmocka_unit_test(terminals_get_plain_text))
