/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous executable mappings are a file's text if they fill, without a hole, the space between
 * two mappings of that file which belong there: both lie at the same distance from their place in
 * the file. Code that a runtime makes lies elsewhere.
 */
#include "agent/files/remapped.h"

#include "agent/files/mapped_file.h"

#define KERNEL_MINOR_BITS 20

struct reading {
	struct remapped_process *to;
	/* The last mapping of a file, and how many regions behind it have no end yet. */
	struct file_key key;
	uint64_t bias; /* address - offset */
	uint64_t end;  /* of the mappings that follow it without a hole */
	uint32_t open;
};

static bool is_same(const struct reading *r, const struct procfs_map *m)
{
	uint32_t dev = m->dev_major << KERNEL_MINOR_BITS | m->dev_minor;
	return r->key.inode == m->inode && r->key.dev == dev && r->bias == m->start - m->offset;
}

static bool look(void *ctx, const struct procfs_map *m)
{
	struct reading *r = ctx;
	struct remapped_process *p = r->to;
	bool follows = m->start == r->end;
	if (m->inode == 0) {
		if (!follows || !m->exec || !r->key.inode || p->count == REMAPPED_REGIONS_MAX) {
			p->count -= r->open;
			*r = (struct reading){ .to = p };
			return true;
		}
		p->regions[p->count++] =
			(struct remapped_region){ m->start, m->end, r->key, m->start - r->bias };
		r->open++;
		r->end = m->end;
		return true;
	}
	if (!follows || !is_same(r, m))
		p->count -= r->open;
	*r = (struct reading){ .to = p,
		.key = { m->inode, m->dev_major << KERNEL_MINOR_BITS | m->dev_minor, 0 },
		.bias = m->start - m->offset,
		.end = m->end };
	return true;
}

static void read_process(struct remapped_process *p, int pid, uint64_t start_ns, int64_t now_ns)
{
	struct reading r = { .to = p };
	*p = (struct remapped_process){ .pid = pid, .start_ns = start_ns, .read_ns = now_ns };
	if (mapped_file_each(pid, look, &r, NULL) != OK)
		p->count = 0; /* it has ended */
	else
		p->count -= r.open;
}

/* That of the process, or one to be used for it; NULL: all are of others that were read lately. */
static struct remapped_process *place_of(
	struct remapped *r, int pid, uint64_t start_ns, int64_t now_ns)
{
	uint32_t oldest = 0;
	for (uint32_t n = 0; n < REMAPPED_PROCESSES_MAX; n++) {
		uint32_t i = (r->last + n) % REMAPPED_PROCESSES_MAX;
		struct remapped_process *p = &r->processes[i];
		if (p->read_ns && p->pid == pid && p->start_ns == start_ns) {
			r->last = i;
			return p;
		}
		if (p->read_ns < r->processes[oldest].read_ns)
			oldest = i;
	}
	struct remapped_process *p = &r->processes[oldest];
	if (p->read_ns && now_ns - p->read_ns <= REMAPPED_READ_NS)
		return NULL;
	r->last = oldest;
	p->read_ns = 0;
	return p;
}

const struct remapped_region *remapped_find(
	struct remapped *r, int pid, uint64_t start_ns, uint64_t address, int64_t now_ns)
{
	struct remapped_process *p = place_of(r, pid, start_ns, now_ns);
	if (!p)
		return NULL;
	if (!p->read_ns || now_ns - p->read_ns > REMAPPED_READ_NS)
		read_process(p, pid, start_ns, now_ns);
	for (uint32_t i = 0; i < p->count; i++)
		if (address >= p->regions[i].start && address < p->regions[i].end)
			return &p->regions[i];
	return NULL;
}
