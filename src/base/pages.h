/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: large pages of the system for large pieces of the heap. Without them, random access to 70
 * MB spends most of its time on page tables, and its first use on page faults.
 *
 * Layer 0. Thread safe. A hint: where the system has no large pages to give, nothing changes.
 */
#pragma once

#include <stddef.h>

/* Smaller pieces are left alone: rounding up to large pages would cost more than it gains. */
#define PAGES_LARGE_BYTES_MIN ((size_t)8 << 20)

/* For memory that malloc(), calloc() or realloc() returned for that many bytes. */
void pages_prefer_large(void *allocated, size_t bytes);
/* Gives the whole pages inside back to the system; their bytes read as zero from then on. */
void pages_give_back(void *begin, size_t bytes);
