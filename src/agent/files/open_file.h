/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_file: an opened executable: a descriptor of ours, or one that stays open in the broker,
 * because its file system may hang. Private to agent/. Not thread safe.
 */
#pragma once

#include "agent/bpf/layout.h"
#include "agent/broker/broker.h"
#include "base/err.h"
#include "objfile/objfile.h"

#define OPEN_FILE_PATH_MAX 256

struct open_file {
	int fd;                    /* -1: the broker has it open, or it is not open */
	bool is_pinned;            /* by the broker */
	struct broker_file pinned; /* its `stat` is there in both cases */
};

/* Takes the descriptor over; -1 on failure closes it. */
NODISCARD enum status open_file_init(struct open_file *f, int fd, const char *name, struct err *e);
void open_file_close(struct open_file *f);
/* True: the file has the inode of the key and, as far as its file system tells, the device. */
bool open_file_is(const struct open_file *f, const struct file_key *key);
/* `f` must stay in place until the objfile is closed. E_TIMEOUT from reading: its file system does
 * not answer. */
NODISCARD enum status open_file_objfile(
	struct open_file *f, const char *name, struct objfile **out, struct err *e);
/* Opens an executable by its path in /proc. E_INVALID: it is no executable. */
NODISCARD enum status open_file_open(
	const char *path, uint32_t device, struct open_file *out, struct err *e);
/* The vDSO of this process, which is that of all. *out stays NULL on a kernel without one; *image
 * lives as long as the process. */
NODISCARD enum status open_file_vdso(struct objfile **out, struct str *out_image, struct err *e);
