/* SPDX-License-Identifier: Apache-2.0 */
/* "55d0-55d1 r-xp 00001000 fd:00 1234   /usr/bin/x", source: fs/proc/task_mmu.c, show_map_vma(). */
#include "procfs/procfs.h"

#include "base/reader.h"

#include <stdio.h>

/* The hex number before `end`, cut off *line together with `end`. */
static bool take_hex(struct str *line, char end, uint64_t *out)
{
	size_t at = str_index(*line, end);
	if (at == line->len || at > 16 || !str_parse_u64(str_sub(*line, 0, at), 16, out))
		return false;
	*line = str_sub(*line, at + 1, line->len);
	return true;
}

static bool take_permissions(struct str *line, struct procfs_map *m)
{
	if (line->len < 5 || line->p[4] != ' ')
		return false;
	m->read = line->p[0] == 'r';
	m->write = line->p[1] == 'w';
	m->exec = line->p[2] == 'x';
	m->shared = line->p[3] == 's';
	*line = str_sub(*line, 5, line->len);
	return true;
}

static bool parse_line(struct str line, struct procfs_map *m)
{
	uint64_t major, minor;
	if (!take_hex(&line, '-', &m->start) || !take_hex(&line, ' ', &m->end) ||
		!take_permissions(&line, m) || !take_hex(&line, ' ', &m->offset) ||
		!take_hex(&line, ':', &major) || !take_hex(&line, ' ', &minor))
		return false;
	if (m->start >= m->end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	size_t digits = str_index(line, ' ');
	if (!str_parse_u64(str_sub(line, 0, digits), 10, &m->inode))
		return false;
	size_t path = digits;
	while (path < line.len && line.p[path] == ' ')
		path++;
	m->path = str_sub(line, path, line.len);
	return true;
}

enum status procfs_maps_parse(struct str text, procfs_map_fn *fn, void *ctx, struct err *e)
{
	struct str line;
	for (uint32_t number = 1; str_split(&text, '\n', &line); number++) {
		struct procfs_map m = { 0 };
		if (number > PROCFS_MAPS_MAX)
			return err_set(e, E_LIMIT, "maps: more than %d lines", PROCFS_MAPS_MAX);
		if (!parse_line(line, &m))
			return err_set(e, E_INVALID, "maps: line %u is malformed: \"%.*s\"", number,
				STR_ARG(str_sub(line, 0, 80)));
		if (!fn(ctx, &m))
			return OK;
	}
	return OK;
}

enum status procfs_maps(int pid, procfs_map_fn *fn, void *ctx, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, PROCFS_MAPS_BYTES_MAX);
	enum status s = os_read_file(path, &text, e);
	if (s != OK)
		return s;
	s = procfs_maps_parse(buf_view(&text), fn, ctx, e);
	return s == OK ? OK : err_prefix(e, s, "%s", path);
}
