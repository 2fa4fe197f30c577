/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: what a forked child does before and around its work.
 *
 * Private to cli/.
 */
#pragma once

#include "agent/agent.h"
#include "server/server.h"

#include <sys/types.h>

/* To be called in a fresh child of `parent`; they return the exit code. SIGTERM stops them; the
 * terminal's signals are the parent's business; they end when the parent ends. */
int child_run_server(const struct server_config *c, pid_t parent);
int child_run_agent(const struct agent_config *c, pid_t parent);

struct child_server {
	struct server_config config;
	int storage_fd; /* what storage_path leads through; -1: none. The caller's */
	char address[256];
	char storage_path[32];
};
/* A server needs nothing of what root may do once its storage directory is its own, and a low port
 * is open: *out is `c` with both, and no capability is left. To be called before other threads are
 * made. What `c` points to, and *out, outlive the server. */
NODISCARD enum status child_give_up(
	const struct server_config *c, struct child_server *out, struct err *e);

/* "was killed by signal 9 (Killed)", "ended with status 1". Returns out. */
const char *child_describe_end(int wait_status, char *out, size_t out_size);
