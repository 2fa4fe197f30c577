/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege: from what the agent was started with to what it needs (docs/formats/broker.md).
 * Private to agent/. To be used while there is one thread.
 */
#pragma once

#include "base/err.h"

#include <limits.h>

struct broker_config;

/* A folder that the agent writes to: it is made, becomes ours, and can be reached later although
 * folders above it may be closed to us then. */
struct privilege_dir {
	char path[PATH_MAX]; /* to be used after privilege_drop() */
	int fd;
	bool sockets; /* only for sockets that are listened on */
};

/* A capability, and what the agent does not see without it. */
struct privilege_want {
	unsigned capability;
	const char *name;
	const char *without;
};
#define PRIVILEGE_WANTS 6
extern const struct privilege_want privilege_wants[PRIVILEGE_WANTS];

/* Bit i: privilege_wants[i] will not be there once the broker is split off, or, where this process
 * `keeps_all`, is not there. To be asked before privilege_drop(). */
uint32_t privilege_missing(bool keeps_all);
/* One line that names them; none where nothing is missing. */
void privilege_log_missing(uint32_t missing);
/* Starts the broker, and has it read the files that flags name. */
NODISCARD enum status privilege_start_broker(const struct broker_config *c, struct err *e);
/* The same, if this process has a capability that a broker could keep. */
NODISCARD enum status privilege_split(const struct broker_config *c, struct err *e);
/* "" or NULL: no folder. */
NODISCARD enum status privilege_dir_open(const char *dir, struct privilege_dir *out, struct err *e);
/* The folder of a socket that is listened on after privilege_drop(), if the address ("unix:/path")
 * is of one: it stays as it is. */
void privilege_socket_dir(const char *address, struct privilege_dir *out);
/* Gives up everything, and writing anywhere but to `dirs`; `works` tells whether what it needs of
 * the kernel still works: where it does not, CAP_BPF is kept (E_DENIED: it was not there). Then the
 * sandbox. */
NODISCARD enum status privilege_drop(
	bool (*works)(void *ctx), void *ctx, struct privilege_dir *dirs[], struct err *e);
