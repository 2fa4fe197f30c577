/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control group is limited by its own limit and by those of all its ancestors. In a container
 * without a cgroup namespace the path is the host's and does not exist, but the root of the mount
 * is the container's group. So each ancestor up to the root is read, and a missing one has no
 * limit.
 *
 * Sources: Linux, Documentation/admin-guide/cgroup-v2.rst (memory.max), cgroup-v1/memory.rst
 * (memory.limit_in_bytes).
 */
#include "os/os.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#define CGROUPS_BYTES_MAX ((size_t)64 << 10)
/* Few arenas, since each keeps memory of its own. */
#define ARENAS_MAX 4
/* Larger pieces have mappings of their own, which grow without a copy. */
#define MAPPED_BYTES_MIN (4 << 20)
/* A sixteenth of the memory, within these bounds, stays free at the end of an arena. A query for a
 * flame graph took twice as long when its memory went back to the system, and came as new pages,
 * each time. */
#define KEPT_BYTES_MIN ((uint64_t)4 << 20)
#define KEPT_BYTES_MAX ((uint64_t)64 << 20)

uint64_t os_host_memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

void os_malloc_for_server(uint64_t memory_bytes)
{
	uint64_t kept = MIN(MAX(memory_bytes / 16, KEPT_BYTES_MIN), KEPT_BYTES_MAX);
	(void)mallopt(M_ARENA_MAX, ARENAS_MAX);
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
	(void)mallopt(M_TRIM_THRESHOLD, (int)kept);
}

static uint64_t limit_in(const char *root, const char *mount, struct str path, const char *file)
{
	char name[PATH_MAX];
	CLEANUP(buf_deinit) struct buf text;
	uint64_t limit;
	buf_init(&text, 256);
	int n = snprintf(name, sizeof(name), "%s%s%.*s/%s", root, mount, STR_ARG(path), file);
	if (n >= (int)sizeof(name) || os_read_file(name, &text, NULL) != OK ||
		!str_parse_u64(str_trim(buf_view(&text)), 10, &limit))
		return UINT64_MAX; /* "max", or missing */
	return limit;
}

static uint64_t limit_of(const char *root, const char *mount, struct str path, const char *file)
{
	uint64_t least = UINT64_MAX;
	while (path.len && path.p[path.len - 1] == '/')
		path.len--;
	for (;;) {
		least = MIN(least, limit_in(root, mount, path, file));
		size_t cut = str_rindex(path, '/');
		if (cut == path.len) /* also without a path */
			return least;
		path = str_sub(path, 0, cut);
	}
}

static bool has_memory(struct str controllers)
{
	struct str name;
	while (str_split(&controllers, ',', &name))
		if (str_eq(name, STR("memory")))
			return true;
	return false;
}

uint64_t os_cgroup_memory_bytes(const char *root)
{
	char path[PATH_MAX];
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, CGROUPS_BYTES_MAX);
	if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= (int)sizeof(path) ||
		os_read_file(path, &text, NULL) != OK)
		return UINT64_MAX;
	uint64_t least = UINT64_MAX;
	struct str rest = buf_view(&text), line;
	while (str_split(&rest, '\n', &line)) { /* "0::/path", "5:memory,cpu:/path" */
		struct str number, controllers;
		if (!str_split(&line, ':', &number) || !str_split(&line, ':', &controllers))
			continue;
		uint64_t limit = UINT64_MAX;
		if (controllers.len == 0)
			limit = limit_of(root, "/sys/fs/cgroup", line, "memory.max");
		else if (has_memory(controllers))
			limit = limit_of(
				root, "/sys/fs/cgroup/memory", line, "memory.limit_in_bytes");
		least = MIN(least, limit);
	}
	return least;
}
