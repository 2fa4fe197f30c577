/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net's own. Threads: the loop's thread owns connections, streams and the list of exchanges; an
 * exchange is the loop's until it is pushed to the workers' queue, a worker's until it is on the
 * loop's list of done ones, and then the loop's again. Only `closed` and `hung_up` are shared.
 */
#pragma once

#include "base/lock.h"
#include "net/address.h"
#include "net/net.h"
#include "net/rpc.h"
#include "net/tls.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NET_PEER_BYTES 64

/* ---- lane.c: requests that wait for a worker ---- */

struct net_exchange;
struct net_lane;

struct net_lane_worker {
	struct net_lane *lane;
	pthread_t thread;
	bool busy;      /* the lane's lock's */
	uint64_t share; /* of what it does */
};

struct net_lane {
	struct net_server *server;
	struct net_lane_worker *workers; /* NULL: the lane is not used */
	struct lock lock;
	pthread_cond_t changed;
	TAILQ_HEAD(, net_exchange) waiting; /* the lock's, as what follows */
	size_t waiting_count;
	uint32_t worker_count; /* set at the start */
	bool closed;
};

void net_lane_init(struct net_lane *l);
/* The workers end when nothing waits any more. */
void net_lane_close(struct net_lane *l);
void net_lane_deinit(struct net_lane *l);
/* False: too many wait. Else the lane has the caller's reference. */
NODISCARD bool net_lane_push(struct net_lane *l, struct net_exchange *x);
/* Waits; NULL: the lane is stopped and empty. */
struct net_exchange *net_lane_pop(struct net_lane_worker *w);
/* True: it was waiting, and is the caller's now. */
NODISCARD bool net_lane_remove(struct net_lane *l, struct net_exchange *x);

/* ---- pause.c: where bodies and answers take too much memory; the loop's ---- */

/* Before the handler has it: it goes on when others have given memory back. One at a time goes on
 * nevertheless. */
void net_pause(struct net_exchange *x);
/* Bodies and answers take more than twice what they may. */
bool net_pause_is_pressed(const struct net_server *s);
/* The guard is being asked: nothing of the body is read meanwhile. And: it has answered. */
void net_pause_judge(struct net_exchange *x);
void net_pause_judged(struct net_exchange *x);
/* A worker has it; any thread. */
void net_pause_begun(struct net_exchange *x);
/* The exchange is over, or refused. */
void net_pause_forget(struct net_exchange *x);
/* The next that may go on, for net_incoming_resume(); NULL: none now. */
struct net_exchange *net_pause_next(struct net_server *s);

/* ---- exchange.c: one request and its answer ---- */

struct net_conn;

struct net_exchange {
	atomic_uint refs;
	struct net_server *server;
	struct net_conn *conn;      /* the loop's: NULL after the stream closed */
	struct http_stream *stream; /* a reference, for the request's texts */
	struct net_exchange *next;  /* of the connection's */
	struct net_exchange **link;
	struct net_exchange *done_next;
	TAILQ_ENTRY(net_exchange) turn; /* while it waits for a worker, in: */
	struct net_lane *lane;          /* with its lock held; else NULL */
	struct net_lane *queued;        /* the loop's: where it was pushed */
	uint64_t share;
	int64_t turn_ns;                 /* when it has waited long enough */
	TAILQ_ENTRY(net_exchange) pause; /* while `paused`; the loop's */
	bool paused;
	size_t window_held; /* bytes by which the stream's window is to be opened */
	const struct net_route *route;
	enum net_framing framing;
	char *path_text;
	char peer[NET_PEER_BYTES];
	struct buf body;    /* as received */
	struct buf scratch; /* decoded */
	struct buf message; /* made of JSON */
	size_t accounted;   /* of server->memory */
	int64_t begun_ns;
	int64_t pace_ns;   /* since when its body has been measured, */
	size_t pace_bytes; /* and what had come by then */
	int64_t answered_ns;
	bool whole;          /* the request's body is */
	bool unguarded;      /* the guard is to be asked where it may block */
	bool judging;        /* a worker asks it, and the body waits so long; the loop's */
	bool answered;       /* nothing more to do for the loop */
	atomic_bool closed;  /* the stream is gone: no answer will be sent */
	atomic_bool hung_up; /* the peer will send no more, and has probably gone */
	struct net_request request;
	struct net_response response;
	struct net_answer answer;
	struct net_stream *rpc_stream; /* of a streaming RPC; else NULL */
};

