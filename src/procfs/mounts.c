/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw", source: fs/proc_namespace.c,
 * show_mountinfo(). Reading it asks no file system, whatever is mounted.
 */
#include "procfs/procfs.h"

#include <stdio.h>

static bool take_u32(struct str *line, char end, uint32_t *out)
{
	uint64_t v = 0;
	struct str field;
	if (!str_split(line, end, &field) || !str_parse_u64(field, 10, &v) || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool parse_line(struct str line, struct procfs_mount *m)
{
	uint32_t parent;
	struct str field;
	if (!take_u32(&line, ' ', &m->id) || !take_u32(&line, ' ', &parent) ||
		!take_u32(&line, ':', &m->dev_major) || !take_u32(&line, ' ', &m->dev_minor) ||
		!str_split(&line, ' ', &field) || !str_split(&line, ' ', &m->point))
		return false;
	while (str_split(&line, ' ', &field))
		if (str_eq(field, STR("-")))
			return str_split(&line, ' ', &m->type) && m->type.len;
	return false;
}

enum status procfs_mounts_parse(struct str text, procfs_mount_fn *fn, void *ctx, struct err *e)
{
	struct str line;
	for (uint32_t number = 1; str_split(&text, '\n', &line); number++) {
		struct procfs_mount m = { 0 };
		if (!parse_line(line, &m))
			return err_set(e, E_INVALID, "mounts: line %u is malformed: \"%.*s\"",
				number, STR_ARG(str_sub(line, 0, 80)));
		if (!fn(ctx, &m))
			return OK;
	}
	return OK;
}

enum status procfs_mounts(procfs_mount_fn *fn, void *ctx, struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, PROCFS_MOUNTS_BYTES_MAX);
	enum status s = os_read_file("/proc/self/mountinfo", &text, e);
	return s == OK ? procfs_mounts_parse(buf_view(&text), fn, ctx, e) : s;
}

bool procfs_mount_answers(const struct procfs_mount *m)
{
	static const char *const own[] = { "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs",
		"ramfs", "hugetlbfs", "squashfs", "erofs", "iso9660", "vfat", "exfat", "ntfs3",
		"zfs", "bcachefs", "reiserfs" };
	for (size_t i = 0; i < ARRAY_COUNT(own); i++)
		if (str_eq(m->type, str_of(own[i])))
			return true;
	return false;
}

/* ---- the mount of a descriptor ---- */

struct mount_search {
	uint32_t id;
	bool answers;
};

static bool is_it(void *ctx, const struct procfs_mount *m)
{
	struct mount_search *s = ctx;
	if (m->id != s->id)
		return true;
	s->answers = procfs_mount_answers(m);
	return false;
}

bool procfs_fd_mount(int fd, uint32_t *out_id)
{
	char path[64];
	CLEANUP(buf_deinit) struct buf b;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	buf_init(&b, 4096);
	if (os_read_file(path, &b, NULL) != OK)
		return false;
	struct str text = buf_view(&b), line, name = STR("mnt_id:");
	while (str_split(&text, '\n', &line)) {
		uint64_t id;
		if (!str_starts(line, name) ||
			!str_parse_u64(str_trim(str_sub(line, name.len, line.len)), 10, &id))
			continue;
		*out_id = (uint32_t)id;
		return id <= UINT32_MAX;
	}
	return false;
}

bool procfs_mount_id_answers(uint32_t id)
{
	struct mount_search s = { .id = id };
	return procfs_mounts(is_it, &s, NULL) == OK && s.answers;
}
