/* SPDX-License-Identifier: Apache-2.0 */
/* A server of recorded answers in this process, and what a discovery makes of them as text. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/net.h"
#include "scrape/discover/discover.h"
#include "test.h"

struct answer {
	const char *path;          /* exactly */
	const char *query;         /* a part of the query; NULL: any */
	const char *authorization; /* NULL: any */
	int code;                  /* 0: 200 */
	const char *body;
};

struct answers {
	const struct answer *v;
	size_t count;
	atomic_int asked;
	struct net_server *server;
	char url[100]; /* "http://127.0.0.1:1234" */
};

static inline void answers_serve(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct answers *x = ctx;
	char query[4096];
	snprintf(query, sizeof(query), "%.*s", STR_ARG(r->query));
	atomic_fetch_add(&x->asked, 1);
	out->content_type = "application/json";
	for (size_t i = 0; i < x->count; i++) {
		const struct answer *a = &x->v[i];
		if (!str_eq(r->path, str_of(a->path)) || (a->query && !strstr(query, a->query)))
			continue;
		if (a->authorization &&
			!str_eq(net_header_find(r, "authorization"), str_of(a->authorization)))
			continue;
		out->http_status = a->code ? a->code : 200;
		buf_cstr(&out->body, a->body);
		return;
	}
	out->http_status = 404;
	buf_cstr(&out->body, "nothing here");
}

static inline void answers_start(struct answers *x, const struct answer *v, size_t count)
{
	const struct net_route routes[] = {
		{ .method = "GET", .path = "/*", .fn = answers_serve, .ctx = x },
		{ .method = "POST", .path = "/*", .fn = answers_serve, .ctx = x },
	};
	struct net_server_config c;
	struct err e = { 0 };
	*x = (struct answers){ .v = v, .count = count };
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &x->server, &e), &e);
	snprintf(x->url, sizeof(x->url), "http://%s", net_server_address(x->server));
}

static inline void answers_stop(struct answers *x)
{
	net_server_stop(x->server);
}

/* ---- what was found ---- */

static inline int answers_by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct discover_label *)a)->name, ((const struct discover_label *)b)->name);
}

/* "ADDRESS name=value name=value\n", sorted by name, without `prefix`. */
static inline void answers_dump(const struct discover_found *f, const char *prefix, struct buf *out)
{
	buf_clear(out);
	for (size_t i = 0; i < f->targets.len; i++) {
		const struct discover_target *t = &f->targets.v[i];
		struct discover_label v[2 * DISCOVER_LABELS_MAX];
		uint32_t n = 0;
		for (uint32_t k = 0; k < t->own.count; k++)
			v[n++] = t->own.v[k];
		for (uint32_t k = 0; t->shared && k < t->shared->count; k++) {
			bool there = false;
			for (uint32_t m = 0; m < t->own.count; m++)
				there |= strcmp(t->own.v[m].name, t->shared->v[k].name) == 0;
			if (!there)
				v[n++] = t->shared->v[k];
		}
		qsort(v, n, sizeof(*v), answers_by_name);
		buf_cstr(out, t->address);
		for (uint32_t k = 0; k < n; k++) {
			bool known = str_starts(str_of(v[k].name), str_of(prefix));
			buf_printf(out, " %s=%s", v[k].name + (known ? strlen(prefix) : 0),
				v[k].value);
		}
		buf_u8(out, '\n');
	}
	buf_u8(out, 0);
	CHECK(buf_status(out) == OK);
}

static inline enum status answers_read(
	const char *key, const char *yaml, struct arena *a, struct discover **out, struct err *e)
{
	const struct conf_node *root = NULL;
	arena_init(a, CONF_ARENA_BYTES);
	CHECK_OK(conf_parse(str_of(yaml), a, &root, e), e);
	for (size_t i = 0; discover_kinds[i]; i++)
		if (strcmp(discover_kinds[i]->key, key) == 0)
			return discover_read(discover_kinds[i], root, out, e);
	fail_msg("no discovery is named %s", key);
	return E_NOTFOUND;
}

/* Reads the settings, asks once, dumps. */
static inline enum status answers_find(
	const char *key, const char *prefix, const char *yaml, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(discover_found_deinit) struct discover_found f;
	const struct discover_run run = { .wake_fd = -1 };
	struct discover *d = NULL;
	CHECK_OK(answers_read(key, yaml, &a, &d, e), e);
	discover_found_init(&f);
	enum status s = discover_find(d, &run, &f, e);
	answers_dump(&f, prefix, out);
	discover_free(d);
	return s;
}
