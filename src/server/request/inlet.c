/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocols that bring samples. Each has an inlet, which is made with the routes, and which is the
 * only part of the server that its handlers know.
 */
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "server/request/tenant.h"

enum status server_inlet_of(
	struct server *s, const struct server_protocol *p, struct server_inlet **out, struct err *e)
{
	struct server_inlet *in = s->inlets;
	while (in < s->inlets + s->inlet_count && in->protocol != p)
		in++;
	*out = in;
	if (in < s->inlets + s->inlet_count)
		return OK;
	struct server_inlet made = { .protocol = p,
		.tenant_header = s->config ? s->config->tenant_header : NULL };
	enum status st = ingest_inlet(&s->ingest, &p->ingest, &made.in, e);
	if (st == OK && p->open && p->open(&made.state) != OK)
		st = err_set(e, E_NOMEM, "%s", p->ingest.name);
	if (st != OK)
		return st;
	*in = made;
	s->inlet_count++;
	return OK;
}

void server_inlets_close(struct server *s)
{
	for (size_t i = 0; i < s->inlet_count; i++)
		if (s->inlets[i].protocol->close)
			s->inlets[i].protocol->close(s->inlets[i].state);
	s->inlet_count = 0;
}

enum status server_batch_begin(struct ingest_batch *b, const struct server_inlet *in,
	const struct net_request *r, size_t message_bytes, struct err *e)
{
	struct str tenant;
	b->user_agent = net_header_find(r, "user-agent");
	enum status s = server_tenant_by(in->tenant_header, r, &tenant, e);
	return s == OK ? ingest_batch_begin(b, tenant, message_bytes, e) : s;
}
