/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming RPC: an exchange used by two threads. The loop appends received bytes to `in` and
 * takes `out`; the handler's thread cuts messages off `in` and appends frames to `out`. Both do so
 * with `lock` held, and signal `changed` to the other.
 *
 * Flow control: the connection's window is opened again at once for received bytes, the stream's
 * own window only while less than NET_STREAM_AHEAD_MAX of complete messages wait. The bytes held
 * back (`held`) are opened when the handler has taken messages. So a slow handler stops only its
 * own client, and a message may be longer than a window. A handler that sends waits while `unsent`
 * is too large.
 *
 * The handler posts its exchange to the loop each time it has sent something (a unary one does so
 * once), with a reference each time; `posted` keeps it from being in the loop's list twice.
 */
#include "net/stream.h"
#include "base/clock.h"
#include "codec/codec.h"
#include "net/state.h"
#include "net/transcode.h"
#include "net/wake.h"

/* ---- both sides ---- */

enum status net_stream_new(struct net_exchange *x, struct err *e)
{
	struct net_stream *st = calloc(1, sizeof(*st));
	if (!st)
		return err_set(e, E_NOMEM, "stream");
	size_t most = x->server->config.body_max;
	st->x = x;
	buf_init(&st->in, NET_STREAM_AHEAD_MAX + 2 * most);
	buf_init(&st->message, most);
	buf_init(&st->scratch, most);
	buf_init(&st->out, NET_ANSWER_MAX + NET_STREAM_UNSENT_MAX);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	lock_init(&st->lock, LOCK_STREAM);
	pthread_cond_init(&st->changed, &attr);
	pthread_condattr_destroy(&attr);
	x->rpc_stream = st;
	return OK;
}

void net_stream_free(struct net_stream *st)
{
	if (!st)
		return;
	lock_destroy(&st->lock);
	pthread_cond_destroy(&st->changed);
	buf_deinit(&st->in);
	buf_deinit(&st->message);
	buf_deinit(&st->scratch);
	buf_deinit(&st->out);
	free(st);
}

static int64_t patience(const struct net_stream *st)
{
	int64_t own = st->x->route->patience_ns, at;
	if (own == 0)
		own = st->x->server->config.stream_idle_ns;
	return __builtin_add_overflow(clock_monotonic_ns(), own, &at) ? INT64_MAX : at;
}

/* Waits for `changed`, at most until the time at_ns; false: it has passed. */
static bool wait_until(struct net_stream *st, int64_t at_ns)
{
	if (at_ns == INT64_MAX) {
		lock_wait(&st->changed, &st->lock);
		return true;
	}
	struct timespec at = { .tv_sec = at_ns / NS_PER_SEC, .tv_nsec = at_ns % NS_PER_SEC };
	return lock_wait_until(&st->changed, &st->lock, &at) == 0;
}

/* ---- the handler's side ---- */

/* With the lock held: tells the loop that there is something to do. */
static void post(struct net_stream *st)
{
	if (st->posted || st->gone)
		return;
	st->posted = true;
	atomic_fetch_add_explicit(&st->x->refs, 1, memory_order_relaxed);
	net_loop_done(st->x->server, st->x);
}

static enum status why_late(const struct net_stream *st, const char *what, struct err *e)
{
	if (clock_monotonic_ns() >= st->x->request.deadline_ns)
		return err_set(e, E_TIMEOUT, "the deadline passed");
	return err_set(e, E_TIMEOUT, "%s in time", what);
}

/* Moves a complete frame from the front of `in` into `message`. */
static struct http_grpc_frame take_frame(struct net_stream *st)
{
	struct str rest = str_sub(buf_view(&st->in), st->taken, st->in.len);
	struct http_grpc_frame f = { 0 };
	enum status s = http_grpc_next(&rest, SIZE_MAX, &f, NULL);
	assert(s == OK);
	size_t used = HTTP_GRPC_PREFIX_BYTES + f.bytes.len;
	buf_clear(&st->message);
	buf_str(&st->message, f.bytes);
	f.bytes = buf_view(&st->message);
	st->taken += used;
	st->whole -= used;
	if (st->taken == st->in.len) {
		st->in.len = st->taken = 0;
		/* Frees the memory that a large message needed. */
		if (st->in.cap > NET_STREAM_AHEAD_MAX) {
			size_t max = st->in.max;
			buf_deinit(&st->in);
			buf_init(&st->in, max);
		}
	} else if (st->taken > st->in.len / 2) {
		memmove(st->in.data, st->in.data + st->taken, st->in.len - st->taken);
		st->in.len -= st->taken;
		st->taken = 0;
	}
	if (st->held && st->whole < NET_STREAM_AHEAD_MAX)
		post(st);
	return f;
}

