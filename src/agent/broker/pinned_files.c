/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor is not closed while it is read: a file that is opened meanwhile could get its
 * number. close() itself may hang (FUSE asks its server), so the place becomes free only after it.
 */
#include "agent/broker/pinned_files.h"

#include <errno.h>
#include <linux/magic.h>
#include <unistd.h>

#ifndef EXFAT_SUPER_MAGIC
#define EXFAT_SUPER_MAGIC 0x2011BAB0
#endif
#define NTFS3_MAGIC 0x7366746e
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

void pinned_files_init(struct pinned_files *h)
{
	lock_init(&h->lock, LOCK_PINNED);
	for (size_t i = 0; i < BROKER_PINNED_MAX; i++)
		h->files[i] = (struct pinned_file){ .fd = -1 };
}

bool pinned_files_may_hang(uint64_t type, bool below_is_disk)
{
	static const uint64_t own[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC, SQUASHFS_MAGIC,
		EROFS_SUPER_MAGIC_V1, ISOFS_SUPER_MAGIC, MSDOS_SUPER_MAGIC, EXFAT_SUPER_MAGIC,
		NTFS3_MAGIC, ZFS_MAGIC, BCACHEFS_MAGIC, REISERFS_SUPER_MAGIC };
	for (size_t i = 0; i < ARRAY_COUNT(own); i++)
		if (type == own[i])
			return false;
	return type != OVERLAYFS_SUPER_MAGIC || !below_is_disk;
}

int pinned_files_add(struct pinned_files *h, int fd)
{
	int handle = -1;
	lock_take(&h->lock);
	for (int i = 0; i < BROKER_PINNED_MAX && handle < 0; i++) {
		if (h->files[i].fd >= 0)
			continue;
		h->files[i] = (struct pinned_file){ .fd = fd };
		handle = i;
	}
	lock_release(&h->lock);
	if (handle >= 0)
		return handle;
	close(fd);
	errno = ENFILE;
	return -1;
}

/* NULL: no such handle. */
static struct pinned_file *use(struct pinned_files *h, uint32_t handle, bool drop)
{
	struct pinned_file *f = NULL;
	lock_take(&h->lock);
	if (handle < BROKER_PINNED_MAX && h->files[handle].fd >= 0 && !h->files[handle].dropped) {
		f = &h->files[handle];
		f->users++;
		f->dropped = drop;
	}
	lock_release(&h->lock);
	if (!f)
		errno = EBADF;
	return f;
}

static void leave(struct pinned_files *h, struct pinned_file *f)
{
	lock_take(&h->lock);
	bool is_last = --f->users == 0 && f->dropped;
	lock_release(&h->lock);
	if (!is_last)
		return;
	close(f->fd); /* no other thread touches it */
	lock_take(&h->lock);
	f->fd = -1;
	lock_release(&h->lock);
}

ssize_t pinned_files_read(
	struct pinned_files *h, uint32_t handle, void *out, size_t len, uint64_t offset)
{
	struct pinned_file *f = use(h, handle, false);
	if (!f)
		return -1;
	ssize_t n = pread(f->fd, out, len, (off_t)offset);
	int error = errno;
	leave(h, f);
	errno = error;
	return n;
}

int pinned_files_drop(struct pinned_files *h, uint32_t handle)
{
	struct pinned_file *f = use(h, handle, true);
	if (!f)
		return -1;
	leave(h, f);
	return 0;
}
