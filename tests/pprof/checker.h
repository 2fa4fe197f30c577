/* SPDX-License-Identifier: Apache-2.0 */
/* checker: pprof_check.py's answer. */
#pragma once

#include "test.h"

#include "os/os.h"

#include <unistd.h>

/* `path` is a file of profile.proto. */
static inline void check_file(const char *path, const char *name, struct buf *out)
{
	char command[1024], part[4096];
	snprintf(command, sizeof(command), "python3 %s/pprof_check.py '%s' %s 2>&1", TEST_DIR, path,
		name);
	FILE *f = popen(command, "r");
	CHECK(f);
	for (size_t n; (n = fread(part, 1, sizeof(part), f)) > 0;)
		buf_put(out, part, n);
	if (pclose(f) != 0) {
		print_error("pprof_check.py %s: %.*s\n", path, STR_ARG(buf_view(out)));
		fail();
	}
}

static inline void check_bytes(const struct buf *message, const char *name, struct buf *out)
{
	char path[] = "/tmp/test_pprof_XXXXXX";
	CLEANUP(fd_cleanup) int fd = mkstemp(path);
	struct err e;
	CHECK(fd >= 0);
	CHECK_OK(os_write_full(fd, message->data, message->len, path, &e), &e);
	check_file(path, name, out);
	unlink(path);
}

/* Long texts: shows the first line that differs. */
static inline void check_same(const char *what, struct str got, struct str want)
{
	if (str_eq(got, want))
		return;
	struct str g = { 0 }, w = { 0 };
	do {
		g = w = STR("");
		(void)(str_split(&got, '\n', &g) + str_split(&want, '\n', &w));
	} while (str_eq(g, w) && (got.len || want.len));
	print_error("[%s] got:\n%.*s\nwant:\n%.*s\n", what, STR_ARG(g), STR_ARG(w));
	fail();
}
