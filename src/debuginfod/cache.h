/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: files cdef….debug and cdef….HASH.source below DIR/.build-id/ab/, with a limit of their
 * bytes.
 *
 * Private to debuginfod/. Used by one thread. Callers have checked that ids are hexadecimal digits.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

#define DEBUGINFOD_CACHE_DEBUG ".debug"

/* The path of a file: that of its build id, followed by `suffix`. */
NODISCARD enum status debuginfod_cache_path(
	const char *dir, const char *id, const char *suffix, char out[PATH_MAX], struct err *e);
bool debuginfod_cache_has(const char *dir, const char *id, const char *suffix);
/* Where a file is written before it is whole. */
NODISCARD enum status debuginfod_cache_temporary(
	const char *dir, char out[PATH_MAX], struct err *e);
/* Renames it to its place. */
NODISCARD enum status debuginfod_cache_keep(
	const char *dir, const char *temporary, const char *id, const char *suffix, struct err *e);
/* Removes the oldest files beyond bytes_max, but not the one at `keep` (NULL: none), and files that
 * are not whole. Returns the bytes that are left. */
uint64_t debuginfod_cache_trim(
	const char *dir, uint64_t bytes_max, const char *keep, uint64_t *out_removed);
