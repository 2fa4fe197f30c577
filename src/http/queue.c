/* SPDX-License-Identifier: Apache-2.0 */
/* Small writes share a segment; a buffer that is taken over becomes a segment of its own. `bytes`
 * counts the bytes that are not sent yet. */
#include "http/queue.h"

#define SEGMENT_MIN 4096

static struct http_segment *segment_new(size_t cap)
{
	struct http_segment *g = malloc(sizeof(*g) + cap);
	if (!g)
		return NULL;
	*g = (struct http_segment){ .data = (uint8_t *)(g + 1), .cap = cap };
	return g;
}

static void segment_free(struct http_segment *g)
{
	if (g->taken)
		free(g->data);
	free(g);
}

static void append(struct http_queue *q, struct http_segment *g)
{
	if (q->tail)
		q->tail->next = g;
	else
		q->head = g;
	q->tail = g;
}

void http_queue_deinit(struct http_queue *q)
{
	while (q->head) {
		struct http_segment *g = q->head;
		q->head = g->next;
		segment_free(g);
	}
	*q = (struct http_queue){ 0 };
}

bool http_queue_put(struct http_queue *q, const void *bytes, size_t len)
{
	if (len == 0)
		return true;
	struct http_segment *g = q->tail;
	if (!g || g->taken || g->cap - g->len < len) {
		g = segment_new(MAX(len, (size_t)SEGMENT_MIN));
		if (!g)
			return false;
		append(q, g);
	}
	memcpy(g->data + g->len, bytes, len);
	g->len += len;
	q->bytes += len;
	return true;
}

bool http_queue_take(struct http_queue *q, uint8_t *data, size_t len)
{
	struct http_segment *g = len ? malloc(sizeof(*g)) : NULL;
	if (!g) {
		free(data);
		return len == 0;
	}
	*g = (struct http_segment){ .data = data, .len = len, .cap = len, .taken = true };
	append(q, g);
	q->bytes += len;
	return true;
}

size_t http_queue_pieces(const struct http_queue *q, struct str *pieces, size_t max)
{
	size_t n = 0;
	for (struct http_segment *g = q->head; g && n < max; g = g->next)
		pieces[n++] = str_make(g->data + g->at, g->len - g->at);
	return n;
}

void http_queue_drop(struct http_queue *q, size_t len)
{
	assert(len <= q->bytes);
	q->bytes -= len;
	while (q->head) {
		struct http_segment *g = q->head;
		size_t n = MIN(len, g->len - g->at);
		g->at += n;
		len -= n;
		if (g->at < g->len)
			return;
		q->head = g->next;
		if (!q->head)
			q->tail = NULL;
		segment_free(g);
	}
}

size_t http_queue_read(struct http_queue *q, uint8_t *out, size_t max)
{
	size_t done = 0;
	while (q->head && done < max) {
		struct http_segment *g = q->head;
		size_t n = MIN(max - done, g->len - g->at);
		memcpy(out + done, g->data + g->at, n);
		done += n;
		http_queue_drop(q, n);
	}
	return done;
}