/* Loop, as what follows; one reference, the stream's. NULL: no memory. */
struct net_exchange *net_exchange_new(struct net_conn *c, struct http_stream *stream);
/* Sets how many bytes of server->memory the exchange takes now. */
void net_exchange_account(struct net_exchange *x, size_t bytes);
/* Hands x->answer to http. */
void net_exchange_answer(struct net_exchange *x);
/* Answers at once, without a handler. http_status 0: the status' own. */
void net_exchange_refuse(
	struct net_exchange *x, int http_status, enum status s, const struct err *e);
void net_exchange_refuse_busy(struct net_exchange *x);
/* The client has gone, or it is too late: true when no worker had begun. */
bool net_exchange_leave_queue(struct net_exchange *x);
/* Loop: hand the answer to http. Drops one reference. */
void net_exchange_deliver(struct net_exchange *x);
void net_exchange_unref(struct net_exchange *x);
/* Loop: its body, or its deadline, is over the time. */
void net_exchange_refuse_late(struct net_exchange *x, int64_t now_ns);
/* Loop: it has waited too long for a worker. False: one has it by now. */
bool net_exchange_refuse_waiting(struct net_exchange *x);

/* ---- route.c ---- */

/* x->framing and x->route; NULL: none takes it. */
void net_route_choose(struct net_exchange *x, const struct http_request *h);
/* The methods that a path takes, in x->response.headers; false when there is no such path. */
bool net_route_put_allow(struct net_exchange *x);

/* ---- incoming.c: a request from its head to the workers' queue; the loop's ---- */

extern const struct http_events net_events;
/* One that net_pause_next() has let go on. */
void net_incoming_resume(struct net_exchange *x);
/* One that is `judging` comes back from its worker. Drops one reference. */
void net_incoming_judged(struct net_exchange *x);

/* ---- handler.c: from the whole request to its answer, and the threads that do it ---- */

/* Worker thread or loop. */
void net_handler_run(struct net_exchange *x);
/* net_workers_stop() is due after a failure too. */
NODISCARD enum status net_workers_start(
	struct net_lane *l, struct net_server *s, uint32_t workers, struct err *e);
/* Requests in the queue are still handled. */
void net_workers_stop(struct net_lane *l);
/* A thread for the handler of a stream. False: there are too many. */
NODISCARD bool net_stream_start(struct net_exchange *x);
/* Waits for all handlers of streams to return; their streams are gone. */
void net_stream_join_all(struct net_server *s);

/* ---- transcode.c ---- */

#define NET_REST_FIELDS_MAX 8 /* in a path */
/* Does "/a/{name}/b" fit the path; its fields, which point into both. */
bool net_rest_fits(const char *pattern, struct str path, struct pb_param *out, size_t *out_count);
/* The message of a request in JSON (or of its URL), by x->route->rpc. */
NODISCARD enum status net_json_message(
	const struct net_exchange *x, struct str text, struct buf *out, struct err *e);
/* Objects one behind the other, as gRPC's frames; `text` is used up. */
NODISCARD enum status net_json_frames(
	struct net_exchange *x, struct str text, struct buf *out, struct err *e);
/* The messages of a whole request to a stream, as gRPC's frames. */
NODISCARD enum status net_body_frames(struct net_exchange *x, struct buf *out, struct err *e);
/* One message of a stream: alone, or {"result":…} on a line where there may be more. */
NODISCARD enum status net_json_piece(
	const struct net_exchange *x, struct str message, struct buf *out, struct err *e);
/* x->response.body from protobuf to JSON. */
void net_json_answer(struct net_exchange *x);

/* ---- stream.c: a streaming RPC, seen from its handler and from the loop ---- */

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

/* ---- access.c ---- */

/* E_DENIED: not by this name, or not from that page. */
NODISCARD enum status net_access_check(
	const struct net_exchange *x, const struct http_request *h, struct err *e);
/* Worker or the thread of a stream: what the guard could not say on the loop. False: refused, with
 * x->response. */
