/* SPDX-License-Identifier: Apache-2.0 */
/* temp_dir: a directory of one test, with flat content, removed afterwards. */
#pragma once

#include "test.h"

#include <unistd.h>

struct temp_dir {
	char path[64];
};

static inline void temp_dir_init(struct temp_dir *d)
{
	strcpy(d->path, "/tmp/firn_test_XXXXXX");
	CHECK(mkdtemp(d->path));
}

static inline void temp_dir_deinit(struct temp_dir *d)
{
	DIR *dir = opendir(d->path);
	for (struct dirent *n; dir && (n = readdir(dir));)
		(void)!unlinkat(dirfd(dir), n->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(d->path);
}

/* Files whose names end in `suffix`. */
static inline size_t temp_dir_count(const struct temp_dir *d, const char *suffix)
{
	size_t count = 0;
	DIR *dir = opendir(d->path);
	CHECK(dir);
	for (struct dirent *n; (n = readdir(dir));)
		count += str_ends(str_of(n->d_name), str_of(suffix));
	closedir(dir);
	return count;
}
