/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All parsers of procfs on the same bytes. Property: every text handed out lies inside the input,
 * and a container id is part of the path.
 */
#include "fuzz/fuzz.h"

#include "procfs/procfs.h"

static const uint8_t *input;
static size_t input_size;

static void inside(struct str s)
{
	FUZZ_CHECK(s.len == 0 || ((const uint8_t *)s.p >= input &&
					 (const uint8_t *)s.p + s.len <= input + input_size));
}

static bool check_map(void *ctx, const struct procfs_map *m)
{
	(void)ctx;
	inside(m->path);
	FUZZ_CHECK(m->start < m->end);
	return true;
}

static bool check_symbol(void *ctx, const struct procfs_kallsym *s)
{
	(void)ctx;
	inside(s->name);
	inside(s->module);
	FUZZ_CHECK(s->name.len > 0);
	return true;
}

static bool check_mount(void *ctx, const struct procfs_mount *m)
{
	(void)ctx;
	inside(m->point);
	inside(m->type);
	FUZZ_CHECK(m->type.len > 0);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_size = size;
	struct str text = str_make(data, size);
	(void)!procfs_maps_parse(text, check_map, NULL, NULL);
	(void)!procfs_mounts_parse(text, check_mount, NULL, NULL);
	(void)!procfs_kallsyms_parse(text, check_symbol, NULL, NULL);
	struct procfs_stat stat;
	if (procfs_stat_parse(text, &stat, NULL) == OK)
		FUZZ_CHECK(memchr(stat.comm, 0, sizeof(stat.comm)));
	int pid;
	uint32_t user = 0;
	(void)!procfs_user_parse(text, &user, NULL);
	if (procfs_inner_pid_parse(text, &pid, NULL) == OK)
		FUZZ_CHECK(pid > 0);
	inside(procfs_container_id(text));
	inside(procfs_systemd_unit(text));
	inside(procfs_systemd_slice(text));
	struct procfs_container found[PROCFS_CONTAINERS_MAX];
	size_t count = procfs_containers(text, found);
	FUZZ_CHECK(count <= PROCFS_CONTAINERS_MAX);
	for (size_t i = 0; i < count; i++) {
		FUZZ_CHECK(found[i].id.len > 0);
		inside(found[i].id);
		inside(found[i].engine);
		inside(found[i].space);
	}
	char uid[PROCFS_POD_UID_MAX];
	FUZZ_CHECK(procfs_pod_uid(text, uid).len <= PROCFS_POD_UID_MAX);
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct str path;
	if (procfs_cgroup_parse(text, &a, &path, NULL) == OK)
		FUZZ_CHECK(path.len > 0 && path.p[0] == '/' && path.p[path.len] == 0);
	return 0;
}
