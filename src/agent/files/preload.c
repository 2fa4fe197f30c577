/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/preload.h"

#include "agent/files/mapped_file.h"
#include "base/map.h"
#include "base/vec.h"
#include "procfs/procfs.h"

#include <stdlib.h>

#define KERNEL_MINOR_BITS 20
/* As in agent/bpf/profiler.bpf.c. */
#define ANCESTORS_MAX 64

struct collecting {
	VEC(struct preload_file) files;
	struct map by_key;
	int only_pid;
	int pid;
	bool (*go_on)(void *ctx);
	void *ctx;
};

static bool candidate_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct collecting *p = ctx;
	const struct file_key *a = &p->files.v[value].notice.key;
	const struct file_key *b = key;
	return a->inode == b->inode && a->dev == b->dev;
}

static bool count_mapping(void *ctx, const struct procfs_map *m)
{
	struct collecting *p = ctx;
	if (!m->exec || m->inode == 0)
		return true;
	struct file_key key = { m->inode, m->dev_major << KERNEL_MINOR_BITS | m->dev_minor, 0 };
	uint32_t i = map_find(
		&p->by_key, hash_u64(key.inode ^ hash_u64(key.dev)), candidate_equal, p, &key);
	if (i != MAP_NONE) {
		struct preload_file *c = &p->files.v[i];
		c->processes += c->pid != p->pid;
		c->pid = p->pid; /* the youngest lives longest, more often than not */
		c->notice.vma_start = m->start;
		c->notice.vma_end = m->end;
		return true;
	}
	struct preload_file c = { { key, m->start, m->end, m->offset }, p->pid, 1 };
	if (p->files.len >= PRELOAD_MAX || !VEC_PUSH(&p->files, c))
		return false;
	return map_insert(
		&p->by_key, hash_u64(key.inode ^ hash_u64(key.dev)), (uint32_t)p->files.len - 1);
}

static bool is_below(int pid, int ancestor)
{
	struct procfs_stat stat = { .ppid = pid };
	for (int i = 0; i < ANCESTORS_MAX && stat.ppid > 1; i++) {
		if (stat.ppid == ancestor)
			return true;
		if (procfs_stat(stat.ppid, &stat, NULL) != OK)
			return false;
	}
	return false;
}

static bool count_process(void *ctx, int pid)
{
	struct collecting *p = ctx;
	if (p->only_pid && !is_below(pid, p->only_pid))
		return true;
	p->pid = pid;
	(void)!mapped_file_each(pid, count_mapping, p, NULL); /* it may be gone by now */
	return p->files.len < PRELOAD_MAX && p->go_on(p->ctx);
}

static int most_used_first(const void *a, const void *b)
{
	const struct preload_file *x = a;
	const struct preload_file *y = b;
	if (x->processes != y->processes)
		return x->processes > y->processes ? -1 : 1;
	return x->notice.key.inode < y->notice.key.inode ? -1 : 1;
}

enum status preload_collect(int only_pid, bool (*go_on)(void *ctx), void *ctx,
	struct preload_file **out, size_t *out_count, struct err *e)
{
	struct collecting p = { .only_pid = only_pid, .go_on = go_on, .ctx = ctx };
	enum status s = procfs_pids(count_process, &p, e);
	if (s == OK && p.files.len)
		qsort(p.files.v, p.files.len, sizeof(p.files.v[0]), most_used_first);
	map_deinit(&p.by_key);
	if (s != OK) {
		VEC_FREE(&p.files);
		return s;
	}
	*out = p.files.v;
	*out_count = p.files.len;
	return OK;
}
