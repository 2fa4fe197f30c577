/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python: runs the readers that were written from docs/formats alone (Debian's python3, with
 * python3-zstandard), and takes what they print.
 */
#pragma once

#include "base/buf.h"
#include "tests/test.h"

static inline bool python_has_zstandard(void)
{
	return system("/usr/bin/python3 -c 'import zstandard' 2>/dev/null") == 0; // NOLINT
}

/* `arguments` begin with the script's name. False: it failed. */
static inline bool python_run(const char *arguments, struct buf *out)
{
	char chunk[4096];
	char *command = malloc(strlen(arguments) + 256);
	CHECK(command != NULL);
	snprintf(command, strlen(arguments) + 256, "/usr/bin/python3 -B %s/%s", FIRN_TESTS_DIR,
		arguments);
	FILE *f = popen(command, "r"); // NOLINT
	CHECK(f != NULL);
	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
		buf_put(out, chunk, n);
	free(command);
	return pclose(f) == 0;
}
