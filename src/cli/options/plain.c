/* SPDX-License-Identifier: Apache-2.0 */
/* How: bytes that are not UTF-8 are replaced first; then each character is checked by itself. */
#include "cli/options/plain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLACEMENT "\xEF\xBF\xBD"
/* Bytes that are made plain and written at a time. */
#define SHOWN_BYTES 65536

/* Bytes of the UTF-8 character that begins with `first`. */
static size_t length(unsigned char first)
{
	if (first < 0xC0)
		return 1;
	return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

static bool is_obeyed(const unsigned char *p, size_t n, const char *kept)
{
	if (n == 1)
		return (p[0] < 0x20 || p[0] == 0x7F) && (p[0] == 0 || !strchr(kept, p[0]));
	if (n == 2) /* U+0080 to U+009F */
		return p[0] == 0xC2 && p[1] < 0xA0;
	/* U+202A to U+202E, U+2066 to U+2069 */
	return n == 3 && p[0] == 0xE2 &&
	       ((p[1] == 0x80 && p[2] >= 0xAA && p[2] <= 0xAE) ||
		       (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9));
}

void cli_plain(struct str s, const char *kept, struct buf *out)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 3 * s.len + 1);
	buf_utf8(&text, s);
	size_t begin = 0;
	for (size_t i = 0, n; i < text.len; i += n) {
		n = length(text.data[i]);
		if (!is_obeyed(text.data + i, n, kept))
			continue;
		buf_put(out, text.data + begin, i - begin);
		buf_cstr(out, REPLACEMENT);
		begin = i + n;
	}
	if (text.len > begin)
		buf_put(out, text.data + begin, text.len - begin);
	if (text.failed)
		out->failed = true;
}

bool cli_show(FILE *to, struct str s)
{
	if (!isatty(fileno(to)))
		return fwrite(s.p, 1, s.len, to) == s.len;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 9 * SHOWN_BYTES);
	while (s.len) {
		/* Do not cut within a character. */
		size_t n = MIN(s.len, (size_t)SHOWN_BYTES);
		while (n < s.len && n > SHOWN_BYTES - 4 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
			n--;
		buf_clear(&text);
		cli_plain(str_sub(s, 0, n), "\n\t", &text);
		if (text.failed || fwrite(text.data, 1, text.len, to) != text.len)
			return false;
		s = str_sub(s, n, s.len);
	}
	return true;
}
