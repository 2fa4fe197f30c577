/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of targets. The pool's thread checks files; each discovery server is asked by a thread of
 * its own, since it may hang. The found targets are replaced as a whole under the pool's lock, and
 * only if they differ from those before.
 */
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "scrape/internal.h"

#define HTTP_TIMEOUT_NS (30 * NS_PER_SEC)
#define FILES_MAX 1000 /* of one pattern */

void scrape_tell(struct scrape *x, char known[ERR_TEXT_MAX], enum status s, const struct err *e)
{
	const char *text = s == OK ? "" : err_text(e, s);
	lock_take(&x->lock);
	bool is_news = strcmp(known, text) != 0;
	snprintf(known, ERR_TEXT_MAX, "%s", text);
	lock_release(&x->lock);
	if (is_news && s != OK && x->told)
		x->told(SCRAPE_TARGETS, s, e);
}

const char *scrape_source_key(const struct scrape_source *s)
{
	static const char *const keys[] = { [SCRAPE_STATIC] = "static_configs",
		[SCRAPE_FILE] = "file_sd_configs",
		[SCRAPE_HTTP] = "http_sd_configs" };
	return s->kind == SCRAPE_MODULE ? s->discover->kind->key : keys[s->kind];
}

size_t scrape_source_found(const struct scrape_source *s)
{
	size_t count = s->discovered.targets.len;
	for (size_t i = 0; i < s->groups.len; i++)
		count += s->groups.v[i].targets->count;
	return count;
}

/* ---- discovery ---- */

/* Adds the targets of a document. */
static enum status read_document(struct scrape_source *to, struct str bytes, const char *meta_name,
	const char *meta_value, struct err *e)
{
	const struct conf_node *root = NULL;
	char *value = arena_copy(&to->arena, meta_value, strlen(meta_value));
	if (!value)
		return err_set(e, E_NOMEM, "targets");
	enum status s = conf_parse(bytes, &to->arena, &root, e);
	return s == OK ? scrape_groups_read(root, meta_name, value, to, e) : s;
}

static void replace(struct scrape *x, struct scrape_source *s, struct scrape_source *fresh)
{
	lock_take(&x->lock);
	struct scrape_source old = { .arena = s->arena };
	memcpy(&old.groups, &s->groups, sizeof(old.groups));
	memcpy(&s->groups, &fresh->groups, sizeof(s->groups));
	s->arena = fresh->arena;
	x->changed = true;
	lock_release(&x->lock);
	VEC_FREE(&old.groups);
	arena_deinit(&old.arena);
}

static void drop(struct scrape_source *fresh)
{
	VEC_FREE(&fresh->groups);
	arena_deinit(&fresh->arena);
}

/* Calls fn for each file of the patterns, until it fails. */
typedef enum status file_fn(const char *path, void *ctx, struct err *e);
static enum status each_file(const struct scrape_source *s, file_fn *fn, void *ctx, struct err *e)
{
	enum status st = OK;
	for (uint32_t i = 0; st == OK && i < s->file_count; i++) {
		glob_t found;
		if (glob(s->files[i], 0, NULL, &found) != 0)
			continue;
		for (size_t k = 0; st == OK && k < MIN(found.gl_pathc, (size_t)FILES_MAX); k++)
			st = fn(found.gl_pathv[k], ctx, e);
		globfree(&found);
	}
	return st;
}

/* Adds the file's stamp to the hash; a file that cannot be opened has none. */
static enum status add_stamp(const char *path, void *ctx, struct err *e)
{
	uint64_t *seen = ctx;
	struct os_stamp stamp = { 0 };
	(void)e;
	if (os_read_own(path, NULL, &stamp, NULL) != OK)
		stamp = (struct os_stamp){ 0 };
	*seen = hash_u64(*seen ^ hash64(&stamp, sizeof(stamp)) ^ hash64(path, strlen(path)));
	return OK;
}

static enum status read_file(const char *path, void *ctx, struct err *e)
{
	struct scrape_source *fresh = ctx;
	CLEANUP(buf_deinit) struct buf bytes;
	struct err why = { 0 };
	buf_init(&bytes, CONF_BYTES_MAX);
	enum status s = os_read_own(path, &bytes, NULL, &why);
	if (s == OK)
		s = read_document(fresh, buf_view(&bytes), "__meta_filepath", path, &why);
	return s == OK ? OK : err_set(e, s, "%s: %s", path, err_text(&why, s));
}

