/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/admin/…: requests that change or send the store as a whole: deleting, exporting, importing.
 *
 * Off unless a flag allows it. A browser says from which page a request comes (Origin), a tool does
 * not. Requests from pages are refused, so that no page that a user visits can reach a server on
 * the user's own machine.
 */
#include "server/admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "selector/selector.h"
#include "server/request/request.h"

#define ARENA_BYTES_MAX ((size_t)1 << 20)
/* An export fits into one request, so that it can be imported. */
#define EXPORT_BYTES_MAX ((size_t)32 << 20)
static_assert(EXPORT_BYTES_MAX < NET_BODY_MAX, "an export must fit a request");

struct picked {
	struct arena arena;
	struct str tenant;
	struct selector selector;
	struct samples_query query;
};

static void picked_deinit(struct picked *p)
{
	selector_deinit(&p->selector);
	arena_deinit(&p->arena);
}

static enum status take_time(
	const struct net_request *r, struct arena *a, const char *key, int64_t *out, struct err *e)
{
	struct str text;
	if (!net_query_param(r, key, 0, a, &text) || text.len == 0)
		return OK;
	unsigned flags = str_ends(str_of(key), STR("to")) ? QUERY_TIME_END : 0;
	enum status s = query_parse_time(text, clock_realtime_ns(), flags, out, e);
	return s == OK ? OK : err_prefix(e, s, "%s", key);
}

/* A caller that is bound to a tenant can delete and export this tenant's samples only. */
static enum status take_tenant(const struct net_request *r, struct picked *p, struct err *e)
{
	bool named = net_query_param(r, "tenant", 0, &p->arena, &p->tenant);
	struct str own = str_of(r->caller.tenant);
	if (!r->caller.has_tenant)
		return OK;
	if (named && !str_eq(p->tenant, own))
		return err_set(e, E_DENIED, "tenant: %s is of another tenant", r->caller.name);
	p->tenant = own;
	return OK;
}

/* Reads the selector, which is required, and the times; without times it is all of time. */
static enum status take_question(const struct net_request *r, struct picked *p, struct err *e)
{
	struct str text;
	enum status s = take_tenant(r, p, e);
	if (s != OK)
		return s;
	if (!net_query_param(r, "query", 0, &p->arena, &text) || text.len == 0)
		return err_set(e, E_INVALID, "query: a selector is needed; {} is everything");
	s = selector_parse(text, &p->arena, &p->selector, e);
	if (s != OK)
		return err_prefix(e, s, "query");
	p->query = (struct samples_query){ .selector = &p->selector,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.cancel = server_client_gone,
		.cancel_ctx = (void *)(uintptr_t)r };
	s = take_time(r, &p->arena, "from", &p->query.from_ns, e);
	return s == OK ? take_time(r, &p->arena, "to", &p->query.to_ns, e) : s;
}

/* False: refused, and `out` says why. Only one request at a time: each may take long, and workers
 * are few. */
static bool allowed(struct server *s, const struct net_request *r, struct net_response *out)
{
	struct err e = { 0 };
	if (!s->config->admin_api)
		err_set(&e, E_DENIED,
			"the admin API is off; start the server with --enable-admin-api to allow "
			"it");
	else if (net_header_find(r, "origin").len)
		err_set(&e, E_DENIED, "the admin API is not for pages in a browser");
	else if (!server_is_ready(s, out))
		return false;
	else if (atomic_exchange(&s->admin_busy, true))
		err_set(&e, E_UNAVAILABLE, "another request of the admin API is under way");
	else
		return true;
	net_fail(out, e.status, &e);
	return false;
}

typedef enum status admin_fn(
	struct server *s, const struct net_request *r, struct net_response *out, struct err *e);

static void answer(
	struct server *s, const struct net_request *r, struct net_response *out, admin_fn *fn)
{
	struct err e = { 0 };
	if (!allowed(s, r, out))
		return;
	enum status st = fn(s, r, out, &e);
	atomic_store(&s->admin_busy, false);
	if (st == OK)
		return;
	buf_clear(&out->body);
	net_fail(out, st, &e);
}

static enum status delete_now(
	struct server *s, const struct net_request *r, struct net_response *out, struct err *e)
{
	struct store_deleted done;
	CLEANUP(picked_deinit) struct picked p = { 0 };
	arena_init(&p.arena, ARENA_BYTES_MAX);
	enum status st = take_question(r, &p, e);
	if (st == OK)
		st = store_delete(s->store, p.tenant, &p.query, &done, e);
	if (st != OK)
		return st;
	log_info("samples deleted", "rows=%llu samples=%llu parts=%llu damaged=%llu",
		(unsigned long long)done.rows, (unsigned long long)done.samples,
		(unsigned long long)done.parts, (unsigned long long)done.damaged);
	buf_printf(&out->body, "{\"rows\":%llu,\"samples\":%llu,\"parts\":%llu,\"damaged\":%llu}",
		(unsigned long long)done.rows, (unsigned long long)done.samples,
		(unsigned long long)done.parts, (unsigned long long)done.damaged);
	out->content_type = "application/json";
	return OK;
}

static enum status export_now(
	struct server *s, const struct net_request *r, struct net_response *out, struct err *e)
{
	struct store_view *view = NULL;
	CLEANUP(picked_deinit) struct picked p = { 0 };
	CLEANUP(buf_deinit) struct buf bytes;
	arena_init(&p.arena, ARENA_BYTES_MAX);
	buf_init(&bytes, EXPORT_BYTES_MAX);
	enum status st = take_question(r, &p, e);
	if (st == OK)
		st = store_view_open(s->store, p.tenant, &view, e);
	if (st == OK)
		st = store_export(view, &p.query, &bytes, e);
	store_view_close(view);
	if (st != OK)
		return st;
	buf_str(&out->body, buf_view(&bytes));
	out->content_type = "application/octet-stream";
	out->no_compress = true;
	return OK;
}

static enum status import_now(
	struct server *s, const struct net_request *r, struct net_response *out, struct err *e)
{
	struct store_imported done;
	struct str text;
	if (r->caller.has_tenant)
		return err_set(e, E_DENIED, "an export names its tenants itself: %s is of one",
			r->caller.name);
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, ARENA_BYTES_MAX);
	struct store_import_wish wish = { false, INT64_MIN, INT64_MAX };
	wish.again = net_query_param(r, "again", 0, &a, &text) && str_eq(text, STR("1"));
	enum status st = take_time(r, &a, "from", &wish.from_ns, e);
	if (st == OK)
		st = take_time(r, &a, "to", &wish.to_ns, e);
	if (st == OK)
		st = store_import(s->store, r->body, &wish, &done, e);
	if (st == E_CORRUPT) /* the sender's bytes, not ours */
		e->status = st = E_INVALID;
	if (st != OK)
		return st;
	log_info("samples imported", "rows=%llu samples=%llu known=%s",
		(unsigned long long)done.rows, (unsigned long long)done.samples,
		done.known ? "yes" : "no");
	buf_printf(&out->body, "{\"rows\":%llu,\"samples\":%llu,\"known\":%s}",
		(unsigned long long)done.rows, (unsigned long long)done.samples,
		done.known ? "true" : "false");
	out->content_type = "application/json";
	return OK;
}

void server_handle_delete(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer((struct server *)ctx, r, out, delete_now);
}

void server_handle_export(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer((struct server *)ctx, r, out, export_now);
}

void server_handle_import(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer((struct server *)ctx, r, out, import_now);
}
