/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch: a command that is started only when the caller says so, and all of whose descendants stay
 * below one process, so that they can be told from the rest of the host.
 *
 * Private to cli/.
 */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* What a shell ends with where a command is not there, or could not be started. */
#define LAUNCH_NO_COMMAND 127
#define LAUNCH_NOT_STARTED 126

struct launch {
	pid_t pid;     /* the ancestor of all of them; it ends when the command ends; 0: none */
	int go_fd;     /* -1: it has been told */
	int failed_fd; /* readable, with a byte, once the command could not be started; -1: none */
};

/* Is there such a program? Says which way is wrong when there is none: E_NOTFOUND, E_DENIED. */
NODISCARD enum status launch_find(const char *program, struct err *e);

/* `argv` with NULL at the end. The command waits for launch_go(), or ends when this process ends
 * before. */
NODISCARD enum status launch_prepare(char *const *argv, struct launch *out, struct err *e);
void launch_go(struct launch *l);
/* Once it has ended: it never began, and has said why. */
bool launch_failed(const struct launch *l);
/* Ends what still runs: SIGTERM to the command, and waits for it. */
void launch_end(struct launch *l);
/* What a shell would call the end of the command: its status, or 128 + signal. 127: there is no
 * such command; 126: it could not be started. */
int launch_exit_code(int wait_status);
