/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inode_search: finds a program or library of this host by its inode. If the process has ended, it
 * searches the usual folders, and those where files were opened lately. If the process lives, it
 * searches the folders of its other files. Private to agent/files (mapped_file.c, files.c).
 *
 * It runs in the agent itself, so it must not hang. It leaves out folders on a file system that
 * asks another program or host (FUSE, NFS, …), folders below such a one, and folders in which one
 * is mounted. It does not follow links. The root's own file system is taken to answer, since this
 * program's libraries lie there.
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
