/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fileopen: the file behind a mapping of a process, opened, and sure to be the one that the kernel
 * named. Private to agent/ (files.c).
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/broker/broker.h"
#include "base/err.h"
#include "objfile/objfile.h"
#include "procfs/procfs.h"

#define FILEOPEN_PATH_MAX 256

struct openfile {
	int fd;                  /* -1: the broker holds it, or nobody */
	bool is_held;            /* by the broker */
	struct broker_file held; /* its `stat` is there in both cases */
};

/* Takes the descriptor over; -1 on failure closes it. */
NODISCARD enum status openfile_init(struct openfile *f, int fd, const char *name, struct err *e);
void openfile_close(struct openfile *f);
/* It has the inode of the key, and its device as far as the file system says it. */
bool openfile_is(const struct openfile *f, const struct file_key *key);
/* `f` stays, where it is, until the objfile is closed. E_TIMEOUT from reading: its file system does
 * not answer. */
NODISCARD enum status openfile_objfile(
	struct openfile *f, const char *name, struct objfile **out, struct err *e);
/* Open an executable by its place in /proc. E_INVALID: it is none. */
NODISCARD enum status openfile_open(
	const char *path, uint32_t device, struct openfile *out, struct err *e);

/* Open what process `pid` has mapped at [n->vma_start, n->vma_end), of identity n->key. vma_start
 * 0: the program that it runs. `path` receives the path as the process sees it, " (deleted)" cut
 * off, its end cut to fit. E_NOTFOUND: the process, the mapping or the file is gone; E_DENIED;
 * E_TIMEOUT: its file system does not answer; E_INVALID: it is no ELF file, and `path` is there if
 * it is surely the one that is mapped, else as it was. */
NODISCARD enum status fileopen(int pid, const struct file_notice *n, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e);
/* As procfs_maps(). E_TIMEOUT: a thread of it waits for a file system, and holds the lock of its
 * memory map. */
NODISCARD enum status fileopen_maps(int pid, procfs_map_fn *fn, void *ctx, struct err *e);
