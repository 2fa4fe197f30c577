/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/pool: the few threads that queries share.
 *
 * Layer 3, private to store/. Thread safe. The number of these threads does not grow with
 * that of queries: a query runs on its caller's thread, and on threads of the pool that are idle.
 */
#pragma once

#include "base/err.h"

#define POOL_THREADS_MAX 31

struct pool;

/* No threads at all is fine: then callers do all work themselves. */
NODISCARD enum status pool_new(unsigned threads, struct pool **out, struct err *e);
/* Nobody is in pool_run() any more; NULL is fine. */
void pool_free(struct pool *p);

/* Calls of fn that pool_run() makes at most at a time. */
unsigned pool_width(const struct pool *p);

/* fn(ctx, 0), which is the caller's own, and fn(ctx, 1) to fn(ctx, n - 1) at the most on other
 * threads at the same time; returns when all that were begun have returned. Those that found no
 * idle thread until fn(ctx, 0) returned are never begun: fn takes its work from a common list. */
typedef void pool_fn(void *ctx, unsigned worker);
void pool_run(struct pool *p, unsigned n, pool_fn *fn, void *ctx);