/* Reads the files when one of them has changed. On an error, `problem` has the message and the last
 * targets stay. */
void scrape_source_look(struct scrape *x, struct scrape_source *s)
{
	struct scrape_source fresh = { 0 };
	struct err e = { 0 };
	uint64_t seen = 1;
	enum status st = each_file(s, add_stamp, &seen, NULL);
	if (st == OK && seen == s->seen)
		return;
	s->seen = seen;
	arena_init(&fresh.arena, SCRAPE_GROUPS_BYTES);
	st = each_file(s, read_file, &fresh, &e);
	if (st != OK)
		metric_add(&x->metrics.discovery_failed, 1);
	scrape_tell(x, s->problem, st, &e);
	if (st == OK)
		replace(x, s, &fresh);
	else
		drop(&fresh);
}

static enum status ask(struct scrape_source *s, struct fetch *f, struct buf *body, struct err *e)
{
	int code = 0;
	buf_clear(body);
	enum status st = client_present(&s->client, f, s->wake_fd, e);
	if (st == OK)
		st = fetch_get(f, s->url, HTTP_TIMEOUT_NS, &code, body, e);
	if (st == OK && code == 401)
		client_refused(&s->client);
	return st != OK || code == 200 ? st : err_set(e, E_INVALID, "HTTP status %d", code);
}

/* Waits for the next request. True: the source ends. poll() waits at most 24 days; with a longer
 * interval the server is asked earlier. */
static bool wait_for_stop(const struct scrape_source *s, int64_t refresh_ns)
{
	struct pollfd p = { .fd = s->wake_fd, .events = POLLIN };
	return poll(&p, 1, (int)MIN(refresh_ns / NS_PER_MS, (int64_t)INT_MAX)) > 0;
}

static void tell_of_server(struct scrape_source *s, enum status st, struct err *e)
{
	if (st != OK)
		err_prefix(e, st, "%.*s", STR_ARG(discover_shown(s->url)));
	scrape_tell(s->pool, s->problem, st, e);
}

static void *ask_http(void *ctx)
{
	struct scrape_source *s = ctx;
	struct scrape *x = s->pool;
	struct fetch *f = NULL;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, CONF_BYTES_MAX);
	enum status opened = client_open(&s->client, NULL, &f, &e);
	if (opened == OK) {
		fetch_limit(f, CONF_BYTES_MAX);
		fetch_interrupt(f, s->wake_fd, 0);
	} else {
		tell_of_server(s, opened, &e);
	}
	for (bool ends = opened != OK; !ends;) {
		struct scrape_source fresh = { 0 };
		arena_init(&fresh.arena, SCRAPE_GROUPS_BYTES);
		e = (struct err){ 0 };
		enum status st = ask(s, f, &body, &e);
		uint64_t seen = hash64(body.data, body.len);
		bool same = st == OK && seen == s->seen;
		if (st == OK && !same)
			st = read_document(&fresh, buf_view(&body), "__meta_url", s->url, &e);
		if (st != OK && st != E_CANCELED)
			metric_add(&x->metrics.discovery_failed, 1);
		if (st != E_CANCELED)
			tell_of_server(s, st, &e);
		if (st == OK && !same) {
			s->seen = seen;
			replace(x, s, &fresh);
		} else {
			drop(&fresh);
		}
		ends = st == E_CANCELED || wait_for_stop(s, s->refresh_ns);
	}
	fetch_free(f);
	return NULL;
}

/* ---- the modules ---- */

static uint64_t hash_labels(uint64_t h, const struct discover_labels *l)
{
	for (uint32_t i = 0; l && i < l->count; i++) {
		h = hash_u64(h ^ hash64(l->v[i].name, strlen(l->v[i].name)));
		h = hash_u64(h ^ hash64(l->v[i].value, strlen(l->v[i].value)));
	}
	return h;
}

static uint64_t hash_found(const struct discover_found *f)
{
	uint64_t h = 1;
	for (size_t i = 0; i < f->targets.len; i++) {
		const struct discover_target *t = &f->targets.v[i];
		h = hash_u64(h ^ hash64(t->address, strlen(t->address)));
		h = hash_labels(hash_labels(h, t->shared), &t->own);
	}
	return h;
}

