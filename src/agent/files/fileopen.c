/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Five ways, in this order:
 *
 *   /proc/PID/map_files/START-END   the mapped file itself, whatever its path says by now. Needs
 *                                   CAP_CHECKPOINT_RESTORE (Linux 5.9) or CAP_SYS_ADMIN
 *   the same for another mapping    the one of the notice may have been split or moved since: by
 *   of the same file                key, in /proc/PID/maps
 *   the folders of its other files  for a library that was mapped for a moment: a file with that
 *                                   inode, where the file system answers by itself (filesearch.c)
 *   /proc/PID/root/PATH             needs CAP_SYS_PTRACE only. The path may lead elsewhere by now,
 *                                   or through a link that the process made, so the file must have
 *                                   the inode that the kernel named
 *   the usual folders               for a process that has ended: a file with that inode, where
 *                                   the file system answers by itself (filesearch.c)
 *
 * On btrfs stat() gives another device than the one in the key: there the inode number must be
 * enough. On overlayfs of recent kernels the key is that of the file in the layer below, which
 * nothing in user space shows: there map_files is believed, and the other ways find nothing.
 */
/* clang-format on */
#include "agent/files/fileopen.h"

#include "agent/broker/broker.h"
#include "agent/files/filesearch.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

bool openfile_is(const struct openfile *f, const struct file_key *key)
{
	const struct broker_stat *st = &f->held.stat;
	if (st->inode != key->inode)
		return false;
	if ((major(st->device) << KERNEL_MINOR_BITS | minor(st->device)) == key->dev)
		return true;
	return st->type == OVERLAYFS_SUPER_MAGIC || st->type == BTRFS_SUPER_MAGIC;
}

static bool on_overlay(const struct openfile *f)
{
	return f->held.stat.type == OVERLAYFS_SUPER_MAGIC;
}

/* ---- an open file ---- */

void openfile_close(struct openfile *f)
{
	fd_cleanup(&f->fd);
	if (f->is_held)
		broker_drop(&f->held);
	*f = (struct openfile){ .fd = -1 };
}

static struct openfile openfile_steal(struct openfile *f)
{
	struct openfile taken = *f;
	*f = (struct openfile){ .fd = -1 };
	return taken;
}

enum status openfile_init(struct openfile *f, int fd, const char *name, struct err *e)
{
	CLEANUP(fd_cleanup) int own = fd;
	struct stat st;
	struct statfs fs;
	if (fstat(own, &st) < 0 || fstatfs(own, &fs) < 0)
		return err_os(e, "stat %s", name);
	*f = (struct openfile){ .held.stat = { st.st_dev, st.st_ino, (uint64_t)st.st_size,
					st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec,
					st.st_ctim.tv_nsec, st.st_uid, (uint64_t)fs.f_type } };
	f->fd = STEAL_FD(own);
	return OK;
}

static enum status no_answer(const char *path, struct err *e)
{
	return err_set(e, E_TIMEOUT, "%s: timed out: its file system does not answer", path);
}

/* By the broker, which waits for no file system longer than it may; without one by this process. */
enum status openfile_open(const char *path, uint32_t device, struct openfile *out, struct err *e)
{
	struct openfile f = { .fd = -1, .is_held = true };
	int fd = broker_open_executable(path, device, &f.held);
	if (fd == BROKER_IS_HELD) {
		*out = f;
		return OK;
	}
	/* E_INVALID: the broker has seen that it is nothing of interest. */
	if (fd < 0 && errno == ETIMEDOUT)
		return no_answer(path, e);
	if (fd < 0 && errno == ENOEXEC)
		return err_set(e, E_INVALID, "%s: no executable, nor a library", path);
	enum status s = OK;
	if (fd < 0 && errno == ENOSYS)
		s = os_open_regular(AT_FDCWD, path, &fd, e);
	else if (fd < 0)
		s = err_os(e, "open %s", path);
	return s == OK ? openfile_init(out, fd, path, e) : s;
}

