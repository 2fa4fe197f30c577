/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of /proc/PID/cgroup are "id:controllers:path"; version 2 is "0::path". On hosts with both,
 * the path in version 2 is often "/", and the container is in version 1.
 */
#include "procfs/procfs.h"

#include <stdio.h>

#define CGROUP_BYTES_MAX 65536

static bool has_controller(struct str controllers, struct str wanted)
{
	struct str name;
	while (str_split(&controllers, ',', &name))
		if (str_eq(name, wanted))
			return true;
	return false;
}

struct choice {
	struct str path;
	int rank; /* less is better */
};

/* How good a line is: version 2 first, then the one with cpu, then any; lines with "/" come after
 * all others. */
static int rank_of(struct str controllers, struct str path)
{
	int rank = controllers.len == 0 ? 0 : has_controller(controllers, STR("cpu")) ? 1 : 2;
	return path.len <= 1 ? rank + 3 : rank;
}

enum status procfs_cgroup_parse(struct str text, struct arena *a, struct str *out, struct err *e)
{
	struct choice best = { .rank = 100 };
	struct str line;
	for (uint32_t number = 1; str_split(&text, '\n', &line); number++) {
		size_t first = str_index(line, ':');
		struct str rest = str_sub(line, first + 1, line.len);
		size_t second = str_index(rest, ':');
		struct str path = str_sub(rest, second + 1, rest.len);
		if (first == line.len || second == rest.len || path.len == 0 || path.p[0] != '/')
			return err_set(e, E_INVALID, "cgroup: line %u is not id:controllers:/path",
				number);
		int rank = rank_of(str_sub(rest, 0, second), path);
		if (rank < best.rank)
			best = (struct choice){ path, rank };
	}
	if (best.rank == 100)
		return err_set(e, E_NOTFOUND, "cgroup: no line");
	char *copy = arena_copy(a, best.path.p, best.path.len);
	if (!copy)
		return err_set(e, arena_status(a), "cgroup");
	*out = str_make(copy, best.path.len);
	return OK;
}

enum status procfs_cgroup(int pid, struct arena *a, struct str *out, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, CGROUP_BYTES_MAX);
	enum status s = os_read_file(path, &text, e);
	if (s != OK)
		return s;
	s = procfs_cgroup_parse(buf_view(&text), a, out, e);
	return s == OK ? OK : err_prefix(e, s, "%s", path);
}
