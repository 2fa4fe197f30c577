/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the owner of the parent group may make a control group: root, or the user to whom systemd or
 * a container engine gave it. So a group's name can be trusted only as far as that owner. Groups
 * below user-UID.slice are taken to be that user's, whatever their owner.
 *
 * If a group is gone already, the nearest ancestor that still exists is used.
 */
#include "container/owner.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

uint32_t container_owner_by_name(struct str path)
{
	struct str component = STR(""), head = STR("user-"), tail = STR(".slice");
	uint64_t user = 0;
	/* In a control group namespace the path may begin with "..". */
	while (!component.len || str_eq(component, STR("..")))
		if (!str_split(&path, '/', &component))
			return 0;
	if (!str_eq(component, STR("user.slice")) || !str_split(&path, '/', &component) ||
		!str_starts(component, head) || !str_ends(component, tail))
		return 0;
	struct str number = str_sub(component, head.len, component.len - head.len - tail.len);
	return str_parse_u64(number, 10, &user) && user < UINT32_MAX ? (uint32_t)user : 0;
}

static bool leads_out(struct str path)
{
	struct str component;
	while (str_split(&path, '/', &component))
		if (str_eq(component, STR("..")))
			return true;
	return false;
}

/* Finds the group in any hierarchy, and its owner. */
static bool owner_of(const char *root, struct str path, uint32_t *out)
{
	static const char *const places[] = { "", "/unified", "/systemd", "/cpu", "/cpu,cpuacct",
		"/memory", "/pids" };
	bool found = false;
	*out = 0;
	for (size_t i = 0; i < ARRAY_COUNT(places) && !*out; i++) {
		char name[PATH_MAX];
		struct stat st;
		int n = snprintf(name, sizeof(name), "%s/sys/fs/cgroup%s%.*s", root, places[i],
			STR_ARG(path));
		if (n <= 0 || n >= (int)sizeof(name) || stat(name, &st) < 0)
			continue;
		found = true;
		*out = st.st_uid;
	}
	return found;
}

uint32_t container_owner(const char *root, struct str group)
{
	uint32_t user = 0;
	if (leads_out(group))
		return 0; /* the group is not visible in this namespace */
	for (;;) {
		size_t slash = str_rindex(group, '/');
		if (slash == 0 || slash == group.len)
			return 0; /* the root group */
		group.len = slash;
		if (owner_of(root, group, &user))
			return user;
	}
}
