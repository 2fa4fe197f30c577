/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_memory: what a process publishes of itself for tracers and profilers: OpenTelemetry's
 * process context. Private to agent/: by the broker, or by the agent itself where there is none. No
 * state.
 *
 * Only memory is given that the head of such a context points to, CONTEXT_MEMORY_BYTES_MAX at most.
 * The head is at the beginning of a page. A process that forges its head shows its own memory only.
 * Source: OpenTelemetry, OTEP 4719.
 */
#pragma once

#include "base/str.h"

#include <sys/types.h>

/* A larger one is refused. */
#define CONTEXT_MEMORY_BYTES_MAX 16384

/* `head`: the address of the mapping named OTEL_CTX. The bytes of the context; -1 with errno:
 * EPROTO where there is no such head, EFBIG, EAGAIN where it is being changed. */
ssize_t context_memory_read(int pid, uint64_t head, uint8_t out[CONTEXT_MEMORY_BYTES_MAX]);
