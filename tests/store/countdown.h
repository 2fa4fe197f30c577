/* SPDX-License-Identifier: Apache-2.0 */
/*
 * countdown: a child that ends at the n-th operation of its store, whichever of its threads makes
 * it; or an operation that fails.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Operations until it happens; 0: never. */
static atomic_int countdown;

/* True for the operation that is it. */
static inline bool countdown_reached(void)
{
	return atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
}

/* From now on nothing happens. True: it has, or another thread is about to make it happen. */
static inline bool countdown_stop(void)
{
	return atomic_exchange(&countdown, 0) <= 0;
}

/* A store_io_hook. */
static inline int countdown_exit(void *ctx, const char *operation)
{
	(void)ctx, (void)operation;
	if (countdown_reached())
		_exit(9);
	return 0;
}

/* What was to be interrupted has come to its end: then nothing may interrupt it any more. But where
 * the store's own thread has reached the operation, that ends the process. */
static inline void countdown_survive(void)
{
	if (countdown_stop())
		for (;;)
			pause();
}
