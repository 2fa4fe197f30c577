/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege: from what the agent was started with to what it needs (docs/formats/broker.md).
 * Private to agent/ (agent.c). To be used while there is one thread.
 */
#pragma once

#include "agent/broker.h"

/* A folder that the agent writes to: it is made, becomes ours, and can be reached later although
 * folders above it may be closed to us then. */
struct privilege_dir {
	char path[PATH_MAX]; /* to be used after privilege_drop() */
	int fd;
	bool sockets; /* only for sockets that are listened on */
};

/* Starts the broker, if this process has anything that one could keep, and says what is missing. */
NODISCARD enum status privilege_split(const struct broker_config *c, struct err *e);
/* "" or NULL: no folder. */
NODISCARD enum status privilege_dir_open(const char *dir, struct privilege_dir *out, struct err *e);
/* The folder of a socket that is listened on after privilege_drop(), if the address ("unix:/path")
 * is of one: it stays as it is. */
void privilege_socket_dir(const char *address, struct privilege_dir *out);
/* Gives up everything, and writing anywhere but to `dirs`; `works` tells whether what it needs of
 * the kernel still works: where it does not, CAP_BPF is kept. Then the sandbox. */
NODISCARD enum status privilege_drop(
	bool (*works)(void *ctx), void *ctx, struct privilege_dir *dirs[], struct err *e);
