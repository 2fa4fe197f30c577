/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: files below DIR/.build-id/ab/, cdef….debug and cdef….HASH.source, and at most so many
 * bytes of them.
 *
 * Private to debuginfod/. One thread's. Ids were checked to be hexadecimal digits.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

#define DEBUGINFOD_CACHE_DEBUG ".debug"

/* The place of a file: that of its build id, with this behind it. */
NODISCARD enum status debuginfod_cache_path(
	const char *dir, const char *id, const char *suffix, char out[PATH_MAX], struct err *e);
bool debuginfod_cache_has(const char *dir, const char *id, const char *suffix);
/* Where a file is written before it is whole. */
NODISCARD enum status debuginfod_cache_temporary(
	const char *dir, char out[PATH_MAX], struct err *e);
/* Renames it to its place. */
NODISCARD enum status debuginfod_cache_keep(
	const char *dir, const char *temporary, const char *id, const char *suffix, struct err *e);
/* Removes the oldest files beyond bytes_max, but not the one at `keep` (NULL: none), and what was
 * not whole. Returns the bytes that are left. */
uint64_t debuginfod_cache_trim(
	const char *dir, uint64_t bytes_max, const char *keep, uint64_t *out_removed);
