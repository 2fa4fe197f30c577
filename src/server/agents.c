/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who pushed, and how the last push ended: parca.profilestore.v1alpha1.AgentsService. An agent is
 * its label `node` and its address. Parca lists only those that push pprof; here it does not matter
 * how.
 */
#include "base/clock.h"
#include "pb/pb.h"
#include "server/ingest.h"
#include "server/internal.h"

#include <stdlib.h>

#define NODES_MAX 16 /* of one message */
#define NODE_BYTES_MAX 256
#define ADDRESS_BYTES_MAX 64

struct agent_entry {
	char tenant[STORE_TENANT_MAX + 1];
	char node[NODE_BYTES_MAX];
	char address[ADDRESS_BYTES_MAX];
	char error[ERR_TEXT_MAX];
	int64_t last_ns; /* since 1970 */
	int64_t took_ns;
};

void agent_list_init(struct agent_list *l)
{
	*l = (struct agent_list){ 0 };
	pthread_mutex_init(&l->lock, NULL);
}

void agent_list_deinit(struct agent_list *l)
{
	free(l->v);
	l->v = NULL;
	pthread_mutex_destroy(&l->lock);
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

/* The entry of that agent, or a fresh one; NULL: no memory. */
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
	if (l->count == AGENTS_MAX)
		return oldest;
	if (l->count == l->cap && !vec_grow(&l->v, &l->cap, l->count + 1, sizeof(*l->v)))
		return NULL;
	return &l->v[l->count++];
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
	if (to)
		*to = *e;
}

void agent_list_note(struct agent_list *l, struct str tenant, const struct profile *p,
	const char *peer, int64_t begin_ns, int64_t end_ns, const char *error)
{
	uint32_t nodes[NODES_MAX];
	size_t count = find_nodes(p, nodes);
	struct agent_entry e = { .last_ns = begin_ns,
		.took_ns = MAX(end_ns - begin_ns, (int64_t)0) };
	struct str address = str_of(peer);
	copy_text(e.tenant, sizeof(e.tenant), tenant);
	copy_text(e.address, sizeof(e.address), str_sub(address, 0, str_rindex(address, ':')));
	copy_text(e.error, sizeof(e.error), str_of(error));
	pthread_mutex_lock(&l->lock);
	forget(l, begin_ns);
	if (count == 0)
		note(l, &e);
	for (size_t i = 0; i < count; i++) {
		copy_text(e.node, sizeof(e.node), profile_str(p, nodes[i]));
		note(l, &e);
	}
	pthread_mutex_unlock(&l->lock);
}

uint64_t agent_list_count(struct agent_list *l, int64_t now_ns)
{
	pthread_mutex_lock(&l->lock);
	forget(l, now_ns);
	uint64_t n = l->count;
	pthread_mutex_unlock(&l->lock);
	return n;
}

/* Timestamp and Duration have the same two fields. */
static void put_time(struct buf *out, uint32_t field, int64_t ns)
{
	size_t at = pb_begin(out, field);
	pb_put_i64(out, 1, ns / NS_PER_SEC);
	pb_put_i64(out, 2, ns % NS_PER_SEC);
	pb_end(out, at);
}

/* Agent { id = 1; last_error = 2; last_push = 3; last_push_duration = 4 } */
static void put_agent(struct buf *out, const struct agent_entry *a)
{
	size_t at = pb_begin(out, 1);
	pb_put_str(out, 1, str_of(a->node[0] ? a->node : a->address));
	pb_put_str(out, 2, str_of(a->error));
	put_time(out, 3, a->last_ns);
	put_time(out, 4, a->took_ns);
	pb_end(out, at);
}

static int by_name(const void *a, const void *b)
{
	const struct agent_entry *x = a, *y = b;
	int order = strcmp(x->node, y->node);
	return order ? order : strcmp(x->address, y->address);
}

void server_agents(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct agent_list *l = &s->ingest.agents;
	struct str tenant;
	struct err e = { 0 };
	enum status st = server_tenant(s, r, &tenant, &e);
	if (st != OK) {
		net_fail(out, st, &e);
		return;
	}
	pthread_mutex_lock(&l->lock);
	forget(l, clock_realtime_ns());
	if (l->count)
		qsort(l->v, l->count, sizeof(*l->v), by_name);
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(str_of(l->v[i].tenant), tenant))
			put_agent(&out->body, &l->v[i]);
	pthread_mutex_unlock(&l->lock);
}
