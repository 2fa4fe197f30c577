/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of agents: an entry for each combination of tenant, label `node` and address, with its
 * last push. It is short, so it is searched linearly.
 */
#include "base/clock.h"
#include "ingest/ingest.h"

#include <stdlib.h>

#define NODES_MAX 16 /* of one message */

void agent_list_init(struct agent_list *l)
{
	*l = (struct agent_list){ 0 };
	lock_init(&l->lock, LOCK_AGENT_LIST);
}

void agent_list_deinit(struct agent_list *l)
{
	free(l->v);
	l->v = NULL;
	lock_destroy(&l->lock);
}

static void copy_text(char *out, size_t size, struct str s)
{
	size_t n = MIN(s.len, size - 1);
	memcpy(out, s.p ? s.p : "", n);
	out[n] = 0;
}

static void forget(struct agent_list *l, int64_t now_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->v[i].last_ns > now_ns - AGENT_FORGOTTEN_NS)
			l->v[kept++] = l->v[i];
	l->count = kept;
}

/* The agent's entry, or a new one of zeros; NULL: no memory. */
static struct agent_entry *entry_of(struct agent_list *l, const struct agent_entry *e)
{
	struct agent_entry *oldest = l->v;
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->v[i].node, e->node) == 0 &&
			strcmp(l->v[i].address, e->address) == 0 &&
			strcmp(l->v[i].tenant, e->tenant) == 0)
			return &l->v[i];
		if (l->v[i].last_ns < oldest->last_ns)
			oldest = &l->v[i];
	}
	if (l->count < AGENTS_MAX) {
		if (l->count == l->cap && !vec_grow(&l->v, &l->cap, l->count + 1, sizeof(*l->v)))
			return NULL;
		oldest = &l->v[l->count++];
	}
	*oldest = (struct agent_entry){ 0 };
	return oldest;
}

/* Distinct values of the label node, as string ids. */
static size_t find_nodes(const struct profile *p, uint32_t nodes[NODES_MAX])
{
	uint32_t name = strtab_find(&p->strings, STR("node"));
	size_t count = 0;
	for (size_t i = 0; name != MAP_NONE && i < p->labels.len; i++) {
		bool seen = p->labels.v[i].name != name;
		for (size_t j = 0; j < count; j++)
			seen |= nodes[j] == p->labels.v[i].value;
		if (!seen && count < NODES_MAX)
			nodes[count++] = p->labels.v[i].value;
	}
	return count;
}

static void note(struct agent_list *l, const struct agent_entry *e)
{
	struct agent_entry *to = entry_of(l, e);
	if (!to)
		return;
	struct agent_entry before = *to;
	*to = *e;
	to->refused += before.refused;
	if (!e->error[0]) {
		memcpy(to->failure, before.failure, sizeof(to->failure));
		to->failure_ns = before.failure_ns;
	}
}

void agent_list_note(struct agent_list *l, const struct profile *p, const struct agent_push *push)
{
	uint32_t nodes[NODES_MAX];
	size_t count = find_nodes(p, nodes);
	struct agent_entry e = { .last_ns = push->begin_ns,
		.took_ns = MAX(push->end_ns - push->begin_ns, (int64_t)0),
		.refused = push->refused,
		.failure_ns = push->error[0] ? push->begin_ns : 0 };
	struct str address = str_of(push->peer), agent = push->user_agent;
	size_t word = 0; /* the page gets only ASCII, whatever a sender writes */
	while (word < agent.len && agent.p[word] > ' ' && agent.p[word] < 0x7F)
		word++;
	copy_text(e.tenant, sizeof(e.tenant), push->tenant);
	copy_text(e.address, sizeof(e.address), str_sub(address, 0, str_rindex(address, ':')));
	copy_text(e.version, sizeof(e.version), str_sub(agent, 0, word));
	copy_text(e.error, sizeof(e.error), str_of(push->error));
	copy_text(e.failure, sizeof(e.failure), str_of(push->error));
	lock_take(&l->lock);
	forget(l, push->begin_ns);
	if (count == 0)
		note(l, &e);
	for (size_t i = 0; i < count; i++) {
		copy_text(e.node, sizeof(e.node), profile_str(p, nodes[i]));
		note(l, &e);
	}
	lock_release(&l->lock);
}

uint64_t agent_list_count(struct agent_list *l, int64_t now_ns)
{
	lock_take(&l->lock);
	forget(l, now_ns);
	uint64_t n = l->count;
	lock_release(&l->lock);
	return n;
}

static int by_name(const void *a, const void *b)
{
	const struct agent_entry *x = a, *y = b;
	int order = strcmp(x->node, y->node);
	return order ? order : strcmp(x->address, y->address);
}

void agent_list_each(
	struct agent_list *l, struct str tenant, int64_t now_ns, agent_fn *fn, void *ctx)
{
	lock_take(&l->lock);
	forget(l, now_ns);
	if (l->count)
		qsort(l->v, l->count, sizeof(*l->v), by_name);
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(str_of(l->v[i].tenant), tenant))
			fn(ctx, &l->v[i]);
	lock_release(&l->lock);
}