/* A device that hangs, and the broker that is gone, are no damage of the file. */
static enum status read_held(void *ctx, uint64_t offset, void *out, size_t len, struct err *e)
{
	const struct openfile *f = ctx;
	uint8_t *to = out;
	while (len > 0) {
		ssize_t n = broker_read(&f->held, to, len, offset);
		if (n < 0 && errno == ETIMEDOUT)
			return err_set(e, E_TIMEOUT,
				"timed out at +%llu: its file system (device %u:%u) does not "
				"answer",
				(unsigned long long)offset, major(f->held.stat.device),
				minor(f->held.stat.device));
		if (n < 0)
			return err_os(e, "read at +%llu", (unsigned long long)offset);
		if (n == 0)
			return err_set(
				e, E_INVALID, "it ends at +%llu", (unsigned long long)offset);
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return OK;
}

enum status openfile_objfile(
	struct openfile *f, const char *name, struct objfile **out, struct err *e)
{
	if (f->is_held) {
		const struct objfile_source source = { read_held, f, f->held.stat.bytes };
		return objfile_open_source(&source, name, out, e);
	}
	CLEANUP(fd_cleanup) int own = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return err_os(e, "%s", name);
	enum status s = objfile_open_fd(own, name, out, e);
	if (s == OK)
		(void)STEAL_FD(own);
	return s;
}

/* ---- what a process has mapped ---- */

static enum status no_map(int pid, struct err *e)
{
	return err_set(e, E_TIMEOUT,
		"process %d: timed out: its memory map is locked by what waits for a file system",
		pid);
}

static enum status read_maps(const struct broker_file *f, struct buf *out, struct err *e)
{
	uint8_t piece[4096]; /* the kernel says no more at a time */
	ssize_t n;
	while ((n = broker_read(f, piece, sizeof(piece), out->len)) > 0 && buf_status(out) == OK)
		buf_put(out, piece, (size_t)n);
	if (n < 0)
		return errno == ETIMEDOUT ? E_TIMEOUT : err_os(e, "read the memory map");
	return buf_status(out);
}

enum status fileopen_maps(int pid, procfs_map_fn *fn, void *ctx, struct err *e)
{
	struct broker_file f;
	int fd = broker_open_maps(pid, &f);
	if (fd >= 0) /* by none of ours */
		close(fd);
	if (fd >= 0 || (fd == -1 && errno == ENOSYS))
		return procfs_maps(pid, fn, ctx, e);
	if (fd == -1 && errno == ETIMEDOUT)
		return no_map(pid, e);
	if (fd == -1)
		return err_os(e, "open /proc/%d/maps", pid);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, PROCFS_MAPS_BYTES_MAX);
	enum status s = read_maps(&f, &text, e);
	broker_drop(&f);
	if (s == E_TIMEOUT)
		return no_map(pid, e);
	return s == OK ? procfs_maps_parse(buf_view(&text), fn, ctx, e) : s;
}

/* ---- which one ---- */

static void set_path(char path[FILEOPEN_PATH_MAX], struct str s)
{
	struct str deleted = STR(" (deleted)");
	if (str_ends(s, deleted))
		s.len -= deleted.len;
	s.len = MIN(s.len, (size_t)FILEOPEN_PATH_MAX - 1);
	memcpy(path, s.p ? s.p : "", s.len);
	path[s.len] = 0;
}

/* Open a link of /proc/PID, and read where it points: that first, so that what makes us wait then
 * is the process, and its file system afterwards. */
static enum status open_link(int pid, const char *link, uint32_t device, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char target[PATH_MAX];
	ssize_t len = broker_read_mapping(pid, link, target, sizeof(target));
	if (len < 0 && errno == ENOSYS)
		len = readlink(link, target, sizeof(target));
	if (len < 0 && errno == ETIMEDOUT)
		return no_map(pid, e);
	if (len < 0)
		return err_os(e, "read %s", link);
	enum status s = openfile_open(link, device, out, e);
	if (s == OK)
		set_path(path, str_make(target, (size_t)len));
	return s;
}

