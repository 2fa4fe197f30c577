/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are interrupted or incomplete are repeated until all is done. If the kernel refuses to
 * open a file, the broker is asked for it. A file is replaced by writing a temporary one in the
 * same folder, which is synced and renamed; then the folder is synced.
 */
#include "os/os.h"

#include "base/arena.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP_BYTES 16384

enum status os_read_fd(int fd, const char *name, struct buf *out, struct err *e)
{
	for (;;) {
		/* At the maximum one more byte is read, to distinguish "just fits" from "too
		 * long". */
		size_t room = MIN(out->max - out->len, (size_t)READ_STEP_BYTES);
		uint8_t extra;
		uint8_t *p = room ? buf_reserve(out, room) : &extra;
		if (!p)
			return err_set(e, buf_status(out), "read %s", name);
		ssize_t n = read(fd, p, room ? room : 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(e, "read %s", name);
		if (n == 0)
			return OK;
		if (!room)
			return err_set(e, E_LIMIT, "%s: longer than %zu bytes", name, out->max);
		out->len += (size_t)n;
	}
}

enum status os_read_file(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = os_open_read(path);
	if (fd < 0)
		return err_os(e, "open %s", path);
	return os_read_fd(fd, path, out, e);
}

/* Asks the broker, which opens only regular files too. On entry errno is that of the failed
 * call. */
static enum status open_refused(const char *path, int *out_fd, struct err *e)
{
	int was = errno;
	int fd = path[0] == '/' && (was == EACCES || was == EPERM) ? os_open_by_broker(path) : -1;
	if (fd >= 0) {
		*out_fd = fd;
		return OK;
	}
	if (errno == ENOEXEC) /* the broker's error; the kernel never returns it for an open() */
		return err_set(e, E_INVALID, "%s: no executable, nor a library", path);
	errno = was;
	return err_os(e, "open %s", path);
}

enum status os_open_regular(int dir, const char *path, int *out_fd, struct err *e)
{
	/* O_PATH gets the file's type without opening it. */
	CLEANUP(fd_cleanup) int place = openat(dir, path, O_PATH | O_CLOEXEC);
	struct stat st;
	if (place < 0)
		return open_refused(path, out_fd, e);
	if (fstat(place, &st) < 0)
		return err_os(e, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, E_INVALID, "%s: not a regular file", path);
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return open_refused(path, out_fd, e);
	*out_fd = fd;
	return OK;
}

bool os_readable_by_all(int fd)
{
	char link[64], path[PATH_MAX];
	struct stat own, st;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0 || path[0] != '/' || fstat(fd, &own) < 0 || !(own.st_mode & S_IROTH))
		return false;
	path[len] = 0;
	if (lstat(path, &st) < 0 || st.st_dev != own.st_dev || st.st_ino != own.st_ino)
		return false;
	while (path[1]) {
		char *slash = strrchr(path, '/');
		slash[slash == path] = 0;
		if (stat(path, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

enum status os_pread_full(
	int fd, void *out, size_t len, uint64_t offset, const char *name, struct err *e)
{
	uint8_t *p = out;
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, p + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(
				e, "read %s at +%llu", name, (unsigned long long)offset + done);
		if (n == 0)
			return err_set(e, E_CORRUPT, "%s: ends at +%llu, %zu bytes more expected",
				name, (unsigned long long)offset + done, len - done);
		done += (size_t)n;
	}
	return OK;
}

enum status os_write_full(int fd, const void *bytes, size_t len, const char *name, struct err *e)
{
	const uint8_t *p = bytes;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(e, "write %s", name);
		p += n;
		len -= (size_t)n;
	}
	return OK;
}

enum status os_pwrite_full(
	int fd, const void *bytes, size_t len, uint64_t offset, const char *name, struct err *e)
{
	const uint8_t *p = bytes;
	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(e, "write %s at +%llu", name, (unsigned long long)offset);
		p += n;
		len -= (size_t)n;
		offset += (size_t)n;
	}
	return OK;
}

/* Writes the folder of `path` to `out`; "." if there is no slash. */
static enum status parent_of(const char *path, char out[PATH_MAX], struct err *e)
{
	struct str s = str_of(path);
	size_t slash = str_rindex(s, '/');
	if (slash >= PATH_MAX)
		return err_set(e, E_INVALID, "path too long");
	if (slash == s.len)
		snprintf(out, PATH_MAX, ".");
	else
		snprintf(out, PATH_MAX, "%.*s", slash ? (int)slash : 1, path);
	return OK;
}

enum status os_fsync_dir(const char *dir, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "open %s", dir);
	if (fsync(fd) < 0)
		return err_os(e, "fsync %s", dir);
	return OK;
}

