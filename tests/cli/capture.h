/* SPDX-License-Identifier: Apache-2.0 */
/* capture: a verb called as the shell would, its exit code and what it printed. */
#pragma once

#include "cli/cli.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CAPTURE_ARGS_MAX 48

struct capture {
	int code;
	char out[1 << 16];
	char err[1 << 14];
};

static inline void capture_read(int fd, char *out, size_t size)
{
	ssize_t n = pread(fd, out, size - 1, 0);
	CHECK(n >= 0);
	out[n] = 0;
	close(fd);
}

static inline int capture_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	return fd;
}

/* `line` is split at blanks; the first word is the verb. A word "''" is the empty text. */
static inline void capture_run(struct capture *c, int (*verb)(int, char **), const char *line)
{
	static char words[4096]; /* what verbs keep points into it */
	char *argv[CAPTURE_ARGS_MAX + 1];
	int argc = 0;
	CHECK(strlen(line) < sizeof(words));
	strcpy(words, line);
	for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		CHECK(argc < CAPTURE_ARGS_MAX);
		if (strcmp(w, "''") == 0)
			*w = 0;
		argv[argc++] = w;
	}
	argv[argc] = NULL;
	fflush(NULL);
	int out = capture_file(), err = capture_file();
	int old_out = fcntl(1, F_DUPFD_CLOEXEC, 10), old_err = fcntl(2, F_DUPFD_CLOEXEC, 10);
	CHECK(dup2(out, 1) == 1 && dup2(err, 2) == 2);
	c->code = verb(argc, argv);
	fflush(NULL);
	CHECK(dup2(old_out, 1) == 1 && dup2(old_err, 2) == 2);
	close(old_out);
	close(old_err);
	capture_read(out, c->out, sizeof(c->out));
	capture_read(err, c->err, sizeof(c->err));
}

#define CHECK_HAS(text, part)                                               \
	do {                                                                \
		if (!strstr((text), (part))) {                              \
			print_error("no \"%s\" in:\n%s\n", (part), (text)); \
			_fail(__FILE__, __LINE__);                          \
		}                                                           \
	} while (0)

/* No line is longer than 80 characters, none ends in a blank. */
static inline void check_width(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		if (len > 80 || (len > 0 && text[len - 1] == ' ')) {
			print_error("line: %.*s\n", (int)len, text);
			_fail(__FILE__, __LINE__);
		}
		text += len;
		text += *text == '\n';
	}
}
