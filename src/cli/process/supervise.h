/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise: runs the server and the agent as two children: starts them, reports when they are
 * ready, restarts them when they die, and stops them in order.
 *
 * Private to cli/. One supervisor a process: it owns SIGCHLD, SIGINT, SIGTERM and SIGHUP.
 */
#pragma once

#include "agent/agent.h"
#include "server/server.h"

#include <sys/types.h>

/* The supervisor gives up when the server has died so many times in a row without living for
 * SUPERVISE_HEALTHY_NS. The agent is restarted for ever. */
#define SUPERVISE_SERVER_DEATHS_MAX 5
#define SUPERVISE_HEALTHY_NS (60 * NS_PER_SEC)
/* Waits before a dead child is started again: doubled each time, from the least to the most. */
#define SUPERVISE_BACKOFF_MIN_NS (1 * NS_PER_SEC)
#define SUPERVISE_BACKOFF_MAX_NS (60 * NS_PER_SEC)
/* How long a child may take to stop before it is killed. */
#define SUPERVISE_AGENT_STOP_NS (20 * NS_PER_SEC)
#define SUPERVISE_SERVER_STOP_NS (60 * NS_PER_SEC)
#define SUPERVISE_ASK_AGAIN_NS (1 * NS_PER_SEC)

struct supervise_config {
	struct server_config server; /* ready_fd and handover_fd are set here */
	struct agent_config agent;   /* and remote_store_address */
	bool with_agent;
	/* Called when the server listens: `address` as the server reports it, `dial` for clients on
	 * this host. */
	void (*on_server)(void *ctx, const char *address, const char *dial);
	/* Called when sampling has begun. Both may be called again after a restart. */
	void (*on_agent)(void *ctx);
	/* Called when sampling begins, and then about once a second; it may set *next_ns
	 * (monotonic) to an earlier time. True: stop now. May be NULL, as the two below. */
	bool (*on_second)(void *ctx, int64_t *next_ns);
	/* Another child of the caller's, whose end stops everything; 0: none. */
	pid_t watch_pid;
	void (*on_watch_end)(void *ctx, int wait_status);
	/* Called when the agent has ended, and the server, which still answers, has taken all that
	 * it sent. */
	void (*on_agent_end)(void *ctx, const char *dial);
	void *ctx;
	/* Tests are less patient; 0: as above. */
	int64_t backoff_min_ns;
	int64_t agent_stop_ns;
	int64_t server_stop_ns;
};

/* Runs until a signal stops it or it gives up. Returns the exit code. */
int supervise_run(const struct supervise_config *c);
