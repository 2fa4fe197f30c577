/* SPDX-License-Identifier: Apache-2.0 */
/* An Arrow stream as the text that tests/arrow/arrow_reader.py makes of it: an independent reader.
 */
#pragma once

#include "base/buf.h"
#include "test.h"

#include <unistd.h>

static inline void arrow_text(const struct buf *stream, char *out, size_t size)
{
	char path[] = "/tmp/firn-test-arrow-XXXXXX", command[1024];
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, stream->data, stream->len) == (ssize_t)stream->len);
	close(fd);
	snprintf(command, sizeof(command), "python3 %s %s", ARROW_READER, path);
	FILE *f = popen(command, "r");
	CHECK(f);
	size_t n = fread(out, 1, size - 1, f);
	out[n] = 0;
	CHECK(pclose(f) == 0);
	unlink(path);
}

/* The column stands in the text, word for word: "name", "type", nullable, [values]. */
static inline void check_column(const char *text, const char *column)
{
	if (!strstr(text, column)) {
		print_error("no %s in\n%s\n", column, text);
		fail();
	}
}
