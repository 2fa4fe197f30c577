/* SPDX-License-Identifier: Apache-2.0 */
/* watch: the pods of this node by the API server's watch, in a thread of its own. */
#pragma once

#include "container/container.h"
#include "container/decode.h"

enum container_watch_state {
	CONTAINER_WATCH_BEGINS,  /* nothing is known yet */
	CONTAINER_WATCH_GOES_ON, /* changes are reported */
	CONTAINER_WATCH_AWAY,    /* the API does not answer; it is tried again */
	CONTAINER_WATCH_REFUSED  /* we may list, but not watch; it is tried again, less and less
				    often */
};

struct container_watch_config {
	const struct containers_config *containers;
	struct container_sink sink; /* called by the thread */
	void (*changed)(void *ctx); /* the state or the problem changed; called by the thread.
				       `ctx`: the sink's */
	struct containers_metrics *metrics;
	int64_t backoff_min_ns; /* 0: a second */
	int64_t refused_min_ns; /* 0: 30 s */
};

struct container_watch;
/* `c` is copied; what it points to is not. */
NODISCARD enum status container_watch_start(
	const struct container_watch_config *c, struct container_watch **out, struct err *e);
void container_watch_stop(struct container_watch *w); /* NULL is fine */
enum container_watch_state container_watch_state(struct container_watch *w);
/* Lets the watch report all pods again, at most once a minute, since some were forgotten. Any
 * thread. */
void container_watch_again(struct container_watch *w);
/* Whether the API knows no node of our name. */
bool container_watch_node_is_unknown(struct container_watch *w);
/* "" when all is well. */
void container_watch_problem(struct container_watch *w, char out[ERR_TEXT_MAX]);
