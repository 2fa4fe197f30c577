/* SPDX-License-Identifier: Apache-2.0 */
/* ShareProfile, and POST /api/snapshots: the profile is kept on this server (kept.h), and served at
 * /shared/ID; nothing is sent to another host. */
#include "server/parca/parca.h"
#include "server/parca/parca_report.h"
#include "server/parca/snapshot.h"
#include "server/request/request.h"

#include "parca/parca.h"
#include "pb/pb.h"

#include <stdio.h>
#include <string.h>

/* The link has the server's address as the client used it. */
static void put_link(struct buf *out, struct server *s, const struct net_request *r, const char *id)
{
	struct str host = net_header_find(r, "host");
	const char *prefix = s->config->path_prefix ? s->config->path_prefix : "";
	bool tls = s->config->tls_cert_file ||
		   str_eq(net_header_find(r, "x-forwarded-proto"), STR("https"));
	if (host.len == 0)
		host = net_header_find(r, ":authority");
	if (host.len == 0 || host.len > 255)
		host = str_of(net_server_address(s->net));
	CLEANUP(buf_deinit) struct buf link;
	buf_init(&link, 1024);
	buf_printf(
		&link, "%s://%.*s%s/shared/%s", tls ? "https" : "http", STR_ARG(host), prefix, id);
	pb_put_str(out, 1, buf_view(&link)); /* ShareProfileResponse { link = 1 } */
}

static enum status share(struct server *s, const struct query_engine *engine,
	const struct net_request *r, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf profile;
	struct parca_share_request q;
	struct query_report info;
	struct str tenant;
	struct kept kept;
	arena_init(&a, 16 << 20);
	buf_init(&profile, KEPT_FILE_MAX);
	enum status st = server_tenant(s, r, &tenant, e);
	if (st == OK)
		st = parca_share_decode(r->body, &a, &q, e);
	if (st == OK)
		st = server_parca_report(s, engine, r, &q.query, &a, &profile, &info, e);
	if (st == OK)
		st = kept_put(s, tenant, KEPT_PROFILE, STR(""), buf_view(&profile), 0, &kept, e);
	if (st == OK)
		put_link(out, s, r, kept.id);
	return st;
}

void server_parca_share(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	struct server_query query;
	if (!server_is_ready(s, out))
		return;
	enum status st = server_query_begin(s, r, &query, &e);
	if (st == OK)
		do
			st = share(s, &query.engine, r, &out->body, &e);
		while (server_query_again(&query, st));
	server_query_end(&query, st);
	if (st != OK)
		net_fail(out, st, &e);
}

enum status server_snapshot(struct server *s, struct str tenant, struct str profile, int64_t end_ns,
	struct buf *out, struct err *e)
{
	struct kept kept;
	enum status st = kept_put(s, tenant, KEPT_PROFILE, STR(""), profile, end_ns, &kept, e);
	if (st == OK)
		buf_printf(out, "{\"id\":\"%s\",\"path\":\"/shared/%s\",\"expires\":%lld}", kept.id,
			kept.id, (long long)(end_ns / NS_PER_MS));
	return st;
}

/* GET /shared/ID: gzipped profile.proto. */
void server_handle_shared(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct str id = str_sub(r->path, strlen("/shared/"), r->path.len);
	struct str tenant;
	struct err e = { 0 };
	int64_t time_ns;
	enum status st = server_tenant(s, r, &tenant, &e);
	if (st == OK)
		st = kept_get(s, tenant, KEPT_PROFILE, id, &out->body, &time_ns, &e);
	if (st != OK) {
		net_fail(out, st, &e);
		return;
	}
	out->content_type = "application/octet-stream";
	out->no_compress = true;
	snprintf(out->headers, sizeof(out->headers),
		"content-disposition: attachment; filename=\"%.*s.pb.gz\"\r\n", STR_ARG(id));
}