bool net_access_guard(struct net_exchange *x);
/* The headers that let a page of another origin read the answer. */
void net_access_put(struct net_exchange *x);
bool net_access_is_preflight(const struct net_exchange *x);
void net_access_preflight(struct net_exchange *x);
enum net_prefix { NET_PREFIX_FITS, NET_PREFIX_REDIRECT, NET_PREFIX_OTHER };
/* The path without the server's prefix. */
enum net_prefix net_access_prefix(const struct net_exchange *x, struct str path, struct str *out);

/* ---- conn.c ---- */

struct net_conn {
	struct net_server *server;
	struct net_conn *next;
	struct net_conn **link;
	struct net_conn *again_next; /* of the loop's list of those with more to do */
	struct http_conn *http;
	struct net_tls_conn *tls;    /* NULL: none */
	TAILQ_ENTRY(net_conn) shake; /* while `shaking` */
	bool shaking;                /* the handshake is not over */
	struct net_exchange *exchanges;
	int fd;
	uint32_t paused; /* exchanges of HTTP/1: nothing is read */
	bool readable;
	bool writable;
	bool eof;
	bool shut; /* our side: lingering */
	bool again;
	bool dead;
	int64_t phase_ns; /* when the present phase began */
	enum http_phase phase;
	int64_t stall_ns;  /* since when waiting output has been measured; 0: none waits */
	size_t stall_sent; /* bytes that went out since */
	size_t unsent;     /* as counted in server->memory */
	char peer[NET_PEER_BYTES];
};

void net_conn_open(struct net_server *s, int fd, const struct sockaddr_storage *peer);
void net_conn_events(struct net_conn *c, uint32_t events);
/* Read, answer and write as far as it goes; frees the connection when it is over. */
void net_conn_pump(struct net_conn *c);
void net_conn_close(struct net_conn *c);
/* Whether one more may be accepted: of too many handshakes the oldest gives way. Else *out_at_ns is
 * when it is old enough. */
bool net_conn_make_room(struct net_server *s, int64_t now_ns, int64_t *out_at_ns);
/* Refuses requests whose body is late, gives up answers of HTTP/2 that are not read. */
void net_conn_give_up_late(struct net_conn *c, int64_t now_ns);
/* When to look at this connection again for being too slow; INT64_MAX: never. Closes nothing. */
int64_t net_conn_deadline(const struct net_conn *c);

/* ---- loop.c ---- */

NODISCARD enum status net_loop_start(struct net_server *s, struct err *e);

/* ---- wake.c: what others ask of the loop ---- */

/* From any thread: an exchange is ready to be delivered. */
void net_loop_done(struct net_server *s, struct net_exchange *x);
void net_loop_wake(struct net_server *s);
/* Loop's thread: a deadline that may be nearer than the next look. */
void net_loop_look_at(struct net_server *s, int64_t at_ns);
/* Loop's thread: net_conn_pump() before it sleeps again. */
void net_loop_again(struct net_server *s, struct net_conn *c);

/* ---- server.c ---- */

struct net_server {
	struct net_server_config config;
	struct net_route *routes;
	size_t route_count;
	struct net_tls *tls;           /* NULL: none */
	TAILQ_HEAD(, net_conn) shakes; /* oldest first */
	uint32_t shake_count;
	char address[160];
	char unix_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct net_lane lanes[NET_LANES];
	pthread_t loop;
	bool loop_runs;
	atomic_bool stop;
	atomic_uint turns; /* of the loop */
	unsigned turns_seen;
	atomic_size_t memory;
	/* loop's */
	int listen_fd;
	int epoll_fd;
	int event_fd;
	bool accepting;
	bool draining;
	int64_t drain_until_ns;
	int64_t accept_again_ns; /* after a failure; 0: none */
	int64_t look_ns;         /* next look at deadlines */
	struct net_conn *conns;
	struct net_conn *again;
	TAILQ_HEAD(, net_exchange) paused; /* in the order in which they go on */
	uint32_t at_work;                  /* exchanges that wait for a worker, or have one */
	/* Goes on however little memory there is, until a worker has it. */
	_Atomic(struct net_exchange *) favoured;
	uint32_t conn_count;
	uint8_t *scratch; /* HTTP_FEED_MAX */
	struct lock done_lock;
	struct net_exchange *done; /* newest first */
	struct lock streams_lock;
	pthread_cond_t streams_gone;
	uint32_t streams; /* handlers that run */
	struct net_metrics metrics;
};