/* Waits for a complete frame; with the lock held. *out_end: the client's stream has ended. */
static enum status await_frame(struct net_stream *st, bool *out_end, struct err *e)
{
	int64_t until = MIN(patience(st), st->x->request.deadline_ns);
	for (;;) {
		if (st->gone)
			return err_set(e, E_CANCELED, "the client has gone");
		if (st->whole) {
			*out_end = false;
			return OK;
		}
		if (st->bad != OK)
			return err_set(e, st->bad, "%s", st->why.text);
		if (st->ended && st->in.len > st->taken)
			return err_set(e, E_INVALID, "the last message is not whole");
		if (st->ended) {
			*out_end = true;
			return OK;
		}
		if (st->stopping)
			return err_set(e, E_UNAVAILABLE, "the server is stopping");
		if (!wait_until(st, until) && clock_monotonic_ns() >= until)
			return why_late(st, "no message came", e);
	}
}

/* The message of a frame as protobuf. */
static enum status open_frame(
	struct net_stream *st, const struct http_grpc_frame *f, struct str *out, struct err *e)
{
	struct net_exchange *x = st->x;
	bool json = x->framing == NET_CONNECT_STREAM_JSON;
	bool connect = net_is_connect_stream(x->framing);
	const char *header = connect ? "connect-content-encoding" : "grpc-encoding";
	struct str encoding = http_request_header(http_stream_request(x->stream), header);
	enum status s = http_grpc_message(f, encoding, &st->scratch, out, e);
	if (s != OK || !json)
		return s;
	buf_clear(&x->message);
	s = pb_json_decode(x->route->rpc->input, *out, PB_IGNORE_UNKNOWN, &x->message, e);
	*out = buf_view(&x->message);
	return s;
}

enum status net_stream_receive(struct net_stream *st, struct str *out, bool *out_end, struct err *e)
{
	struct http_grpc_frame f = { 0 };
	bool end = false;
	lock_take(&st->lock);
	enum status s = await_frame(st, &end, e);
	if (s == OK && !end) {
		f = take_frame(st);
		s = buf_status(&st->message);
		if (s != OK)
			s = err_set(e, s, "message of %zu bytes", f.bytes.len);
	}
	lock_release(&st->lock);
	struct str message = STR("");
	buf_clear(&st->scratch);
	if (s == OK && !end)
		s = open_frame(st, &f, &message, e);
	if (s != OK)
		return s;
	*out = message;
	*out_end = end;
	return OK;
}

/* Writes a message in the stream's framing. */
static enum status make_piece(
	struct net_stream *st, struct str message, struct buf *out, struct err *e)
{
	if (message.len > NET_BODY_MAX)
		return err_set(e, E_LIMIT, "an answer of %zu bytes; the limit is %zu", message.len,
			NET_BODY_MAX);
	if (st->x->framing == NET_PLAIN) {
		buf_str(out, message);
		return buf_status(out);
	}
	if (st->x->framing == NET_REST)
		return net_json_piece(st->x, message, out, e);
	CLEANUP(buf_deinit) struct buf small;
	buf_init(&small, NET_ANSWER_MAX);
	uint8_t flags = 0;
	if (st->x->framing == NET_CONNECT_STREAM_JSON) {
		enum status s = pb_json_encode(st->x->route->rpc->output, message, 0, &small, e);
		if (s != OK)
			return s == E_INVALID ? E_IO : s;
		message = buf_view(&small);
	}
	if (st->compress && message.len >= NET_COMPRESS_MIN &&
		codec_gzip(message.p, message.len, NET_COMPRESS_LEVEL, &small) == OK &&
		small.len < message.len) {
		flags = HTTP_GRPC_COMPRESSED;
		message = buf_view(&small);
	}
	http_grpc_put(out, flags, message);
	return buf_status(out);
}

/* Copies the response's head for the loop, with the lock held. What the handler sets later has no
 * effect. */
static void note_head(struct net_stream *st)
{
	const struct net_response *r = &st->x->response;
	if (st->headed || st->x->framing != NET_PLAIN)
		return;
	st->headed = true;
	st->head.content_type = r->content_type;
	st->head.bytes = r->stream_bytes;
	memcpy(st->head.lines, r->headers, sizeof(st->head.lines));
}

