/* SPDX-License-Identifier: Apache-2.0 */
/* A server side that writes down what happens, for tests and fuzz targets: every request is
 * answered at its end with "ok" and the length of its body, unless `answer` says otherwise. */
#pragma once

#include "base/hash.h"
#include "http/http.h"

#define PEER_LOG_MAX ((size_t)64 << 20)

struct peer;
typedef void peer_answer_fn(struct peer *p, struct http_stream *s, struct str body);

struct peer {
	struct http_conn *c;
	struct buf log; /* "head …", "end …", "close", "refuse 400" lines */
	struct buf out;
	peer_answer_fn *answer;
	void *ctx;
	uint32_t heads;
	uint32_t ends;
	uint32_t closes;
	int refused;        /* status of the last refusal, -1: none */
	bool closes_unsaid; /* not in the log */
	bool keep_window;   /* do not give bytes back */
	bool holds;         /* the stream's own only at its end */
};

static inline void peer_on_head(void *ctx, struct http_stream *s)
{
	struct peer *p = (struct peer *)ctx;
	const struct http_request *r = http_stream_request(s);
	p->heads++;
	buf_printf(&p->log, "head %.*s %.*s host=%.*s len=%lld", STR_ARG(r->method),
		STR_ARG(r->target), STR_ARG(r->authority), (long long)r->content_length);
	for (uint32_t i = 0; i < r->header_count; i++)
		buf_printf(&p->log, " [%.*s=%.*s]", STR_ARG(r->headers[i].name),
			STR_ARG(r->headers[i].value));
	buf_cstr(&p->log, "\n");
	struct buf *body = (struct buf *)calloc(1, sizeof(*body));
	buf_init(body, PEER_LOG_MAX);
	http_stream_set_user(s, body);
}

static inline void peer_on_data(void *ctx, struct http_stream *s, const void *bytes, size_t len)
{
	struct peer *p = (struct peer *)ctx;
	buf_put((struct buf *)http_stream_user(s), bytes, len);
	if (p->holds)
		http_consume_held(s, len);
	else if (!p->keep_window)
		http_consume(s, len);
}

static inline void peer_on_end(void *ctx, struct http_stream *s)
{
	struct peer *p = (struct peer *)ctx;
	struct str body = buf_view((struct buf *)http_stream_user(s));
	p->ends++;
	if (p->holds)
		http_open_window(s, body.len);
	buf_printf(&p->log, "end %zu %016llx\n", body.len,
		(unsigned long long)hash64(body.p ? body.p : "", body.len));
	if (p->answer) {
		p->answer(p, s, body);
		return;
	}
	char text[32];
	int n = snprintf(text, sizeof(text), "ok %zu", body.len);
	http_respond(s, 200, NULL, 0, n);
	http_write(s, text, (size_t)n);
	http_finish(s, NULL, 0);
}

static inline void peer_on_close(void *ctx, struct http_stream *s, bool answered)
{
	struct peer *p = (struct peer *)ctx;
	p->closes++;
	if (!p->closes_unsaid)
		buf_printf(&p->log, "close %d\n", answered);
	buf_deinit((struct buf *)http_stream_user(s));
	free(http_stream_user(s));
}

static inline void peer_on_refuse(void *ctx, int http_status)
{
	struct peer *p = (struct peer *)ctx;
	p->refused = http_status;
	buf_printf(&p->log, "refuse %d\n", http_status);
}

static const struct http_events peer_events = { peer_on_head, peer_on_data, peer_on_end,
	peer_on_close, peer_on_refuse };

static inline void peer_init(struct peer *p)
{
	struct http_config config;
	http_config_default(&config);
	*p = (struct peer){ .refused = -1 };
	buf_init(&p->log, PEER_LOG_MAX);
	buf_init(&p->out, PEER_LOG_MAX);
	p->c = http_conn_new(&config, &peer_events, p);
}

/* The log gets the closes of what was under way. */
static inline void peer_end(struct peer *p)
{
	http_conn_free(p->c);
	p->c = NULL;
}

static inline void peer_deinit(struct peer *p)
{
	peer_end(p);
	buf_deinit(&p->log);
	buf_deinit(&p->out);
}

/* Everything that can go out goes out; true if anything did. */
static inline bool peer_flush(struct peer *p)
{
	struct str piece;
	bool any = false;
	while (http_conn_output(p->c, &piece, 1)) {
		buf_str(&p->out, piece);
		http_conn_sent(p->c, piece.len);
		any = true;
	}
	return any;
}

/* Bytes in, `step` at a time, as a loop would do it. */
static inline void peer_feed(struct peer *p, const void *bytes, size_t len, size_t step)
{
	const char *at = (const char *)bytes;
	while (len && http_conn_wants_input(p->c)) {
		size_t n = len < step ? len : step;
		http_conn_feed(p->c, at, n);
		at += n;
		len -= n;
		while (peer_flush(p))
			http_conn_feed(p->c, NULL, 0);
	}
}