static enum status write_and_sync(
	int fd, const struct str *parts, size_t count, const char *name, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		enum status s = os_write_full(fd, parts[i].p, parts[i].len, name, e);
		if (s != OK)
			return s;
	}
	if (fsync(fd) < 0)
		return err_os(e, "fsync %s", name);
	return OK;
}

enum status os_replace_file_parts(
	const char *path, const struct str *parts, size_t count, unsigned mode, struct err *e)
{
	char dir[PATH_MAX], temporary[PATH_MAX];
	enum status s = parent_of(path, dir, e);
	if (s != OK)
		return s;
	int n = snprintf(temporary, sizeof(temporary), "%s.%d.tmp", path, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return err_set(e, E_INVALID, "path too long: %.100s…", path);
	CLEANUP(fd_cleanup)
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return err_os(e, "create %s", temporary);
	s = write_and_sync(fd, parts, count, temporary, e);
	if (s == OK && rename(temporary, path) < 0)
		s = err_os(e, "rename %s to %s", temporary, path);
	if (s != OK) {
		unlink(temporary);
		return s;
	}
	return os_fsync_dir(dir, e);
}

enum status os_replace_file(
	const char *path, const void *bytes, size_t len, unsigned mode, struct err *e)
{
	return os_replace_file_parts(path, &(struct str){ bytes, len }, 1, mode, e);
}

enum status os_make_dirs(const char *path, struct err *e)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof(part))
		return err_set(e, E_INVALID, "not a path: \"%.100s\"", path);
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != 0)
			continue;
		char saved = part[i], folder[PATH_MAX];
		part[i] = 0;
		bool made = mkdir(part, 0750) == 0;
		if (!made && errno != EEXIST)
			return err_os(e, "make directory %s", part);
		enum status s = made ? parent_of(part, folder, e) : OK;
		if (made && s == OK)
			s = os_fsync_dir(folder, e);
		if (s != OK && s != E_DENIED) /* E_DENIED: no right to read it */
			return s;
		part[i] = saved;
	}
	struct stat st;
	if (stat(path, &st) < 0)
		return err_os(e, "stat %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, E_EXISTS, "%s: not a directory", path);
	return OK;
}

static int compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void dir_cleanup(DIR **d)
{
	if (*d)
		closedir(*d);
}

enum status os_list_dir(
	const char *path, struct arena *a, struct str **out_names, size_t *out_count, struct err *e)
{
	CLEANUP(dir_cleanup) DIR *d = opendir(path);
	if (!d)
		return err_os(e, "open %s", path);
	VEC(struct str) names = { 0 };
	enum status s = OK;
	for (;;) {
		errno = 0;
		struct dirent *entry = readdir(d);
		if (!entry) {
			if (errno)
				s = err_os(e, "read %s", path);
			break;
		}
		struct str name = str_of(entry->d_name);
		if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
			continue;
		char *copy = arena_copy(a, name.p, name.len);
		if (!copy)
			s = err_set(e, arena_status(a), "list %s", path);
		else if (!VEC_PUSH(&names, str_make(copy, name.len)))
			s = err_set(e, E_NOMEM, "list %s", path);
		if (s != OK)
			break;
	}
	struct str *sorted = s == OK ? ARENA_ARRAY(a, struct str, names.len) : NULL;
	if (s == OK && !sorted)
		s = err_set(e, arena_status(a), "list %s", path);
	if (s == OK) {
		if (names.len) {
			qsort(names.v, names.len, sizeof(*names.v), compare_names);
			memcpy(sorted, names.v, names.len * sizeof(*sorted));
		}
		*out_names = sorted;
		*out_count = names.len;
	}
	VEC_FREE(&names);
	return s;
}
