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
 *                                   inode, where the file system answers by itself (inode_search.c)
 *   /proc/PID/root/PATH             needs CAP_SYS_PTRACE only. The path may lead elsewhere by now,
 *                                   or through a link that the process made, so the file must have
 *                                   the inode that the kernel named
 *   the usual folders               for a process that has ended: a file with that inode, where
 *                                   the file system answers by itself (inode_search.c)
 *
 * On btrfs stat() gives another device than the one in the key: there the inode number must be
 * enough. On overlayfs of recent kernels the key is that of the file in the layer below, which
 * nothing in user space shows: there map_files is believed, and the other ways find nothing.
 */
/* clang-format on */
#include "agent/files/mapped_file.h"

#include "agent/files/inode_search.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <unistd.h>

#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

static bool on_overlay(const struct open_file *f)
{
	return f->pinned.stat.type == OVERLAYFS_SUPER_MAGIC;
}

static struct open_file open_file_steal(struct open_file *f)
{
	struct open_file taken = *f;
	*f = (struct open_file){ .fd = -1 };
	return taken;
}

static enum status no_map(int pid, struct err *e)
{
	return err_set(e, E_TIMEOUT,
		"process %d: timed out: its memory map is locked by what waits for a file system",
		pid);
}

static enum status read_maps(const struct broker_file *f, struct buf *out, struct err *e)
{
	uint8_t piece[4096]; /* the kernel gives at most this much at a time */
	ssize_t n;
	while ((n = broker_read(f, piece, sizeof(piece), out->len)) > 0 && buf_status(out) == OK)
		buf_put(out, piece, (size_t)n);
	if (n < 0)
		return errno == ETIMEDOUT ? E_TIMEOUT : err_os(e, "read the memory map");
	return buf_status(out);
}

enum status mapped_file_each(int pid, procfs_map_fn *fn, void *ctx, struct err *e)
{
	struct broker_file f;
	int fd = broker_open_maps(pid, &f);
	if (fd >= 0) /* our broker never answers so: it pins this file */
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

/* ---- which mapping ---- */

static void set_path(char path[OPEN_FILE_PATH_MAX], struct str s)
{
	struct str deleted = STR(" (deleted)");
	if (str_ends(s, deleted))
		s.len -= deleted.len;
	s.len = MIN(s.len, (size_t)OPEN_FILE_PATH_MAX - 1);
	memcpy(path, s.p ? s.p : "", s.len);
	path[s.len] = 0;
}

/* Opens a link of /proc/PID, after reading where it points. Only the process can delay the reading;
 * its file system can delay the opening. */
static enum status open_link(int pid, const char *link, uint32_t device, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e)
{
	char target[PATH_MAX];
	ssize_t len = broker_read_mapping(pid, link, target, sizeof(target));
	if (len < 0 && errno == ENOSYS)
		len = readlink(link, target, sizeof(target));
	if (len < 0 && errno == ETIMEDOUT)
		return no_map(pid, e);
	if (len < 0)
		return err_os(e, "read %s", link);
	enum status s = open_file_open(link, device, out, e);
	if (s == OK)
		set_path(path, str_make(target, (size_t)len));
	return s;
}

static enum status open_mapping(int pid, const struct file_notice *n, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e)
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
	struct inode_search_beside beside; /* where its other files lie */
};

static bool is_key(void *ctx, const struct procfs_map *m)
{
	struct search *s = ctx;
	if (m->inode != s->key->inode ||
		(m->dev_major << KERNEL_MINOR_BITS | m->dev_minor) != s->key->dev) {
		if (m->exec)
			inode_search_beside_add(&s->beside, m->path);
		return true;
	}
	s->found = true;
	s->start = m->start;
	s->end = m->end;
	snprintf(s->path, sizeof(s->path), "%.*s", STR_ARG(m->path));
	return !m->exec;
}

static enum status open_by_path(int pid, const struct search *s, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e)
{
	char full[PATH_MAX + 32];
	if (s->path[0] != '/')
		return err_set(e, E_NOTFOUND, "process %d: \"%s\" is no path", pid, s->path);
	snprintf(full, sizeof(full), "/proc/%d/root%s", pid, s->path);
	CLEANUP(open_file_close) struct open_file f = { .fd = -1 };
	enum status st = open_file_open(full, s->key->dev, &f, e);
	if (st != OK)
		return st;
	if (!open_file_is(&f, s->key))
		return err_set(e, E_NOTFOUND, "%s is another file than the one mapped", full);
	set_path(path, str_of(s->path));
	*out = open_file_steal(&f);
	return OK;
}

static enum status open_exe(int pid, const struct file_key *key, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e)
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	CLEANUP(open_file_close) struct open_file f = { .fd = -1 };
	enum status s = open_link(pid, link, key->dev, &f, path, e);
	if (s != OK)
		return s;
	if (!open_file_is(&f, key))
		return err_set(e, E_NOTFOUND, "%s is another file by now", link);
	*out = open_file_steal(&f);
	return OK;
}

static enum status open_in_process(int pid, const struct file_notice *n, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e)
{
	if (n->vma_start == 0)
		return open_exe(pid, &n->key, out, path, e);
	CLEANUP(open_file_close) struct open_file f = { .fd = -1 };
	enum status st = open_mapping(pid, n, &f, path, e);
	if (st == E_TIMEOUT) /* each of the other ways asks the same file system */
		return st;
	if (st == OK) {
		/* Elsewhere the address may have been mapped anew since. */
		if (open_file_is(&f, &n->key) || on_overlay(&f)) {
			*out = open_file_steal(&f);
			return OK;
		}
	}
	struct search s = { .key = &n->key };
	st = mapped_file_each(pid, is_key, &s, e);
	if (st != OK)
		return st;
	if (!s.found && inode_search_beside(&s.beside, &n->key, out, path))
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

enum status mapped_file_open(int pid, const struct file_notice *n, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX], struct err *e)
{
	enum status s = open_in_process(pid, n, out, path, e);
	return mapped_file_is_gone(s) && inode_search("", &n->key, out, path) ? OK : s;
}
