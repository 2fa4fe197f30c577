/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_held: files that stay open in the broker, for whoever reads or closes one waits for its
 * file system, and cannot even be killed meanwhile. Private to agent/ (broker_serve.c).
 *
 * Thread safety: all functions but broker_held_init() may be called from any thread. No memory is
 * asked for.
 */
#pragma once

#include "agent/broker/broker.h"

#include <pthread.h>

struct held_file {
	int fd; /* -1: the place is free */
	uint32_t users;
	bool dropped; /* closed by the last user */
};

struct broker_held {
	pthread_mutex_t lock;
	struct held_file files[BROKER_HELD_MAX];
};

void broker_held_init(struct broker_held *h);
/* Does reading, closing and asking for its status wait for anybody but the kernel and its disks?
 * `type` as statfs(2) has it. What an overlay answers for is known where the layer below is. */
bool broker_held_may_hang(uint64_t type, bool below_is_disk);
/* Takes the descriptor over: its handle, or -1 with errno (ENFILE: too many are held). */
int broker_held_add(struct broker_held *h, int fd);
/* As pread(2). EBADF: no such handle. */
ssize_t broker_held_read(
	struct broker_held *h, uint32_t handle, void *out, size_t len, uint64_t offset);
/* It is closed once nobody reads it; the handle is free after that. -1 with errno. */
int broker_held_drop(struct broker_held *h, uint32_t handle);
