/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: starts the work of a forked child, and gives up its privileges.
 *
 * Private to cli/.
 */
#pragma once

#include "agent/agent.h"
#include "server/server.h"

#include <sys/types.h>

/* To be called in a fresh child of `parent`; they return the exit code. They stop at SIGTERM and
 * when the parent ends, an agent at SIGUSR1 without waiting, and ignore the terminal's signals,
 * which the parent handles. */
int child_run_server(const struct server_config *c, pid_t parent);
int child_run_agent(const struct agent_config *c, pid_t parent);

struct child_server {
	struct server_config config;
	int storage_fd; /* descriptor that storage_path leads through; -1: none. The caller closes
			   it */
	char address[256];
	char storage_path[32];
};
/* Takes the storage directory over and opens a low port, for which a server may need root's
 * privileges, and then drops all capabilities. *out is `c` with both. To be called before other
 * threads are made. *out, and everything that `c` points to, must outlive the server. */
NODISCARD enum status child_give_up(
	const struct server_config *c, struct child_server *out, struct err *e);

/* "was killed by signal 9 (Killed)", "ended with status 1". Returns out. */
const char *child_describe_end(int wait_status, char *out, size_t out_size);
