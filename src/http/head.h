/* SPDX-License-Identifier: Apache-2.0 */
/* head: the head of an HTTP/1 message. */
#pragma once

#include "http/http.h"

struct http_head {
	struct str method; /* request */
	struct str target;
	struct str authority;
	int minor;
	struct http_header headers[HTTP_HEADERS_MAX]; /* names as they came */
	uint32_t header_count;
	int64_t content_length; /* -1: none */
	bool chunked;
	bool keep_alive;
	bool expect_continue;
};

/* The length of the head with its blank line, or 0 if the blank line has not come yet. *scanned (0
 * at first) remembers how far it has searched. *out_refuse: 0, or the HTTP status to refuse the
 * request with. */
size_t http_head_find_end(const uint8_t *p, size_t len, size_t *scanned, int *out_refuse);
/* `len` ends with the blank line. 0, or the HTTP status to refuse with and why. */
int http_head_parse_request(const uint8_t *p, size_t len, struct http_head *out, const char **why);
bool http_value_ok(struct str value);