static void replace_found(struct scrape_source *s, struct discover_found *fresh)
{
	lock_take(&s->pool->lock);
	struct discover_found old = s->discovered;
	s->discovered = *fresh;
	s->pool->changed = true;
	lock_release(&s->pool->lock);
	*fresh = old;
}

static void *ask_module(void *ctx)
{
	struct scrape_source *s = ctx;
	const struct discover_run run = { .wake_fd = s->wake_fd };
	for (bool ends = false; !ends;) {
		struct discover_found fresh;
		struct err e = { 0 };
		discover_found_init(&fresh);
		enum status st = discover_find(s->discover, &run, &fresh, &e);
		if (st != OK && st != E_CANCELED) {
			metric_add(&s->pool->metrics.discovery_failed, 1);
			err_prefix(&e, st, "%s", s->discover->kind->key);
		}
		if (st != E_CANCELED)
			scrape_tell(s->pool, s->problem, st, &e);
		uint64_t seen = hash_found(&fresh);
		if (st == OK && seen != s->seen) {
			s->seen = seen;
			replace_found(s, &fresh);
		}
		discover_found_deinit(&fresh);
		ends = st == E_CANCELED || wait_for_stop(s, s->discover->refresh_ns);
	}
	return NULL;
}

/* ---- all of a configuration ---- */

void scrape_sources_start(struct scrape *x, struct scrape_config *c)
{
	for (size_t i = 0; i < c->jobs.len; i++)
		for (uint32_t k = 0; k < c->jobs.v[i]->source_count; k++) {
			struct scrape_source *s = &c->jobs.v[i]->sources[k];
			s->pool = x;
			s->wake_fd = -1;
			if (s->kind == SCRAPE_FILE)
				scrape_source_look(x, s);
			if (s->kind != SCRAPE_HTTP && s->kind != SCRAPE_MODULE)
				continue;
			s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
			struct err e = { 0 };
			enum status st = s->wake_fd < 0 ? err_os(&e, "eventfd") : OK;
			if (st == OK)
				st = os_thread_start(&s->thread, "discover",
					s->kind == SCRAPE_HTTP ? ask_http : ask_module, s, &e);
			s->runs = st == OK;
			if (st == OK)
				continue;
			metric_add(&x->metrics.discovery_failed, 1);
			scrape_tell(x, s->problem, st, &e);
		}
}

void scrape_sources_stop(struct scrape_config *c)
{
	uint64_t one = 1;
	for (int join = 0; c && join < 2; join++)
		for (size_t i = 0; i < c->jobs.len; i++)
			for (uint32_t k = 0; k < c->jobs.v[i]->source_count; k++) {
				struct scrape_source *s = &c->jobs.v[i]->sources[k];
				if (s->runs && !join)
					(void)!write(s->wake_fd, &one, sizeof(one));
				if (s->runs && join) {
					pthread_join(s->thread, NULL);
					s->runs = false;
				}
				if (join && s->wake_fd >= 0)
					close(s->wake_fd);
			}
}

static void hand_on(struct scrape_source *old, struct scrape_source *fresh)
{
	if (old->kind != SCRAPE_HTTP && old->kind != SCRAPE_MODULE)
		return;
	memcpy(&fresh->groups, &old->groups, sizeof(fresh->groups));
	fresh->arena = old->arena;
	fresh->discovered = old->discovered;
	fresh->seen = old->seen;
	memset(&old->groups, 0, sizeof(old->groups));
	old->arena = (struct arena){ 0 };
	old->discovered = (struct discover_found){ 0 };
}

void scrape_sources_hand_on(struct scrape_config *from, struct scrape_config *to)
{
	for (size_t i = 0; from && i < from->jobs.len; i++)
		for (size_t j = 0; j < to->jobs.len; j++) {
			struct scrape_job *a = from->jobs.v[i], *b = to->jobs.v[j];
			if (strcmp(a->name, b->name) != 0)
				continue;
			for (uint32_t k = 0; k < MIN(a->source_count, b->source_count); k++) {
				struct scrape_source *old = &a->sources[k], *fresh = &b->sources[k];
				bool same = old->kind == fresh->kind &&
					    (old->kind == SCRAPE_HTTP
							    ? strcmp(old->url, fresh->url) == 0
							    : old->settings == fresh->settings);
				if (same)
					hand_on(old, fresh);
			}
		}
}
