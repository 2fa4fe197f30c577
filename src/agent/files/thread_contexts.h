/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_contexts: where a process has the variable of each thread that says which trace and span
 * it works for (agent/bpf/thread_context.h). Private to agent/. One thread's.
 *
 * A process with such a library has a mapping named OTEL_CTX. Of one that has it each file of its
 * code is asked for the variable; that a file has none is remembered.
 *
 * Source: OpenTelemetry, OTEP 4719 (process context), OTEP 4947 (thread context).
 */
#pragma once

#include "agent/bpf/layout.h"
#include "base/clock.h"
#include "base/status.h"

/* Files of one process that are looked at; of more the first ones by address. */
#define THREAD_CONTEXTS_FILES_MAX 1024
/* Of these, opened at a time; the rest when the process is looked at again. */
#define THREAD_CONTEXTS_OPEN_MAX 64
/* No file is opened after so long: the rest likewise. */
#define THREAD_CONTEXTS_FIND_NS (50 * NS_PER_MS)
/* Files that are remembered to have none: a power of two. */
#define THREAD_CONTEXTS_NONE 1024

/* All 0 at the start. */
struct thread_contexts {
	uint64_t none[THREAD_CONTEXTS_NONE]; /* hashes of their keys */
};

/* out->process_start_ns is left to the caller. E_NOTFOUND: it has none, or has ended. */
NODISCARD enum status thread_contexts_find(
	struct thread_contexts *t, int pid, struct thread_context_place *out);
