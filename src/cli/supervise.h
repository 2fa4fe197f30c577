/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise: the server and the agent as two children of one process that starts them, tells when
 * they are ready, starts them again when they die, and stops them in order.
 *
 * Private to cli/. One supervisor a process: it owns SIGCHLD, SIGINT, SIGTERM and SIGHUP.
 */
#pragma once

#include "agent/agent.h"
#include "server/server.h"

#include <sys/types.h>

/* Deaths of the server in a row, none of which lived for SUPERVISE_HEALTHY_NS, before the
 * supervisor gives up. The agent is tried for ever. */
#define SUPERVISE_SERVER_DEATHS_MAX 5
#define SUPERVISE_HEALTHY_NS (60 * NS_PER_SEC)
/* Waits before a dead child is started again: doubled from the first to the last. */
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
	/* The server listens: `address` as the server says it, `dial` for clients on this host. */
	void (*on_server)(void *ctx, const char *address, const char *dial);
	/* Sampling has begun. Both may be called again after a restart. */
	void (*on_agent)(void *ctx);
	/* When sampling begins, and then about once a second, or at *next_ns (monotonic) where it
	 * makes that earlier; true: stop now. May be NULL, as the two below. */
	bool (*on_second)(void *ctx, int64_t *next_ns);
	/* Another child of the caller's, whose end stops everything; 0: none. */
	pid_t watch_pid;
	void (*on_watch_end)(void *ctx, int wait_status);
	/* The agent has ended, and what it sent has been taken; the server still answers. */
	void (*on_agent_end)(void *ctx, const char *dial);
	void *ctx;
	/* Tests are less patient; 0: as above. */
	int64_t backoff_min_ns;
	int64_t agent_stop_ns;
	int64_t server_stop_ns;
};

/* Runs until a signal stops it or it gives up. Returns the exit code. */
int supervise_run(const struct supervise_config *c);
