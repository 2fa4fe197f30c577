/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped_file: opens the file behind a mapping of a process, and makes sure that it is the file
 * that the kernel named. Private to agent/ (files.c).
 */
#pragma once

#include "agent/files/open_file.h"
#include "procfs/procfs.h"

/* Open what process `pid` has mapped at [n->vma_start, n->vma_end), of identity n->key. vma_start
 * 0: the program that it runs. `path` receives the path as the process sees it, " (deleted)" cut
 * off, its end cut to fit. E_NOTFOUND: the process, the mapping or the file is gone; E_DENIED;
 * E_TIMEOUT: its file system does not answer; E_INVALID: it is no ELF file; `path` is set only if
 * this is surely the mapped file. */
NODISCARD enum status mapped_file_open(int pid, const struct file_notice *n, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e);
/* True for errors that say that the process has ended, or has the file mapped no more. The file may
 * still lie where it was. */
static inline bool mapped_file_is_gone(enum status s)
{
	return s != OK && s != E_NOMEM && s != E_INVALID && s != E_TIMEOUT;
}
/* As procfs_maps(). E_TIMEOUT: a thread of it waits for a file system, and holds the lock of its
 * memory map. */
NODISCARD enum status mapped_file_each(int pid, procfs_map_fn *fn, void *ctx, struct err *e);
