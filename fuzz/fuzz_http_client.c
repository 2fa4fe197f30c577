/* SPDX-License-Identifier: Apache-2.0 */
/* Property: an answer of a hostile server is read, or refused, the same way whole and byte by byte
 * (HTTP/1; over HTTP/2 no more than that nothing breaks), and never beyond the limit. */
#include "fuzz/fuzz.h"

#include "base/str.h"
#include "http/http.h"

#define BODY_MAX 1000

static struct http_client *run(
	bool http2, const uint8_t *data, size_t size, size_t step, enum status *out)
{
	struct http_client *c;
	struct err e;
	struct str piece;
	FUZZ_CHECK(http_client_new(http2, BODY_MAX, &c) == OK);
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
	if (size < 1 || size > 40000)
		return 0;
	bool http2 = data[0] & 1;
	enum status a, b;
	struct http_client *whole = run(http2, data + 1, size - 1, HTTP_FEED_MAX, &a);
	if (!fuzz_thorough(data, size)) {
		http_client_free(whole);
		return 0;
	}
	struct http_client *cut = run(http2, data + 1, size - 1, 1, &b);
	if (!http2) {
		FUZZ_CHECK(a == b);
		FUZZ_CHECK(http_client_status(whole) == http_client_status(cut));
		if (a == OK)
			FUZZ_CHECK(str_eq(http_client_body(whole), http_client_body(cut)));
	}
	http_client_free(whole);
	http_client_free(cut);
	return 0;
}
