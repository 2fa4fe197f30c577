/* SPDX-License-Identifier: Apache-2.0 */
/* No list is kept: the directory is read when a file has come, which is rare. */
#include "debuginfod/cache.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"

#define TEMPORARY "fetching"

enum status debuginfod_cache_path(
	const char *dir, const char *id, const char *suffix, char out[PATH_MAX], struct err *e)
{
	int n = snprintf(out, PATH_MAX, "%s/.build-id/%.2s/%s%s", dir, id, id + 2, suffix);
	return n < PATH_MAX ? OK : err_set(e, E_INVALID, "the path of the cache is too long");
}

bool debuginfod_cache_has(const char *dir, const char *id, const char *suffix)
{
	char path[PATH_MAX];
	return debuginfod_cache_path(dir, id, suffix, path, NULL) == OK && access(path, R_OK) == 0;
}

enum status debuginfod_cache_temporary(const char *dir, char out[PATH_MAX], struct err *e)
{
	int n = snprintf(out, PATH_MAX, "%s/" TEMPORARY, dir);
	return n < PATH_MAX ? OK : err_set(e, E_INVALID, "the path of the cache is too long");
}

enum status debuginfod_cache_keep(
	const char *dir, const char *temporary, const char *id, const char *suffix, struct err *e)
{
	char folder[PATH_MAX], path[PATH_MAX];
	enum status s = debuginfod_cache_path(dir, id, suffix, path, e);
	if (s != OK)
		return s;
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	s = os_make_dirs(folder, e);
	if (s == OK && rename(temporary, path) < 0)
		s = err_os(e, "%s", path);
	return s;
}

struct look {
	uint64_t bytes;
	int64_t oldest;
	char path[PATH_MAX]; /* of the oldest file; "" */
	const char *keep;
};

static void look_at(struct look *l, const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
		lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	l->bytes += (uint64_t)st.st_blocks * 512;
	bool keep = l->keep && strcmp(path, l->keep) == 0;
	if (keep || (l->path[0] && st.st_mtime >= l->oldest))
		return;
	l->oldest = st.st_mtime;
	snprintf(l->path, sizeof(l->path), "%s", path);
}

static void look_through(struct look *l, const char *dir)
{
	char root[PATH_MAX], folder[PATH_MAX];
	if (snprintf(root, sizeof(root), "%s/.build-id", dir) >= (int)sizeof(root))
		return;
	DIR *outer = opendir(root);
	for (struct dirent *two; outer && (two = readdir(outer));) {
		if (two->d_name[0] == '.' || snprintf(folder, sizeof(folder), "%s/%s", root,
						     two->d_name) >= (int)sizeof(folder))
			continue;
		DIR *inner = opendir(folder);
		for (struct dirent *file; inner && (file = readdir(inner));)
			look_at(l, folder, file->d_name);
		if (inner)
			closedir(inner);
	}
	if (outer)
		closedir(outer);
}

uint64_t debuginfod_cache_trim(
	const char *dir, uint64_t bytes_max, const char *keep, uint64_t *out_removed)
{
	char temporary[PATH_MAX];
	if (debuginfod_cache_temporary(dir, temporary, NULL) == OK)
		(void)unlink(temporary);
	for (;;) {
		struct look l = { .keep = keep };
		look_through(&l, dir);
		if (l.bytes <= bytes_max || !l.path[0] || unlink(l.path) < 0)
			return l.bytes;
		++*out_removed;
	}
}
