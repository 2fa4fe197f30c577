/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Four ways, in this order:
 *
 *   /proc/PID/map_files/START-END   the mapped file itself, whatever its path says by now. Needs
 *                                   CAP_CHECKPOINT_RESTORE (Linux 5.9) or CAP_SYS_ADMIN
 *   the same for another mapping    the one of the notice may have been split or moved since: by
 *   of the same file                key, in /proc/PID/maps
 *   /proc/PID/root/PATH             needs CAP_SYS_PTRACE only. The path may lead elsewhere by now,
 *                                   or through a link that the process made, so the file must have
 *                                   the inode that the kernel named
 *   the usual folders               for a process that has ended: a file with that inode
 *
 * On btrfs stat() gives another device than the one in the key: there the inode number must be
 * enough. On overlayfs of recent kernels the key is that of the file in the layer below, which
 * nothing in user space shows: there map_files is believed, and the other ways find nothing.
 */
/* clang-format on */
#include "agent/fileopen.h"

#include "agent/broker.h"
#include "os/os.h"
#include "procfs/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FOLDER_ENTRIES_MAX 65536
#define PATTERN_FOLDERS_MAX 16
#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

static bool same_inode(int fd, const struct file_key *key)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || st.st_ino != key->inode)
		return false;
	if ((major(st.st_dev) << KERNEL_MINOR_BITS | minor(st.st_dev)) == key->dev)
		return true;
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

static bool on_overlay(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static void set_path(char path[FILEOPEN_PATH_MAX], struct str s)
{
	struct str deleted = STR(" (deleted)");
	if (str_ends(s, deleted))
		s.len -= deleted.len;
	s.len = MIN(s.len, (size_t)FILEOPEN_PATH_MAX - 1);
	memcpy(path, s.p ? s.p : "", s.len);
	path[s.len] = 0;
}

/* By the broker, which waits for no file system longer than it may; without one by this process.
 * E_INVALID: the broker has seen that it is nothing of interest. */
static enum status open_on(const char *path, uint32_t device, int *out_fd, struct err *e)
{
	int fd = broker_open(path, device);
	if (fd < 0 && errno == ENOSYS)
		return os_open_regular(AT_FDCWD, path, out_fd, e);
	if (fd < 0 && errno == ETIMEDOUT)
		return err_set(
			e, E_TIMEOUT, "%s: timed out: its file system does not answer", path);
	if (fd < 0 && errno == ENOEXEC)
		return err_set(e, E_INVALID, "%s: no executable, nor a library", path);
	if (fd < 0)
		return err_os(e, "open %s", path);
	*out_fd = fd;
	return OK;
}

/* Open a link of /proc/PID, and read where it points. */
static enum status open_link(
	const char *link, uint32_t device, int *out_fd, char path[FILEOPEN_PATH_MAX], struct err *e)
{
	int fd = -1;
	enum status s = open_on(link, device, &fd, e);
	if (s != OK)
		return s;
	char target[PATH_MAX];
	ssize_t len = os_read_link(link, target, sizeof(target));
	set_path(path, str_make(target, len > 0 ? (size_t)len : 0));
	*out_fd = fd;
	return OK;
}

static enum status open_mapping(int pid, const struct file_notice *n, int *out_fd,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char link[96];
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", pid,
		(unsigned long long)n->vma_start, (unsigned long long)n->vma_end);
	return open_link(link, n->key.dev, out_fd, path, e);
}

struct search {
	const struct file_key *key;
	bool found;
	uint64_t start;
	uint64_t end;
	char path[PATH_MAX];
};

static bool is_key(void *ctx, const struct procfs_map *m)
{
	struct search *s = ctx;
	if (m->inode != s->key->inode ||
		(m->dev_major << KERNEL_MINOR_BITS | m->dev_minor) != s->key->dev)
		return true;
	s->found = true;
	s->start = m->start;
	s->end = m->end;
	snprintf(s->path, sizeof(s->path), "%.*s", STR_ARG(m->path));
	return !m->exec;
}

static enum status open_by_path(
	int pid, const struct search *s, int *out_fd, char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char full[PATH_MAX + 32];
	if (s->path[0] != '/')
		return err_set(e, E_NOTFOUND, "process %d: \"%s\" is no path", pid, s->path);
	snprintf(full, sizeof(full), "/proc/%d/root%s", pid, s->path);
	CLEANUP(fd_cleanup) int fd = -1;
	enum status st = open_on(full, s->key->dev, &fd, e);
	if (st != OK)
		return st;
	if (!same_inode(fd, s->key))
		return err_set(e, E_NOTFOUND, "%s is another file than the one mapped", full);
	set_path(path, str_of(s->path));
	*out_fd = STEAL_FD(fd);
	return OK;
}

