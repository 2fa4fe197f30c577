/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_contexts: finds where a process publishes its own context, and the variable by which each
 * thread says which trace and span it works for (agent/bpf/thread_context.h). Private to agent/.
 * One thread's.
 *
 * A process with such a library has a mapping named OTEL_CTX. If it has one, the variable is
 * searched for in each file of its code. A file without it is remembered.
 *
 * Source: OpenTelemetry, OTEP 4719 (process context), OTEP 4947 (thread context).
 */
#pragma once

#include "agent/bpf/layout.h"
#include "agent/files/code_files.h"

struct thread_contexts_found {
	struct thread_context_place place; /* process_start_ns is the caller's */
	uint64_t head;                     /* of its process context; 0: it has none */
};
/* place.form THREAD_CONTEXT_NONE: the process has no such variable. E_NOTFOUND: it has ended, or
 * cannot be looked at. */
NODISCARD enum status thread_contexts_find(
	struct code_files_memory *known, int pid, struct thread_contexts_found *out);
