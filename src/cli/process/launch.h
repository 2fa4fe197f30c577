/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch: prepares a command that starts only when the caller says so. All its descendants stay
 * below one process, which tells them apart from all others on the host.
 *
 * Private to cli/.
 */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* A shell's exit codes if a command is not there, or could not be started. */
#define LAUNCH_NO_COMMAND 127
#define LAUNCH_NOT_STARTED 126

struct launch {
	pid_t pid;     /* the ancestor of all of them; it ends when the command ends; 0: none */
	int go_fd;     /* closed by launch_go(): -1 then */
	int failed_fd; /* readable, with a byte, once the command could not be started; -1: none */
};

/* Checks that there is such a program: E_NOTFOUND, or E_DENIED if it may not be executed. */
NODISCARD enum status launch_find(const char *program, struct err *e);

/* `argv` with NULL at the end. The command waits for launch_go(); if this process ends before, it
 * ends too. */
NODISCARD enum status launch_prepare(char *const *argv, struct launch *out, struct err *e);
void launch_go(struct launch *l);
/* To be called once it has ended. True: the command never began, and an error was printed. */
bool launch_failed(const struct launch *l);
/* Sends SIGTERM to a command that still runs, and waits for it. */
void launch_end(struct launch *l);
/* The exit code that a shell would give the command: its status, or 128 + signal. 127: there is no
 * such command; 126: it could not be started. */
int launch_exit_code(int wait_status);
