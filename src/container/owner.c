/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the owner of the group above may make a control group: root, or the user to whom systemd or
 * a container engine gave it. So the name of a group proves no more than what that owner may claim.
 * Groups below user-UID.slice count as that user's, whatever their owner.
 *
 * If a group is gone already, the nearest group above it that still exists counts.
 */
#include "container/owner.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

uint32_t container_owner_by_name(struct str path)
{
	struct str component = STR(""), head = STR("user-"), tail = STR(".slice");
	uint64_t user = 0;
	/* In a control group namespace ".." come before. */
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

/* Finds such a group in any hierarchy, and its owner. */
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
		return 0; /* not to be seen from in here */
	for (;;) {
		size_t slash = str_rindex(group, '/');
		if (slash == 0 || slash == group.len)
			return 0; /* the root's own */
		group.len = slash;
		if (owner_of(root, group, &user))
			return user;
	}
}
