/* SPDX-License-Identifier: Apache-2.0 */
/* How: the common part of the modules: labels are collected in a draft of fixed size, and copied to
 * the arena of found targets when a target is complete. */
#include "scrape/discover/discover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define REFRESH_MIN_NS NS_PER_SEC
#define SHOWN_BYTES 120

/* ---- a discovery ---- */

enum status discover_read(const struct discover_kind *kind, const struct conf_node *n,
	struct discover **out, struct err *e)
{
	struct discover *d = calloc(1, kind->size);
	if (!d)
		return err_set(e, E_NOMEM, "%s", kind->key);
	d->kind = kind;
	d->refresh_ns = kind->refresh_ns;
	d->client.follow = true;
	if (kind->begin)
		kind->begin(d);
	enum status s = conf_read_map(n, kind->fields, d, e);
	if (s == OK && d->refresh_ns < REFRESH_MIN_NS)
		s = conf_wrong(e, n, "refresh_interval must be 1s or more");
	if (s == OK)
		s = client_check(&d->client, n, e);
	if (s == OK && kind->check)
		s = kind->check(d, n, e);
	if (s != OK) {
		discover_free(d);
		return s;
	}
	*out = d;
	return OK;
}

void discover_free(struct discover *d)
{
	if (!d)
		return;
	client_deinit(&d->client);
	free(d);
}

enum status discover_find(struct discover *d, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	return d->kind->find(d, run, out, e);
}

/* ---- what was found ---- */

void discover_found_init(struct discover_found *f)
{
	*f = (struct discover_found){ 0 };
	arena_init(&f->arena, DISCOVER_FOUND_BYTES);
}

void discover_found_deinit(struct discover_found *f)
{
	VEC_FREE(&f->targets);
	arena_deinit(&f->arena);
}

void discover_draft_begin(struct discover_draft *d, struct discover_found *f)
{
	d->arena = &f->arena;
	d->count = 0;
	d->no_memory = false;
}

static void put(struct discover_draft *d, const char *name, struct str value)
{
	uint32_t i = 0;
	while (i < d->count && strcmp(d->v[i].name, name) != 0)
		i++;
	if (i == ARRAY_COUNT(d->v))
		return;
	const char *copy = arena_copy(d->arena, value.p, value.len);
	d->no_memory |= !copy;
	if (!copy)
		return;
	d->v[i] = (struct discover_label){ name, copy };
	d->count = MAX(d->count, i + 1);
}

void discover_put(struct discover_draft *d, const char *name, struct str value)
{
	if (value.len)
		put(d, name, value);
}

void discover_put_key(
	struct discover_draft *d, const char *prefix, struct str key, struct str value)
{
	size_t before = strlen(prefix);
	char *name = arena_alloc(d->arena, before + key.len + 1, 1);
	if (!name) {
		d->no_memory = true;
		return;
	}
	memcpy(name, prefix, before);
	for (size_t i = 0; i < key.len; i++) {
		char c = key.p[i];
		bool plain =
			(c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		name[before + i] = plain ? c : '_';
	}
	name[before + key.len] = 0;
	discover_put(d, name, value);
}

void discover_put_map(struct discover_draft *d, const char *prefix, const struct conf_node *map)
{
	for (uint32_t i = 0; map && map->kind == CONF_MAP && i < map->count; i++)
		discover_put_key(d, prefix, map->v[i].key, map->v[i].value->text);
}

void discover_put_number(struct discover_draft *d, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	discover_put(d, name, str_of(text));
}

static enum status no_room(struct discover_found *f, struct err *e)
{
	enum status s = arena_status(&f->arena);
	return err_set(e, s, s == E_LIMIT ? "targets with more labels than fit" : "targets");
}

static const struct discover_label *copy(struct discover_draft *d, struct discover_found *f)
{
	struct discover_label *v = ARENA_ARRAY(&f->arena, struct discover_label, d->count + 1u);
	if (v && d->count)
		memcpy(v, d->v, d->count * sizeof(*v));
	return d->no_memory ? NULL : v;
}

const struct discover_labels *discover_keep(struct discover_draft *d, struct discover_found *f)
{
	struct discover_labels *l = ARENA_NEW(&f->arena, struct discover_labels);
	const struct discover_label *v = copy(d, f);
	if (!l || !v)
		return NULL;
	*l = (struct discover_labels){ v, d->count };
	return l;
}

enum status discover_add(struct discover_found *f, struct str address,
	const struct discover_labels *shared, struct discover_draft *d, struct err *e)
{
	if (f->targets.len == DISCOVER_TARGETS_MAX)
		return err_set(e, E_LIMIT, "more than %u targets", DISCOVER_TARGETS_MAX);
	struct discover_target t = { .shared = shared };
	t.address = arena_copy(&f->arena, address.p ? address.p : "", address.len);
	t.own.v = copy(d, f);
	t.own.count = d->count;
	if (!t.address || !t.own.v)
		return no_room(f, e);
	return VEC_PUSH(&f->targets, t) ? OK : err_set(e, E_NOMEM, "targets");
}

const char *discover_join(struct arena *a, struct str host, struct str port)
{
	bool v6 = str_index(host, ':') < host.len;
	return arena_printf(
		a, "%s%.*s%s:%.*s", v6 ? "[" : "", STR_ARG(host), v6 ? "]" : "", STR_ARG(port));
}

/* ---- requests ---- */

struct str discover_shown(const char *address)
{
	struct str whole = str_of(address);
	struct str s = str_sub(whole, 0, strcspn(address, "?#"));
	size_t at = str_rindex(s, '@');
	if (at < s.len)
		return str_sub(s, at + 1, s.len);
	if (s.len == whole.len || str_index(whole, '@') == whole.len)
		return s;
	/* The '@' may be in a query, or a '?' in a password: only the text up to the first ':' is
	 * shown, which is the host or the user. */
	const char *scheme = strstr(address, "://");
	size_t from = scheme ? (size_t)(scheme - address) + 3 : 0;
	struct str rest = str_sub(s, MIN(from, s.len), s.len);
	return str_sub(rest, 0, str_index(rest, ':'));
}

void discover_put_escaped(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || (c && strchr("-_.~", c));
		buf_printf(b, plain ? "%c" : "%%%02X", c);
	}
}