static enum status open_mapping(int pid, const struct file_notice *n, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char link[96];
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", pid,
		(unsigned long long)n->vma_start, (unsigned long long)n->vma_end);
	return open_link(pid, link, n->key.dev, out, path, e);
}

struct search {
	const struct file_key *key;
	bool found;
	uint64_t start;
	uint64_t end;
	char path[PATH_MAX];
	struct filesearch_beside beside; /* where its other files lie */
};

static bool is_key(void *ctx, const struct procfs_map *m)
{
	struct search *s = ctx;
	if (m->inode != s->key->inode ||
		(m->dev_major << KERNEL_MINOR_BITS | m->dev_minor) != s->key->dev) {
		if (m->exec)
			filesearch_beside_add(&s->beside, m->path);
		return true;
	}
	s->found = true;
	s->start = m->start;
	s->end = m->end;
	snprintf(s->path, sizeof(s->path), "%.*s", STR_ARG(m->path));
	return !m->exec;
}

static enum status open_by_path(int pid, const struct search *s, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char full[PATH_MAX + 32];
	if (s->path[0] != '/')
		return err_set(e, E_NOTFOUND, "process %d: \"%s\" is no path", pid, s->path);
	snprintf(full, sizeof(full), "/proc/%d/root%s", pid, s->path);
	CLEANUP(openfile_close) struct openfile f = { .fd = -1 };
	enum status st = openfile_open(full, s->key->dev, &f, e);
	if (st != OK)
		return st;
	if (!openfile_is(&f, s->key))
		return err_set(e, E_NOTFOUND, "%s is another file than the one mapped", full);
	set_path(path, str_of(s->path));
	*out = openfile_steal(&f);
	return OK;
}

static enum status open_exe(int pid, const struct file_key *key, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	CLEANUP(openfile_close) struct openfile f = { .fd = -1 };
	enum status s = open_link(pid, link, key->dev, &f, path, e);
	if (s != OK)
		return s;
	if (!openfile_is(&f, key))
		return err_set(e, E_NOTFOUND, "%s is another file by now", link);
	*out = openfile_steal(&f);
	return OK;
}

static enum status open_in_process(int pid, const struct file_notice *n, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	if (n->vma_start == 0)
		return open_exe(pid, &n->key, out, path, e);
	CLEANUP(openfile_close) struct openfile f = { .fd = -1 };
	enum status st = open_mapping(pid, n, &f, path, e);
	if (st == E_TIMEOUT) /* each of the other ways asks the same file system */
		return st;
	if (st == OK) {
		/* Elsewhere the address may have been mapped anew since. */
		if (openfile_is(&f, &n->key) || on_overlay(&f)) {
			*out = openfile_steal(&f);
			return OK;
		}
	}
	struct search s = { .key = &n->key };
	st = fileopen_maps(pid, is_key, &s, e);
	if (st != OK)
		return st;
	if (!s.found && filesearch_beside(&s.beside, &n->key, out, path))
		return OK;
	if (!s.found)
		return err_set(e, E_NOTFOUND, "process %d has inode %llu mapped no more", pid,
			(unsigned long long)n->key.inode);
	const struct file_notice again = { n->key, s.start, s.end, 0 };
	st = open_mapping(pid, &again, out, path, e);
	if (st == OK || st == E_TIMEOUT)
		return st;
	if (st == E_INVALID) { /* code of a runtime's own */
		set_path(path, str_of(s.path));
		return st;
	}
	return open_by_path(pid, &s, out, path, e);
}

enum status fileopen(int pid, const struct file_notice *n, struct openfile *out,
	char path[FILEOPEN_PATH_MAX], struct err *e)
{
	enum status s = open_in_process(pid, n, out, path, e);
	/* E_INVALID: it is there, and nothing that has an unwind table. */
	bool is_gone = s != OK && s != E_NOMEM && s != E_INVALID && s != E_TIMEOUT;
	if (is_gone && filesearch("", &n->key, out, path))
		return OK;
	return s;
}
