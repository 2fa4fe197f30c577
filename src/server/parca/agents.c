/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agents that pushed, and how their last push ended:
 * parca.profilestore.v1alpha1.AgentsService. An agent is its label `node` and its address. Parca
 * lists only agents that push pprof; here any protocol counts.
 */
#include "base/clock.h"
#include "pb/pb.h"
#include "server/parca/parca.h"
#include "server/request/request.h"

/* Timestamp and Duration have the same two fields. */
static void put_time(struct buf *out, uint32_t field, int64_t ns)
{
	size_t at = pb_begin(out, field);
	pb_put_i64(out, 1, ns / NS_PER_SEC);
	pb_put_i64(out, 2, ns % NS_PER_SEC);
	pb_end(out, at);
}

/* Agent { id = 1; last_error = 2; last_push = 3; last_push_duration = 4 }, and firn's own: version
 * = 1000; refused_samples = 1001; last_failure = 1002; last_failure_time = 1003 */
static void put_agent(void *ctx, const struct agent_entry *a)
{
	struct buf *out = ctx;
	size_t at = pb_begin(out, 1);
	pb_put_str(out, 1, str_of(a->node[0] ? a->node : a->address));
	pb_put_str(out, 2, str_of(a->error));
	put_time(out, 3, a->last_ns);
	put_time(out, 4, a->took_ns);
	pb_put_str(out, 1000, str_of(a->version));
	pb_put_u64(out, 1001, a->refused);
	pb_put_str(out, 1002, str_of(a->failure));
	if (a->failure[0])
		put_time(out, 1003, a->failure_ns);
	pb_end(out, at);
}

void server_agents(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct str tenant;
	struct err e = { 0 };
	enum status st = server_tenant(s, r, &tenant, &e);
	if (st != OK) {
		net_fail(out, st, &e);
		return;
	}
	agent_list_each(&s->ingest.agents, tenant, clock_realtime_ns(), put_agent, &out->body);
}
