/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fileopen: the file behind a mapping of a process, opened, and sure to be the one that the kernel
 * named. Private to agent/ (files.c).
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/err.h"

#define FILEOPEN_PATH_MAX 256

/* Open what process `pid` has mapped at [n->vma_start, n->vma_end), of identity n->key. vma_start
 * 0: the program that it runs. `path` receives the path as the process sees it, " (deleted)" cut
 * off, its end cut to fit. E_NOTFOUND: the process, the mapping or the file is gone; E_DENIED;
 * E_TIMEOUT: its file system does not answer. */
NODISCARD enum status fileopen(int pid, const struct file_notice *n, int *out_fd,
	char path[FILEOPEN_PATH_MAX], struct err *e);
