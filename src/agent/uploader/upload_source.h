/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload_source: the bytes that are sent of an executable: opened once more, sure to be the file
 * that samples had, extracted piece by piece. Private to agent/ (uploader.c). Not thread safe: one
 * thread each.
 */
#pragma once

#include "agent/files/files.h"
#include "agent/uploader/upload_queue.h"
#include "upload/upload.h"

struct upload_source_config {
	bool strip; /* only what gives names is sent */
	/* Folders in which the separate debug file is looked for, as ".build-id/ab/cdef….debug", in
	 * this order, ended by NULL. A NULL pointer means /usr/lib/debug. */
	const char *const *debug_folders;
};

struct upload_source {
	struct open_file file;
	struct objfile *obj;
	struct debuginfo_extract *extract;
	bool strips;
	uint64_t bytes;  /* that are sent */
	int64_t slow_ns; /* how long its file system let us wait */
	enum upload_id_type id_type;
	char hash[40];
};

/* Finds the kernel's key of a file. False: it is forgotten. */
typedef bool upload_key_fn(void *ctx, uint32_t file_id, struct file_key *out);

/* Takes job->fd's file, or opens it as the process has it mapped, or where init sees it. *out must
 * stay where it is until upload_source_close(). Where the file has no names itself, and its
 * separate debug file is there, it is that. E_NOTFOUND: it is gone, or another file by now;
 * E_TIMEOUT: its file system does not answer; E_UNSUPPORTED: nothing in it gives names. */
NODISCARD enum status upload_source_open(const struct upload_job *job,
	const struct upload_source_config *c, upload_key_fn *find_key, void *ctx,
	struct upload_source *out, struct err *e);
void upload_source_close(struct upload_source *s);
/* Of the form of upload_read_fn, ctx being the source. */
NODISCARD enum status upload_source_read(
	void *ctx, uint64_t at, void *out, size_t len, struct err *e);
/* Whether the file is as it was when it was opened: what was read is of one piece then. */
bool upload_source_is_same(const struct upload_source *s, const struct upload_job *job,
	upload_key_fn *find_key, void *ctx);
