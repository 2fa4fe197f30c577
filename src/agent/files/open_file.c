/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker opens it, which waits for no file system longer than it may; without a broker this
 * process does. What stays in the broker is read there, piece by piece.
 */
#include "agent/files/open_file.h"

#include "os/os.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define VDSO_BYTES_MAX 65536
#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

bool open_file_is(const struct open_file *f, const struct file_key *key)
{
	const struct broker_stat *st = &f->pinned.stat;
	if (st->inode != key->inode)
		return false;
	if ((major(st->device) << KERNEL_MINOR_BITS | minor(st->device)) == key->dev)
		return true;
	return st->type == OVERLAYFS_SUPER_MAGIC || st->type == BTRFS_SUPER_MAGIC;
}

void open_file_close(struct open_file *f)
{
	fd_cleanup(&f->fd);
	if (f->is_pinned)
		broker_drop(&f->pinned);
	*f = (struct open_file){ .fd = -1 };
}

enum status open_file_init(struct open_file *f, int fd, const char *name, struct err *e)
{
	CLEANUP(fd_cleanup) int own = fd;
	struct stat st;
	struct statfs fs;
	if (fstat(own, &st) < 0 || fstatfs(own, &fs) < 0)
		return err_os(e, "stat %s", name);
	*f = (struct open_file){ .pinned.stat = { st.st_dev, st.st_ino, (uint64_t)st.st_size,
					 st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec,
					 st.st_ctim.tv_nsec, st.st_uid, (uint64_t)fs.f_type } };
	f->fd = STEAL_FD(own);
	return OK;
}

static enum status no_answer(const char *path, struct err *e)
{
	return err_set(e, E_TIMEOUT, "%s: timed out: its file system does not answer", path);
}

/* The broker opens the file, since this process must not wait for a file system. Without a broker
 * this process opens it. */
enum status open_file_open(const char *path, uint32_t device, struct open_file *out, struct err *e)
{
	struct open_file f = { .fd = -1, .is_pinned = true };
	int fd = broker_open_executable(path, device, &f.pinned);
	if (fd == BROKER_IS_PINNED) {
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
	return s == OK ? open_file_init(out, fd, path, e) : s;
}

/* A device that hangs and a broker that has ended do not mean that the file is damaged. */
static enum status read_pinned(void *ctx, uint64_t offset, void *out, size_t len, struct err *e)
{
	const struct open_file *f = ctx;
	uint8_t *to = out;
	while (len > 0) {
		ssize_t n = broker_read(&f->pinned, to, len, offset);
		if (n < 0 && errno == ETIMEDOUT)
			return err_set(e, E_TIMEOUT,
				"timed out at +%llu: its file system (device %u:%u) does not "
				"answer",
				(unsigned long long)offset, major(f->pinned.stat.device),
				minor(f->pinned.stat.device));
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

enum status open_file_objfile(
	struct open_file *f, const char *name, struct objfile **out, struct err *e)
{
	if (f->is_pinned) {
		const struct objfile_source source = { read_pinned, f, f->pinned.stat.bytes };
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

enum status open_file_vdso(struct objfile **out, struct str *out_image, struct err *e)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return OK; /* a kernel without one */
	Elf64_Ehdr header;
	memcpy(&header, image, sizeof(header));
	uint64_t len = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	if (len > VDSO_BYTES_MAX)
		return err_set(e, E_LIMIT, "vDSO: %llu bytes", (unsigned long long)len);
	*out_image = str_make((const char *)image, len);
	return objfile_open_bytes(image, len, "[vdso]", out, e);
}
