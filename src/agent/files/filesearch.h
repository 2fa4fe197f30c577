/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesearch: a program or library of this host by its inode, in the usual folders: for a process
 * that has ended; and beside the other files of one that lives. Private to agent/ (fileopen.c).
 *
 * It runs in the agent itself, so that it looks at nothing that may hang: a folder on a file system
 * that asks somebody else (FUSE, NFS, …), below one, or with one mounted in it, is left out; links
 * are not followed. The root's own file system counts as one that answers: this program's
 * libraries lie there.
 */
#pragma once

#include "agent/files/fileopen.h"

/* `root`: in front of all folders; "" but for tests. `path` receives where it was found. False:
 * nowhere. */
bool filesearch(const char *root, const struct file_key *key, struct openfile *out,
	char path[FILEOPEN_PATH_MAX]);

/* The folders of other files that a process has mapped: a library that is mapped for a millisecond
 * at a time lies beside them as often as not. */
#define FILESEARCH_BESIDE_MAX 4
struct filesearch_beside {
	size_t count;
	char folders[FILESEARCH_BESIDE_MAX][256];
};
/* The folder of a mapped file's path; more than FILESEARCH_BESIDE_MAX are left out. */
void filesearch_beside_add(struct filesearch_beside *b, struct str path);
/* As filesearch() in these, as this process sees them. */
bool filesearch_beside(const struct filesearch_beside *b, const struct file_key *key,
	struct openfile *out, char path[FILEOPEN_PATH_MAX]);
