/* SPDX-License-Identifier: Apache-2.0 */
/* queue: bytes waiting to go out, in segments; large ones are taken over, not copied. */
#pragma once

#include "http/http.h"

#define HTTP_TAKE_MIN 4096 /* smaller ones are copied behind the waiting bytes */

struct http_segment {
	struct http_segment *next;
	uint8_t *data; /* behind the segment itself, or malloc's own (taken) */
	size_t at;     /* sent up to here */
	size_t len;
	size_t cap;
	bool taken;
};

struct http_queue {
	struct http_segment *head;
	struct http_segment *tail;
	size_t bytes;
};

void http_queue_deinit(struct http_queue *q);
NODISCARD bool http_queue_put(struct http_queue *q, const void *bytes, size_t len);
/* `data` is free()d when sent, and at once on failure. */
NODISCARD bool http_queue_take(struct http_queue *q, uint8_t *data, size_t len);
size_t http_queue_pieces(const struct http_queue *q, struct str *pieces, size_t max);
void http_queue_drop(struct http_queue *q, size_t len);
/* Copy the first bytes out and drop them. */
size_t http_queue_read(struct http_queue *q, uint8_t *out, size_t max);
