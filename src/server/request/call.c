/* SPDX-License-Identifier: Apache-2.0 */
/* If the store cannot answer a call for lack of memory, the call begins again: the arena and the
 * answer of the first attempt are dropped. */
#include "server/request/call.h"
#include "server/request/query_call.h"
#include "server/request/state.h"
#include "server/request/tenant.h"

#include "base/clock.h"

bool server_client_gone(void *ctx)
{
	const struct net_request *r = (const struct net_request *)ctx;
	return r->gone(r);
}

enum status server_query_begin(
	struct server *s, const struct net_request *r, struct server_query *out, struct err *e)
{
	*out = (struct server_query){
		.s = s, .begun_ns = clock_monotonic_ns(), .engine = s->engine
	};
	metric_add(&s->metrics.queries, 1);
	atomic_fetch_add(&s->metrics.queries_running, 1);
	if (!s->store)
		return OK;
	int64_t until = MIN(out->begun_ns + SERVER_MEMORY_TURN_MAX_NS, r->deadline_ns);
	enum status st = store_query_init(
		&out->query, s->store, until, server_client_gone, (void *)(uintptr_t)r, e);
	out->engine.samples = &out->query.base;
	return st;
}

bool server_query_again(struct server_query *q, enum status status)
{
	return status == E_UNAVAILABLE && q->s->store && store_query_again(&q->query);
}

void server_query_end(struct server_query *q, enum status status)
{
	struct server_metrics *m = &q->s->metrics;
	if (q->s->store)
		store_query_deinit(&q->query);
	atomic_fetch_sub(&m->queries_running, 1);
	if (status != OK)
		metric_add(&m->queries_failed, 1);
	metric_add(&m->query_ns, (uint64_t)(clock_monotonic_ns() - q->begun_ns));
}

enum status server_call_no_memory(struct server_call *c)
{
	return err_set(c->e, arena_status(&c->a), "the query");
}

void server_call_answer(
	void *ctx, const struct net_request *r, struct net_response *out, server_call_fn *fn)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	struct server_query query;
	if (!server_is_ready(s, out))
		return;
	struct server_call c = { .s = s,
		.engine = &query.engine,
		.r = r,
		.out = &out->body,
		.content_type = &out->content_type,
		.e = &e };
	arena_init(&c.a, SERVER_CALL_BYTES_MAX);
	enum status status = server_query_begin(s, r, &query, &e);
	if (status == OK)
		status = server_tenant(s, r, &c.tenant, &e);
	if (status == OK)
		do {
			arena_deinit(&c.a);
			arena_init(&c.a, SERVER_CALL_BYTES_MAX);
			buf_clear(&out->body);
			c.deadline_ns = clock_monotonic_ns() + QUERY_TIME_MAX_NS;
			status = fn(&c);
		} while (server_query_again(&query, status));
	if (status == OK && buf_status(&out->body) != OK)
		status = err_set(&e, buf_status(&out->body), "the answer is larger than %zu MiB",
			out->body.max >> 20);
	server_query_end(&query, status);
	arena_deinit(&c.a);
	if (status != OK)
		net_fail(out, status, &e);
}
