/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tablecache: unwind tables on disk (docs/formats/unwind.md), so that a restart does not build the
 * large ones again. Private to agent/ (files.c). Not thread safe.
 */
#pragma once

#include "base/err.h"
#include "unwind/unwind.h"

/* All files together; beyond it the longest unused ones go. */
#define TABLECACHE_BYTES_MAX ((uint64_t)256 << 20)
/* Files in the folder that are looked at. */
#define TABLECACHE_FILES_MAX 65536

struct tablecache;

/* Makes the folder when it is missing. */
NODISCARD enum status tablecache_open(
	const char *dir, uint64_t bytes_max, struct tablecache **out, struct err *e);
void tablecache_close(struct tablecache *c); /* NULL is fine */
/* `name`: letters and digits, '-' and '.'. E_NOTFOUND: not there, or not readable, and removed. */
NODISCARD enum status tablecache_load(
	struct tablecache *c, const char *name, struct unwind_table **out, struct err *e);
NODISCARD enum status tablecache_store(
	struct tablecache *c, const char *name, const struct unwind_table *t, struct err *e);
uint64_t tablecache_bytes(const struct tablecache *c);
