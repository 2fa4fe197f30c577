/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever a hostile server sends, as a whole and byte by byte, nothing breaks, and no
 * body is longer than the limit. */
#include "fuzz/fuzz.h"

#include "base/str.h"
#include "http/http.h"

#define BODY_MAX 1000

static struct http_client *run(const uint8_t *data, size_t size, size_t step, enum status *out)
{
	struct http_client *c;
	struct err e;
	struct str piece;
	FUZZ_CHECK(http_client_new(BODY_MAX, &c) == OK);
	FUZZ_CHECK(http_client_start(
			   c, "POST", STR("h"), STR("/"), NULL, 0, STR(""), STR("body"), &e) == OK);
	*out = OK;
	while (size && *out == OK && !http_client_done(c)) {
		while (http_client_output(c, &piece, 1))
			http_client_sent(c, piece.len);
		size_t n = MIN(size, step);
		*out = http_client_feed(c, data, n, &e);
		data += n;
		size -= n;
	}
	FUZZ_CHECK(http_client_body(c).len <= BODY_MAX);
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum status s;
	if (size > 40000)
		return 0;
	http_client_free(run(data, size, HTTP_FEED_MAX, &s));
	if (fuzz_thorough(data, size))
		http_client_free(run(data, size, 1, &s));
	return 0;
}
