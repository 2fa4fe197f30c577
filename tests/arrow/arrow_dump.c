/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an Arrow stream from standard input as dump.h does: for comparing with other readers. */
#include "dump.h"

#include <stdio.h>
#include <unistd.h>

#define LIMIT ((size_t)1 << 30)

int main(void)
{
	CLEANUP(buf_deinit) struct buf in;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	ssize_t n;
	buf_init(&in, LIMIT);
	buf_init(&out, LIMIT);
	do {
		uint8_t *p = buf_reserve(&in, 65536);
		n = p ? read(STDIN_FILENO, p, 65536) : -1;
		in.len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	enum status s = arrow_dump(buf_view(&in), LIMIT, &out, &e);
	if (s != OK) {
		fprintf(stderr, "%s: %s\n", status_name(s), err_text(&e, s));
		return 1;
	}
	fwrite(out.data, 1, out.len, stdout);
	return 0;
}
