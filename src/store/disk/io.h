/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/disk/io: every change the store makes to its directory, in one place, so that tests can
 * make each of them fail in turn.
 *
 * Layer 3, private to store/. Thread safe.
 */
#pragma once

#include "base/str.h"
#include "os/os.h"

/* Called before each operation ("open", "write", "sync", "rename", "unlink", "alloc", "syncdir",
 * "mkdir", "truncate"). It returns 0 to let the operation happen, or an errno with which the
 * operation fails at once. To be set before any thread starts. */
struct store_io_hook {
	int (*before)(void *ctx, const char *operation);
	void *ctx;
};
extern struct store_io_hook store_io_hook;

NODISCARD enum status store_io_open(
	const char *path, int flags, unsigned mode, int *out, struct err *e);
NODISCARD enum status store_io_pwrite(
	int fd, const void *bytes, size_t len, uint64_t offset, const char *name, struct err *e);
NODISCARD enum status store_io_sync(int fd, const char *name, struct err *e); /* fdatasync */
NODISCARD enum status store_io_rename(const char *from, const char *to, struct err *e);
/* It is no error if there is no such file. */
NODISCARD enum status store_io_unlink(const char *path, struct err *e);
/* Reserves room on the disk for the first `len` bytes, if the file system can. */
NODISCARD enum status store_io_allocate(int fd, uint64_t len, const char *name, struct err *e);
NODISCARD enum status store_io_truncate(int fd, uint64_t len, const char *name, struct err *e);
/* False: `path` no longer names the file that is open as `fd`. */
bool store_io_same(const char *path, int fd);
NODISCARD enum status store_io_sync_dir(const char *path, struct err *e);
NODISCARD enum status store_io_make_dirs(const char *path, struct err *e);
/* Replaces a file: writes a temporary one, syncs and renames it, and syncs the directory `dir`.
 * *out_unknown (may be NULL) is set on failure. True: after a crash the file may be the old or the
 * new one. False: it is the old one. */
NODISCARD enum status store_io_replace(
	const char *dir, const char *path, struct str bytes, bool *out_unknown, struct err *e);

#define STORE_PATH_MAX 4096
/* "dir/name" into a buffer of STORE_PATH_MAX; E_LIMIT when it does not fit. */
NODISCARD enum status store_path(char out[STORE_PATH_MAX], struct err *e, const char *fmt, ...)
	PRINTF(3, 4);