enum status net_stream_send(struct net_stream *st, struct str message, struct err *e)
{
	CLEANUP(buf_deinit) struct buf piece;
	buf_init(&piece, NET_ANSWER_MAX);
	enum status s = make_piece(st, message, &piece, e);
	int64_t until = MIN(patience(st), st->x->request.deadline_ns);
	lock_take(&st->lock);
	while (!st->gone && st->out.len + st->unsent > NET_STREAM_UNSENT_MAX && s == OK)
		if (!wait_until(st, until) && clock_monotonic_ns() >= until)
			s = why_late(st, "the client took no message", e);
	if (st->gone)
		s = err_set(e, E_CANCELED, "the client has gone");
	if (s == OK) {
		note_head(st);
		buf_str(&st->out, buf_view(&piece));
		s = buf_status(&st->out);
		post(st);
	}
	lock_release(&st->lock);
	return s;
}

enum status net_stream_wait(struct net_stream *st, int64_t until_ns, struct err *e)
{
	enum status s = OK;
	int64_t until = MIN(until_ns, st->x->request.deadline_ns);
	lock_take(&st->lock);
	while (!st->gone && !st->stopping && clock_monotonic_ns() < until)
		(void)wait_until(st, until);
	/* With HTTP/1.1 only `hung_up` shows that the client has gone while an answer is made. */
	if (st->gone || atomic_load_explicit(&st->x->hung_up, memory_order_relaxed))
		s = err_set(e, E_CANCELED, "the client has gone");
	else if (st->stopping)
		s = err_set(e, E_UNAVAILABLE, "the server is stopping");
	else if (clock_monotonic_ns() >= st->x->request.deadline_ns)
		s = err_set(e, E_TIMEOUT, "the deadline passed");
	lock_release(&st->lock);
	return s;
}

void net_stream_finish(struct net_stream *st)
{
	lock_take(&st->lock);
	st->finished = true;
	post(st);
	lock_release(&st->lock);
}

/* ---- the loop's side ---- */

/* Counts the frames that are complete now. */
static void measure(struct net_stream *st)
{
	size_t most = st->x->server->config.body_max;
	while (st->bad == OK) {
		struct str rest = str_sub(buf_view(&st->in), st->taken + st->whole, st->in.len);
		size_t before = rest.len;
		struct http_grpc_frame f;
		enum status s = http_grpc_next(&rest, most, &f, &st->why);
		if (s == E_UNAVAILABLE)
			return;
		if (s != OK)
			st->bad = s;
		else
			st->whole += before - rest.len;
	}
}

size_t net_stream_feed(struct net_stream *st, const void *bytes, size_t len, bool *out_open)
{
	lock_take(&st->lock);
	size_t had = st->whole;
	if (st->bad == OK) {
		buf_put(&st->in, bytes, len);
		if (st->in.failed)
			st->bad = err_set(&st->why, E_LIMIT, "no memory for more messages");
		measure(st);
	}
	*out_open = st->whole < NET_STREAM_AHEAD_MAX;
	if (!*out_open)
		st->held += len;
	if (st->whole > had || st->bad != OK)
		pthread_cond_signal(&st->changed);
	size_t waiting = st->in.len;
	lock_release(&st->lock);
	return waiting;
}

void net_stream_put_all(struct net_stream *st, struct buf *frames)
{
	lock_take(&st->lock);
	struct buf empty = st->in;
	st->in = *frames;
	*frames = empty;
	st->ended = true;
	measure(st);
	lock_release(&st->lock);
}

static void note(struct net_stream *st, bool *what)
{
	lock_take(&st->lock);
	*what = true;
	pthread_cond_signal(&st->changed);
	lock_release(&st->lock);
}

void net_stream_end(struct net_stream *st)
{
	note(st, &st->ended);
}

void net_stream_gone(struct net_stream *st)
{
	note(st, &st->gone);
}

void net_stream_stop(struct net_stream *st)
{
	note(st, &st->stopping);
}

void net_stream_overload(struct net_stream *st)
{
	lock_take(&st->lock);
	st->bad = err_set(&st->why, E_UNAVAILABLE, "the server is busy, try again");
	pthread_cond_signal(&st->changed);
	lock_release(&st->lock);
}

void net_stream_note_sent(struct net_stream *st, size_t unsent)
{
	/* Only the loop writes `unsent`, so the loop may read it without the lock. */
	if (st->unsent == unsent)
		return;
	lock_take(&st->lock);
	st->unsent = unsent;
	pthread_cond_signal(&st->changed);
	lock_release(&st->lock);
}

struct net_stream_news net_stream_take_news(struct net_stream *st)
{
	struct net_stream_news n = { 0 };
	lock_take(&st->lock);
	st->posted = false;
	n.out = st->out;
	buf_init(&st->out, n.out.max);
	st->unsent += n.out.len;
	if (st->whole < NET_STREAM_AHEAD_MAX) {
		n.open = st->held;
		st->held = 0;
	}
	n.waiting = st->in.len;
	n.finished = st->finished;
	lock_release(&st->lock);
	return n;
}
