/* SPDX-License-Identifier: Apache-2.0 */
/* chunked: decodes the chunks of a body of HTTP/1. */
#pragma once

#include "http/http.h"

enum http_chunk_state {
	HTTP_CHUNK_SIZE,
	HTTP_CHUNK_EXTENSION,
	HTTP_CHUNK_SIZE_LF,
	HTTP_CHUNK_DATA,
	HTTP_CHUNK_DATA_CR,
	HTTP_CHUNK_DATA_LF,
	HTTP_CHUNK_LINE, /* first byte of a trailer line or of the end */
	HTTP_CHUNK_FIELD_NAME,
	HTTP_CHUNK_FIELD_VALUE,
	HTTP_CHUNK_FIELD_LF,
	HTTP_CHUNK_END_LF,
	HTTP_CHUNK_DONE,
	HTTP_CHUNK_BAD,
};

struct http_chunked {
	enum http_chunk_state state;
	uint64_t left;   /* of the chunk */
	uint32_t digits; /* of its size */
	uint32_t extra;  /* bytes of extensions and trailers so far */
};

/* Reads until it has found bytes of the body (*out_data), the end, or an error. Returns how many
 * bytes it used. */
size_t http_chunked_feed(
	struct http_chunked *c, const uint8_t *p, size_t len, struct str *out_data);
