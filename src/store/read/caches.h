/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/caches: tables of parts that stay loaded between queries.
 *
 * Layer 3, private to store/. Thread safe.
 */
#pragma once

#include "store/state/state.h"

/* Tables that stay loaded take at most one part in so many of the memory; so do labels that views
 * keep pinned. */
#define CACHE_SHARE 8

/* Frees tables of parts that no query used for a minute, and then more of them while all together
 * exceed the share. Labels are freed last. */
void store_trim_caches(struct store *s);
/* Loads the labels of the newest parts, as many as the caches have room for, so that the first
 * query need not wait for them. */
void store_warm(struct store *s);
