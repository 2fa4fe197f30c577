/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_files: visits the files that contain the code of a process, and asks of each whether it has
 * a certain variable. Private to agent/files. One thread's.
 *
 * A file without the variable is remembered, so that a file that many processes use is opened only
 * once.
 */
#pragma once

#include "agent/files/mapped_file.h"
#include "base/clock.h"

/* Files of one process that are looked at. If there are more, those at the lowest addresses. */
#define CODE_FILES_MAX 1024
/* Files that are opened in one look; the rest is opened when the process is looked at again. */
#define CODE_FILES_OPEN_MAX 64
/* No file is opened after so long; the rest is opened when the process is looked at again. */
#define CODE_FILES_FIND_NS (50 * NS_PER_MS)
/* Files that are remembered to have none, in sets by their hash. */
#define CODE_FILES_NONE_SETS 256
#define CODE_FILES_NONE_WAYS 4

/* All 0 at the start. */
struct code_files_memory {
	uint64_t none[CODE_FILES_NONE_SETS][CODE_FILES_NONE_WAYS]; /* hashes of their keys */
};

/* Each mapping, before a file is opened; may be NULL. */
typedef void code_files_mapping_fn(void *ctx, const struct procfs_map *m);
/* Does the file have the variable? `bias` plus an address in the file is the address in memory. */
typedef bool code_files_ask_fn(void *ctx, const struct objfile *obj, uint64_t bias);
struct code_files_asked {
	code_files_mapping_fn *mapping;
	code_files_ask_fn *ask;
	bool (*is_wanted)(void *ctx); /* asked after all mappings, before a file is opened; NULL: it
					 is wanted */
	void *ctx;
	uint32_t most; /* the search ends after so many files that have it */
};

/* *out_count: how many files have the variable. E_NOTFOUND: the process has ended, or cannot be
 * looked at. */
NODISCARD enum status code_files_each(struct code_files_memory *known, int pid,
	const struct code_files_asked *asked, uint32_t *out_count);