static enum status open_exe(int pid, const struct file_key *key, int *out_fd,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	CLEANUP(fd_cleanup) int fd = -1;
	enum status s = open_link(link, key->dev, &fd, path, e);
	if (s != OK)
		return s;
	if (!same_inode(fd, key))
		return err_set(e, E_NOTFOUND, "%s is another file by now", link);
	*out_fd = STEAL_FD(fd);
	return OK;
}

/* The entry of a folder with the inode; the folder says the number without a stat() of each. */
static bool search_folder(
	const char *folder, const struct file_key *key, int *out_fd, char path[FILEOPEN_PATH_MAX])
{
	DIR *d = opendir(folder);
	if (!d)
		return false;
	bool found = false;
	struct dirent *entry;
	for (uint32_t n = 0; !found && n < FOLDER_ENTRIES_MAX && (entry = readdir(d)); n++) {
		if (entry->d_ino != key->inode || entry->d_type == DT_DIR)
			continue;
		CLEANUP(fd_cleanup) int fd = -1;
		if (os_open_regular(dirfd(d), entry->d_name, &fd, NULL) != OK ||
			!same_inode(fd, key))
			continue;
		char full[PATH_MAX];
		snprintf(full, sizeof(full), "%s/%s", folder, entry->d_name);
		set_path(path, str_of(full));
		*out_fd = STEAL_FD(fd);
		found = true;
	}
	closedir(d);
	return found;
}

static bool search_folders(const struct file_key *key, int *out_fd, char path[FILEOPEN_PATH_MAX])
{
	static const char *const patterns[] = {
		"/usr/bin",
		"/usr/sbin",
		"/usr/local/bin",
		"/usr/lib/*-linux-gnu",
		"/usr/lib64",
		"/usr/libexec",
		"/usr/lib/gcc/*/*",
		"/usr/libexec/gcc/*/*",
		"/usr/lib/git-core",
		"/usr/local/lib",
		"/usr/local/sbin",
		"/bin",
		"/sbin",
		"/lib/*-linux-gnu",
	};
	for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
		glob_t folders;
		if (glob(patterns[i], GLOB_NOSORT, NULL, &folders) != 0)
			continue;
		bool found = false;
		for (size_t n = 0; n < folders.gl_pathc && n < PATTERN_FOLDERS_MAX && !found; n++)
			found = search_folder(folders.gl_pathv[n], key, out_fd, path);
		globfree(&folders);
		if (found)
			return true;
	}
	return false;
}

static enum status open_in_process(int pid, const struct file_notice *n, int *out_fd,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	if (n->vma_start == 0)
		return open_exe(pid, &n->key, out_fd, path, e);
	CLEANUP(fd_cleanup) int fd = -1;
	enum status st = open_mapping(pid, n, &fd, path, e);
	if (st == E_TIMEOUT) /* each of the other ways asks the same file system */
		return st;
	if (st == OK) {
		/* Elsewhere the address may have been mapped anew since. */
		if (same_inode(fd, &n->key) || on_overlay(fd)) {
			*out_fd = STEAL_FD(fd);
			return OK;
		}
	}
	struct search s = { .key = &n->key };
	st = procfs_maps(pid, is_key, &s, e);
	if (st != OK)
		return st;
	if (!s.found)
		return err_set(e, E_NOTFOUND, "process %d has inode %llu mapped no more", pid,
			(unsigned long long)n->key.inode);
	const struct file_notice again = { n->key, s.start, s.end, 0 };
	st = open_mapping(pid, &again, out_fd, path, e);
	if (st == OK || st == E_TIMEOUT)
		return st;
	return open_by_path(pid, &s, out_fd, path, e);
}

enum status fileopen(int pid, const struct file_notice *n, int *out_fd,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	enum status s = open_in_process(pid, n, out_fd, path, e);
	/* E_INVALID: it is there, and nothing that has an unwind table. */
	bool is_gone = s != OK && s != E_NOMEM && s != E_INVALID && s != E_TIMEOUT;
	if (is_gone && search_folders(&n->key, out_fd, path))
		return OK;
	return s;
}
