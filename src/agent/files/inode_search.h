/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inode_search: a program or library of this host by its inode. For a process that has ended: in
 * the usual folders, and in those where files were opened lately. For one that lives: beside its
 * other files. Private to agent/files (mapped_file.c, files.c).
 *
 * It runs in the agent itself, so that it looks at nothing that may hang: a folder on a file system
 * that asks somebody else (FUSE, NFS, …), below one, or with one mounted in it, is left out; links
 * are not followed. The root's own file system counts as one that answers: this program's
 * libraries lie there.
 */
#pragma once

#include "agent/files/open_file.h"
#include "base/str.h"

/* `root`: in front of all folders; "" but for tests. `path` receives where it was found. False:
 * nowhere. */
bool inode_search(const char *root, const struct file_key *key, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX]);

/* The folders of other files that a process has mapped: a library that is mapped for a millisecond
 * at a time lies beside them as often as not. */
#define INODE_SEARCH_BESIDE_MAX 4
struct inode_search_beside {
	size_t count;
	char folders[INODE_SEARCH_BESIDE_MAX][256];
};
/* The folder of a mapped file's path; more than INODE_SEARCH_BESIDE_MAX are left out. */
void inode_search_beside_add(struct inode_search_beside *b, struct str path);
/* The same, in front of the others, of which the last one goes; but for the usual folders. */
void inode_search_beside_note(struct inode_search_beside *b, struct str path);
/* As inode_search() in these, as this process sees them; in the first 4,096 entries of each. */
bool inode_search_beside(const struct inode_search_beside *b, const struct file_key *key,
	struct open_file *out, char path[OPEN_FILE_PATH_MAX]);
