/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of /proc/PID/cgroup are "id:controllers:path"; version 2 is "0::path". On hosts with both,
 * version 2 often says "/" and the container stands in version 1.
 *
 * Containers, by the last component of the path that has one:
 *   <64 hex>                                    docker, containerd and others with cgroupfs
 *   docker-<64 hex>.scope, cri-containerd-….scope, crio-….scope, libpod-….scope, nerdctl-….scope
 *   …slice:cri-containerd:<64 hex>              containerd with the systemd driver in version 1
 *   <32 hex>-<digits>                           Amazon ECS
 *   buildkit/<name>, lxc.payload.<name>, lxc/<name>
 * The helpers of podman and CRI-O (…-conmon-…) are not in the container.
 */
#include "procfs/procfs.h"

#include <stdio.h>

#define CGROUP_BYTES_MAX 65536
#define CONTAINER_ID_HEX 64
#define ECS_ID_HEX 32

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

/* How good a line is: version 2, then the one with cpu, then any; "/" says little in each. */
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

static bool all_of(struct str s, const char *set)
{
	for (size_t i = 0; i < s.len; i++)
		if (!s.p[i] || !strchr(set, s.p[i]))
			return false;
	return s.len > 0;
}

static bool is_container_hex(struct str s)
{
	return s.len == CONTAINER_ID_HEX && all_of(s, "0123456789abcdef");
}

static bool is_ecs_id(struct str s)
{
	return s.len > ECS_ID_HEX + 1 && s.p[ECS_ID_HEX] == '-' &&
	       all_of(str_sub(s, 0, ECS_ID_HEX), "0123456789abcdef") &&
	       all_of(str_sub(s, ECS_ID_HEX + 1, s.len), "0123456789");
}

static bool contains(struct str s, struct str part)
{
	for (size_t i = 0; i + part.len <= s.len; i++)
		if (str_eq(str_sub(s, i, part.len), part))
			return true;
	return false;
}

/* The container that one component of a path names; "" when none. `before` is the one before it. */
static struct str id_of_component(struct str component, struct str before)
{
	struct str name = component;
	if (str_starts(name, STR("lxc.payload.")))
		return str_sub(name, STR("lxc.payload.").len, name.len);
	if (str_eq(before, STR("lxc")) || str_eq(before, STR("buildkit")))
		return name;
	if (str_ends(name, STR(".scope")))
		name.len -= STR(".scope").len;
	if (is_ecs_id(name))
		return name;
	if (name.len < CONTAINER_ID_HEX)
		return STR("");
	struct str tail = str_sub(name, name.len - CONTAINER_ID_HEX, CONTAINER_ID_HEX);
	struct str prefix = str_sub(name, 0, name.len - CONTAINER_ID_HEX);
	bool separated = prefix.len == 0 || strchr("-:", prefix.p[prefix.len - 1]);
	if (!separated || contains(prefix, STR("conmon")) || !is_container_hex(tail))
		return STR("");
	return tail;
}

struct str procfs_container_id(struct str cgroup_path)
{
	struct str found = STR(""), before = STR(""), component;
	while (str_split(&cgroup_path, '/', &component)) {
		struct str id = id_of_component(component, before);
		if (id.len)
			found = id;
		before = component;
	}
	return found;
}

struct str procfs_systemd_unit(struct str cgroup_path)
{
	struct str found = STR(""), component;
	while (str_split(&cgroup_path, '/', &component))
		if (str_ends(component, STR(".service")) && component.len > STR(".service").len)
			found = component;
	return found;
}
