/* SPDX-License-Identifier: Apache-2.0 */
/* state: the server, its connections and their requests.
 *
 * Threads: the loop's thread owns connections, streams and the list of exchanges; an exchange is
 * the loop's until it is pushed to the workers' queue, a worker's until it is on the loop's list of
 * done ones, and then the loop's again. Only `closed` and `hung_up` are shared. */
#pragma once

#include "base/lock.h"
#include "net/net.h"
#include "net/rpc.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/un.h>

#define NET_PEER_BYTES 64

struct net_exchange;
struct net_lane;

struct net_lane_worker {
	struct net_lane *lane;
	pthread_t thread;
	bool busy;      /* guarded by the lane's lock */
	uint64_t share; /* of the exchange that it works on */
};

struct net_lane {
	struct net_server *server;
	struct net_lane_worker *workers; /* NULL: the lane is not used */
	struct lock lock;
	pthread_cond_t changed;
	TAILQ_HEAD(, net_exchange) waiting; /* guarded by the lock, as the count */
	size_t waiting_count;
	uint32_t worker_count; /* set at the start */
	uint32_t idle_count;   /* workers that wait; guarded by the lock, like those below */
	bool waking;           /* one of them was signalled, and does not run yet */
	bool closed;
};

struct net_conn;
struct net_stream;

struct net_exchange {
	atomic_uint refs;
	struct net_server *server;
	struct net_conn *conn;      /* the loop's: NULL after the stream closed */
	struct http_stream *stream; /* a reference, which keeps the request's texts */
	struct net_exchange *next;  /* of the connection's */
	struct net_exchange **link;
	struct net_exchange *done_next;
	TAILQ_ENTRY(net_exchange) turn; /* in the queue of `lane` */
	struct net_lane
		*lane; /* while it waits for a worker, else NULL; guarded by the lane's lock */
	struct net_lane *queued; /* the loop's: the lane that it was pushed to */
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
	size_t accounted;   /* bytes of it that are counted in server->memory */
	int64_t begun_ns;
	int64_t pace_ns;   /* since when the speed of its body has been measured */
	size_t pace_bytes; /* bytes of the body that had come by then */
	int64_t answered_ns;
	bool whole;          /* the request's body is complete */
	bool unguarded;      /* a worker has to ask the guard, which may block */
	bool judging;        /* a worker asks the guard, and the body waits meanwhile; the loop's */
	bool answered;       /* nothing more to do for the loop */
	atomic_bool closed;  /* the stream is gone: no answer will be sent */
	atomic_bool hung_up; /* the peer will send no more, and has probably gone */
	struct net_request request;
	struct net_response response;
	struct net_answer answer;
	struct net_stream *rpc_stream; /* of a streaming RPC; else NULL */
};

struct net_conn {
	struct net_server *server;
	struct net_conn *next;
	struct net_conn **link;
	struct net_conn *again_next; /* in the loop's list of connections with more to do */
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
	bool shut; /* our side is closed, and the connection lingers */
	bool again;
	bool dead;
	int64_t phase_ns; /* when the present phase began */
	enum http_phase phase;
	int64_t stall_ns;  /* since when the speed of the output has been measured; 0: none waits */
	size_t stall_sent; /* bytes that went out since then */
	size_t unsent;     /* as counted in server->memory */
	char peer[NET_PEER_BYTES];
};

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
	int64_t look_ns;         /* when deadlines are checked next */
	struct net_conn *conns;
	struct net_conn *again;
	TAILQ_HEAD(, net_exchange) paused; /* in the order in which they go on */
	uint32_t at_work;                  /* exchanges that wait for a worker, or have one */
	/* The one exchange that goes on however little memory there is, until a worker has it. */
	_Atomic(struct net_exchange *) favoured;
	uint32_t conn_count;
	uint8_t *scratch; /* HTTP_FEED_MAX */
	struct lock done_lock;
	struct net_exchange *done; /* newest first */
	struct lock streams_lock;
	pthread_cond_t streams_gone;
	uint32_t streams; /* handlers of streams that run */
	struct net_metrics metrics;
};
