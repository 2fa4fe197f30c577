/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problems: what the agent could not do, and why, for the status page: the latest of each kind,
 * with how often. Counters say how much; this says which. Private to agent/.
 *
 * Thread safety: all functions may be called from any thread.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* Of each kind. If there are more, the one whose last occurrence is oldest is forgotten. */
#define PROBLEMS_MAX 64

enum problem_kind {
	PROBLEM_FILE,    /* an executable that could not be opened or read */
	PROBLEM_TABLE,   /* an executable that was read, but has no unwind table */
	PROBLEM_NAMES,   /* an executable whose names could not be sent to the server */
	PROBLEM_RUNTIME, /* an executable with a language runtime that cannot be walked */
	PROBLEM_STACK,   /* a process whose stacks do not reach their root */
	PROBLEM_KINDS
};

struct problem {
	char what[192];
	char why[ERR_TEXT_MAX];
	uint64_t count;
	int64_t last_ns; /* monotonic */
};

struct problems;

/* NULL: no memory. */
struct problems *problems_new(void);
void problems_free(struct problems *p);
/* `p` may be NULL. Texts are cut to fit. Any user of the host may see the page, and not the folders
 * of the others: of a path in `what`, or in `why`, only the last part is kept, unless it is one of
 * /proc. */
void problems_add(struct problems *p, enum problem_kind kind, const char *what, const char *why);
/* The problems of a kind, the most frequent first. Returns how many. */
uint32_t problems_list(
	struct problems *p, enum problem_kind kind, struct problem out[PROBLEMS_MAX]);
