/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege: from what the agent was started with to what it needs (docs/formats/broker.md).
 * Private to agent/. To be used while there is one thread.
 */
#pragma once

#include "base/err.h"

#include <limits.h>

struct broker_config;

/* A folder that the agent writes to. It is made, with the agent as its owner, and stays open, so
 * that it can be reached even when the folders above it cannot be entered any more. */
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

/* Bit i is set if privilege_wants[i] will be missing once the broker is split off; with
 * `keeps_all`, if this process lacks it now. To be called before privilege_drop(). */
uint32_t privilege_missing(bool keeps_all);
/* Logs one line that names them, or nothing if none is missing. */
void privilege_log_missing(uint32_t missing);
/* Starts the broker, and makes it read the files that flags name from then on. */
NODISCARD enum status privilege_start_broker(const struct broker_config *c, struct err *e);
/* The same, if this process has a capability that a broker could keep. */
NODISCARD enum status privilege_split(const struct broker_config *c, struct err *e);
/* "" or NULL: no folder. */
NODISCARD enum status privilege_dir_open(const char *dir, struct privilege_dir *out, struct err *e);
/* The folder of a socket that is listened on after privilege_drop(), if the address ("unix:/path")
 * is of one: it stays as it is. */
void privilege_socket_dir(const char *address, struct privilege_dir *out);
/* Gives up all privileges, and the right to write anywhere but to `dirs`. `works` tests whether the
 * agent can still use the kernel; if not, CAP_BPF is kept (E_DENIED: it was not there). Then the
 * process enters the sandbox. */
NODISCARD enum status privilege_drop(
	bool (*works)(void *ctx), void *ctx, struct privilege_dir *dirs[], struct err *e);
