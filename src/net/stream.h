/* SPDX-License-Identifier: Apache-2.0 */
/* stream: a streaming RPC, seen from its handler and from the loop. */
#pragma once

#include "base/lock.h"
#include "net/net.h"
#include "net/rpc.h"
#include "net/state.h"

struct net_stream {
	struct net_exchange *x;
	struct lock lock;
	pthread_cond_t changed;
	/* the lock's */
	struct buf in; /* frames as they came, from `taken` on */
	size_t taken;
	size_t whole; /* bytes of whole frames behind `taken` */
	size_t held;  /* bytes that the stream's window still lacks */
	struct buf out;
	struct net_plain_head head; /* set with the first piece */
	bool headed;
	size_t unsent; /* taken by the loop, not yet by the connection */
	enum status bad;
	struct err why;
	bool ended;    /* the client has sent its last */
	bool gone;     /* the peer is */
	bool stopping; /* the server is */
	bool posted;
	bool finished; /* the handler has returned */
	/* the handler's */
	struct buf message;
	struct buf scratch;
	/* the loop's */
	bool compress;
	bool live; /* the handler runs while messages come */
	bool running;
	bool begun; /* the head of the answer went out */
};

/* Makes x->rpc_stream. */
NODISCARD enum status net_stream_new(struct net_exchange *x, struct err *e);
void net_stream_free(struct net_stream *st);
/* Bytes of the client. Returns how many wait; *out_open: the window may be opened by `len`. */
size_t net_stream_feed(struct net_stream *st, const void *bytes, size_t len, bool *out_open);
/* The handler's thread: all frames at once, which are taken over; and its end. */
void net_stream_put_all(struct net_stream *st, struct buf *frames);
void net_stream_finish(struct net_stream *st);
void net_stream_end(struct net_stream *st);
void net_stream_gone(struct net_stream *st);
void net_stream_stop(struct net_stream *st);
void net_stream_overload(struct net_stream *st);
void net_stream_note_sent(struct net_stream *st, size_t unsent);
struct net_stream_news {
	struct buf out; /* the caller's now */
	size_t open;    /* bytes to open the window by */
	size_t waiting;
	bool finished;
};
struct net_stream_news net_stream_take_news(struct net_stream *st);