enum status discover_get(const struct discover *d, const struct discover_run *run, struct fetch *f,
	const char *target, const char *const *without, struct arena *a,
	const struct conf_node **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf body;
	int code = 0;
	buf_init(&body, DISCOVER_ANSWER_MAX);
	fetch_limit(f, DISCOVER_ANSWER_MAX);
	fetch_interrupt(f, run->wake_fd, 0);
	enum status s = client_present(&d->client, f, run->wake_fd, e);
	if (s == OK)
		s = fetch_get(f, target, DISCOVER_TIMEOUT_NS, &code, &body, e);
	if (s != OK)
		return s;
	if (code == 401)
		client_refused(&d->client);
	if (code != 200) {
		struct str line = str_sub(buf_view(&body), 0, SHOWN_BYTES);
		line = str_trim(str_sub(line, 0, str_index(line, '\n')));
		return err_set(e, code == 401 || code == 403 ? E_DENIED : E_UNAVAILABLE,
			"HTTP status %d%s%.*s", code, line.len ? ": " : "", STR_ARG(line));
	}
	return conf_json_parse(buf_view(&body), without, a, out, e);
}

/* ---- one server, and its services ---- */

enum status discover_server(struct discover *d, const struct discover_run *run, const char *address,
	const char *server, discover_search_fn *fn, struct discover_found *out, struct err *e)
{
	struct discover_search x = { .d = d, .run = run, .out = out };
	arena_init(&x.list, DISCOVER_TREE_BYTES);
	arena_init(&x.service, DISCOVER_TREE_BYTES);
	discover_draft_begin(&x.draft, out);
	enum status s = client_open(&d->client, address, &x.fetch, e);
	if (s == OK)
		s = fn(&x, e);
	fetch_free(x.fetch);
	arena_deinit(&x.list);
	arena_deinit(&x.service);
	return s == OK || s == E_CANCELED
		       ? s
		       : err_prefix(e, s, "%.*s", STR_ARG(discover_shown(server)));
}

enum status discover_service(struct discover_search *x, const struct discover_registry *r,
	struct str service, struct err *e)
{
	const struct conf_node *list = NULL;
	if (x->services++ == DISCOVER_SERVICES_MAX)
		return err_set(e, E_LIMIT, "more than %u services", DISCOVER_SERVICES_MAX);
	arena_clear(&x->service);
	enum status s = r->ask(x, service, &list, e);
	if (s == OK && list->kind != CONF_LIST)
		s = err_set(e, E_INVALID, "the answer is no list");
	for (uint32_t i = 0; s == OK && i < list->count; i++)
		s = r->add(x, service, list->v[i].value, e);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "%.*s", STR_ARG(service));
}
