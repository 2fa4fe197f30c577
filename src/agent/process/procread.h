/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procread: what /proc says of a process, read by threads of their own. Only whether a process
 * exists, and its user, is read by the caller, as neither can hang. Private to agent/process.
 *
 * Most files of /proc/PID wait for a lock that a process holds while it executes another program
 * (exec_update_lock; for /proc/PID/stat and the link exe since Linux 6.17): as long as the host is
 * too busy to go on with it, or for ever, where a file system does not answer as it closes a file.
 * The poll thread waits PROCREAD_PATIENCE_NS for an answer, and less while an earlier one is still
 * to come or has not come within this second.
 *
 * Thread safety: one thread asks.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "procfs/procfs.h"

#define PROCREAD_PATIENCE_NS (20 * NS_PER_MS)
#define PROCREAD_IMPATIENCE_NS (4 * NS_PER_MS)
/* The poll thread waits in vain for so long in each second at most; then it asks nothing until the
 * next second. */
#define PROCREAD_VAIN_NS (40 * NS_PER_MS)
#define PROCREAD_VAIN_EACH_NS NS_PER_SEC
/* Threads that read. If so many processes keep one waiting, nothing is read until one of them
 * answers. */
#define PROCREAD_THREADS_MAX 4
/* Threads that the processes of one user (by real uid) may keep waiting; those whose user cannot be
 * read count as one user's. */
#define PROCREAD_USER_THREADS_MAX 2
/* All texts of one process. */
#define PROCREAD_ARENA_BYTES ((size_t)2 << 20)
#define PROCREAD_COMMAND_LINE_BYTES_MAX ((size_t)32 << 10)

struct procread_wish {
	int pid;
	uint64_t start_ticks; /* of the process that is meant */
	bool command_line;
	bool environment; /* the variables named to procread_new() */
};

struct procread_answer {
	bool is_it; /* false: it is gone, or another process by now: nothing else is set */
	uint32_t ppid;
	char comm[64];
	/* "" where there is none. */
	struct str executable, cgroup, command_line, environment;
	struct arena arena; /* of the texts */
};

struct procread;

/* `patience_ns`: how long an answer is waited for; 0: PROCREAD_PATIENCE_NS. `variables`: names of
 * the environment, a NUL after each; copied. */
NODISCARD enum status procread_new(
	int64_t patience_ns, struct str variables, struct procread **out, struct err *e);
/* NULL is fine. A thread that waits for a process ends when that answers. */
void procread_free(struct procread *p);
/* NULL: not in time, or no memory. Else the caller's, to be freed. */
struct procread_answer *procread_ask(struct procread *p, const struct procread_wish *wish);
void procread_answer_free(struct procread_answer *a);
