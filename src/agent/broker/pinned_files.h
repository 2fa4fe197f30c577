/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned_files: files that stay open in the broker. A process that reads or closes one waits for
 * its file system, and cannot be killed meanwhile. Private to agent/ (broker_serve.c).
 *
 * Thread safety: all functions but pinned_files_init() may be called from any thread. No memory is
 * asked for.
 */
#pragma once

#include "agent/broker/broker.h"
#include "base/lock.h"

#include <pthread.h>

struct pinned_file {
	int fd; /* -1: the place is free */
	uint32_t users;
	bool dropped; /* closed by the last user */
};

struct pinned_files {
	struct lock lock;
	struct pinned_file files[BROKER_PINNED_MAX];
};

void pinned_files_init(struct pinned_files *h);
/* May reading, closing or asking for the status of a file on such a file system wait for more than
 * the kernel and its disks? `type`: as in statfs(2). For an overlay the answer is that of the layer
 * below (`below_is_disk`). */
bool pinned_files_may_hang(uint64_t type, bool below_is_disk);
/* Takes the descriptor over and returns its handle, or -1 with errno (ENFILE: too many are pinned).
 */
int pinned_files_add(struct pinned_files *h, int fd);
/* As pread(2). EBADF: no such handle. */
ssize_t pinned_files_read(
	struct pinned_files *h, uint32_t handle, void *out, size_t len, uint64_t offset);
/* It is closed once no thread reads it; the handle is free after that. -1 with errno. */
int pinned_files_drop(struct pinned_files *h, uint32_t handle);
