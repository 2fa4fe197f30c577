/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread looks at files every second: the configuration and those of file discovery; each HTTP
 * discovery has a thread, since its server may hang. When one of them finds something else than
 * before, sync_targets() makes all targets again. A target whose key was there before keeps its
 * thread; a new key gets a thread; the thread of a key that is gone ends.
 *
 * `lock` is held for short: threads are joined, and files read, without it.
 */
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "scrape/internal.h"

#define HTTP_TIMEOUT_NS (30 * NS_PER_SEC)
#define FILES_MAX 1000 /* of one pattern */

struct target_list {
	VEC(struct scrape_target *) v;
};

/* Tells of a problem, unless it is the one that is known. */
static void tell(struct scrape *x, char known[ERR_TEXT_MAX], enum status s, const struct err *e)
{
	const char *text = s == OK ? "" : err_text(e, s);
	if (strcmp(known, text) == 0)
		return;
	snprintf(known, ERR_TEXT_MAX, "%s", text);
	if (s != OK && x->told)
		x->told(SCRAPE_TARGETS, s, e);
}

/* ---- targets ---- */

/* One of the old targets that is the same; it is taken out. */
static struct scrape_target *take_old(struct scrape *x, uint64_t key)
{
	for (size_t i = 0; i < x->targets.len; i++) {
		struct scrape_target *t = x->targets.v[i];
		if (t && t->key == key) {
			x->targets.v[i] = NULL;
			return t;
		}
	}
	return NULL;
}

struct round {
	struct scrape *x;
	struct target_list fresh;
	size_t active, dropped, over;
	enum status failed; /* of a target, the last */
	struct err problem;
};

static void add_target(struct round *r, struct scrape_target *t)
{
	struct scrape_target *old = take_old(r->x, t->key);
	size_t *count = t->dropped ? &r->dropped : &r->active;
	bool fits = *count < (t->dropped ? SCRAPE_DROPPED_MAX : SCRAPE_TARGETS_MAX);
	if (!fits && !t->dropped)
		r->over++;
	if (old) {
		scrape_target_free(t);
		t = old;
	} else {
		t->pool = r->x;
	}
	/* An old one that does not fit any more goes with the others that are gone. */
	if (!fits || !VEC_PUSH(&r->fresh.v, t)) {
		if (!old || !VEC_PUSH(&r->x->targets, t))
			scrape_target_free(t);
		return;
	}
	++*count;
}

static void add_group(struct round *r, const struct scrape_job *job, const struct scrape_group *g)
{
	for (uint32_t i = 0; i < g->targets->count; i++)
		for (uint32_t k = 0; k < job->profile_count; k++) {
			struct scrape_target *t = NULL;
			struct err e = { 0 };
			if (!job->profiles[k].enabled)
				continue;
			enum status s = scrape_target_make(r->x->config, job, &job->profiles[k], g,
				g->targets->v[i].value->text, &t, &e);
			if (s == OK) {
				add_target(r, t);
				continue;
			}
			metric_add(&r->x->metrics.discovery_failed, 1);
			r->failed = err_prefix(&e, s, "job \"%s\"", job->name);
			r->problem = e;
		}
}

static void end_targets(struct target_list *gone)
{
	for (size_t i = 0; i < gone->v.len; i++)
		if (gone->v.v[i])
			scrape_target_wake(gone->v.v[i]);
	for (size_t i = 0; i < gone->v.len; i++)
		if (gone->v.v[i]) {
			scrape_target_join(gone->v.v[i]);
			scrape_target_free(gone->v.v[i]);
		}
	VEC_FREE(&gone->v);
}

/* Only by one thread at a time: with reload_lock. */
static void sync_targets(struct scrape *x)
{
	struct round r = { .x = x };
	struct target_list gone = { 0 };
	pthread_mutex_lock(&x->lock);
	x->changed = false;
	for (size_t i = 0; x->config && i < x->config->jobs.len; i++) {
		const struct scrape_job *job = x->config->jobs.v[i];
		for (uint32_t k = 0; k < job->source_count; k++)
			for (size_t g = 0; g < job->sources[k].groups.len; g++)
				add_group(&r, job, &job->sources[k].groups.v[g]);
	}
	memcpy(&gone, &x->targets, sizeof(gone));
	memcpy(&x->targets, &r.fresh, sizeof(x->targets));
	metric_set(&x->metrics.targets, r.active);
	metric_set(&x->metrics.over, r.over);
	for (size_t i = 0; i < x->targets.len; i++) {
		struct scrape_target *t = x->targets.v[i];
		struct err e = { 0 };
		if (t->dropped || t->runs)
			continue;
		enum status s = scrape_target_start(t, &e);
		if (s != OK) {
			t->health = SCRAPE_BAD;
			snprintf(t->error, sizeof(t->error), "%s", err_text(&e, s));
		}
	}
	pthread_mutex_unlock(&x->lock);
	tell(x, x->problem, r.failed, &r.problem);
	end_targets(&gone);
}

/* ---- discovery ---- */

/* One document of targets more. */
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
	pthread_mutex_lock(&x->lock);
	struct scrape_source old = *s;
	memcpy(&s->groups, &fresh->groups, sizeof(s->groups));
	s->arena = fresh->arena;
	x->changed = true;
	pthread_mutex_unlock(&x->lock);
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

/* A file that cannot be opened counts as one without a stamp. */
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

/* Files are read when one of them has changed. What is wrong stays in `problem`, and the last
 * targets stay. */
static void look_at_files(struct scrape *x, struct scrape_source *s)
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
	tell(x, s->problem, st, &e);
	if (st == OK)
		replace(x, s, &fresh);
	else
		drop(&fresh);
}

static enum status ask(struct scrape_source *s, struct fetch *f, struct buf *body, struct err *e)
{
	int code = 0;
	buf_clear(body);
	enum status st = scrape_client_present(&s->client, f, e);
	if (st == OK)
		st = fetch_get(f, s->url, HTTP_TIMEOUT_NS, &code, body, e);
	return st != OK || code == 200 ? st : err_set(e, E_INVALID, "HTTP status %d", code);
}

/* A user and password before the host are nobody's to read. */
static void tell_of_server(struct scrape_source *s, enum status st, struct err *e)
{
	const char *at = strrchr(s->url, '@');
	if (st != OK)
		err_prefix(e, st, "%s", at ? at + 1 : s->url);
	tell(s->pool, s->problem, st, e);
}

static void *discover(void *ctx)
{
	struct scrape_source *s = ctx;
	struct scrape *x = s->pool;
	struct fetch *f = NULL;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, CONF_BYTES_MAX);
	enum status opened = scrape_client_open(&s->client, &f, &e);
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
		struct pollfd p = { .fd = s->wake_fd, .events = POLLIN };
		ends = st == E_CANCELED || poll(&p, 1, (int)(s->refresh_ns / NS_PER_MS)) > 0;
	}
	fetch_free(f);
	return NULL;
}

/* ---- configurations ---- */

static void start_sources(struct scrape *x, struct scrape_config *c)
{
	for (size_t i = 0; i < c->jobs.len; i++)
		for (uint32_t k = 0; k < c->jobs.v[i]->source_count; k++) {
			struct scrape_source *s = &c->jobs.v[i]->sources[k];
			s->pool = x;
			s->wake_fd = -1;
			if (s->kind == SCRAPE_FILE)
				look_at_files(x, s);
			if (s->kind != SCRAPE_HTTP)
				continue;
			s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
			s->runs = s->wake_fd >= 0 &&
				  os_thread_start(&s->thread, "discover", discover, s, NULL) == OK;
			if (!s->runs)
				metric_add(&x->metrics.discovery_failed, 1);
		}
}

static void stop_sources(struct scrape_config *c)
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
				if (join && s->wake_fd >= 0 && s->kind == SCRAPE_HTTP)
					close(s->wake_fd);
			}
}

/* What HTTP discovery found stays until the new one has been answered. */
static void hand_on(struct scrape_config *from, struct scrape_config *to)
{
	for (size_t i = 0; from && i < from->jobs.len; i++)
		for (size_t j = 0; j < to->jobs.len; j++) {
			struct scrape_job *a = from->jobs.v[i], *b = to->jobs.v[j];
			if (strcmp(a->name, b->name) != 0)
				continue;
			for (uint32_t k = 0; k < MIN(a->source_count, b->source_count); k++) {
				struct scrape_source *old = &a->sources[k], *fresh = &b->sources[k];
				if (old->kind != SCRAPE_HTTP || fresh->kind != SCRAPE_HTTP ||
					strcmp(old->url, fresh->url) != 0)
					continue;
				memcpy(&fresh->groups, &old->groups, sizeof(fresh->groups));
				fresh->arena = old->arena;
				fresh->seen = old->seen;
				memset(&old->groups, 0, sizeof(old->groups));
				old->arena = (struct arena){ 0 };
			}
		}
}

/* With reload_lock. */
static void put_config(struct scrape *x, struct scrape_config *c)
{
	struct scrape_config *old = x->config;
	stop_sources(old);
	if (c) {
		hand_on(old, c);
		start_sources(x, c);
	}
	pthread_mutex_lock(&x->lock);
	x->config = c;
	pthread_mutex_unlock(&x->lock);
	sync_targets(x);
	scrape_config_unref(old);
}

void scrape_check_by(struct scrape *x, scrape_check_fn *check)
{
	pthread_mutex_lock(&x->reload_lock);
	x->check = check;
	pthread_mutex_unlock(&x->reload_lock);
}

enum status scrape_reload(struct scrape *x, struct err *e)
{
	struct scrape_config *c = NULL;
	pthread_mutex_lock(&x->reload_lock);
	enum status s = scrape_config_load(x->path, &c, &x->stamp, e);
	if (s == OK && x->check) {
		s = x->check(x->path, e);
		if (s != OK)
			scrape_config_unref(c);
	}
	metric_add(&x->metrics.reloads, 1);
	metric_set(&x->metrics.reload_ok, s == OK);
	if (s == OK) {
		metric_set(&x->metrics.reload_time, (uint64_t)(clock_realtime_ns() / NS_PER_SEC));
		put_config(x, c);
	}
	pthread_mutex_unlock(&x->reload_lock);
	return s;
}

/* ---- the thread that looks ---- */

static bool file_changed(struct scrape *x)
{
	struct os_stamp now;
	if (os_read_own(x->path, NULL, &now, NULL) != OK)
		return false;
	pthread_mutex_lock(&x->reload_lock);
	bool same = os_stamp_is_same(&now, &x->stamp);
	pthread_mutex_unlock(&x->reload_lock);
	return !same;
}

static void look(struct scrape *x)
{
	pthread_mutex_lock(&x->reload_lock);
	for (size_t i = 0; i < x->config->jobs.len; i++)
		for (uint32_t k = 0; k < x->config->jobs.v[i]->source_count; k++)
			if (x->config->jobs.v[i]->sources[k].kind == SCRAPE_FILE)
				look_at_files(x, &x->config->jobs.v[i]->sources[k]);
	pthread_mutex_lock(&x->lock);
	bool changed = x->changed;
	pthread_mutex_unlock(&x->lock);
	if (changed)
		sync_targets(x);
	pthread_mutex_unlock(&x->reload_lock);
}

static void *run(void *ctx)
{
	struct scrape *x = ctx;
	while (!atomic_load(&x->stopping)) {
		struct pollfd p = { .fd = x->wake_fd, .events = POLLIN };
		struct err e = { 0 };
		if (poll(&p, 1, (int)(SCRAPE_LOOK_NS / NS_PER_MS)) > 0)
			break;
		if (file_changed(x)) {
			enum status s = scrape_reload(x, &e);
			if (x->told)
				x->told(SCRAPE_CONFIG, s, &e);
		}
		look(x);
	}
	return NULL;
}

enum status scrape_start(const char *path, struct ingest_inlet *inlet, scrape_told_fn *told,
	struct scrape **out, struct err *e)
{
	struct scrape *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "scraping");
	x->path = path;
	x->inlet = inlet;
	x->told = told;
	x->wake_fd = -1;
	pthread_mutex_init(&x->lock, NULL);
	pthread_mutex_init(&x->reload_lock, NULL);
	x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	enum status s = x->wake_fd < 0 ? err_os(e, "eventfd") : scrape_reload(x, e);
	if (s == OK)
		s = os_thread_start(&x->thread, "scrapes", run, x, e);
	x->runs = s == OK;
	if (s != OK) {
		scrape_stop(x);
		return s;
	}
	*out = x;
	return OK;
}

void scrape_stop(struct scrape *x)
{
	uint64_t one = 1;
	if (!x)
		return;
	atomic_store(&x->stopping, true);
	if (x->runs) {
		(void)!write(x->wake_fd, &one, sizeof(one));
		pthread_join(x->thread, NULL);
	}
	pthread_mutex_lock(&x->reload_lock);
	put_config(x, NULL);
	pthread_mutex_unlock(&x->reload_lock);
	VEC_FREE(&x->targets);
	if (x->wake_fd >= 0)
		close(x->wake_fd);
	pthread_mutex_destroy(&x->lock);
	pthread_mutex_destroy(&x->reload_lock);
	free(x);
}

/* ---- for people ---- */

void scrape_write_metrics(struct scrape *x, struct buf *out)
{
	static const struct metric_def defs[] = { SCRAPE_METRICS(METRIC_DEF) };
	if (x)
		metrics_write(out, defs, (const metric_value *)&x->metrics, ARRAY_COUNT(defs));
}

void scrape_each(struct scrape *x, scrape_view_fn *fn, void *ctx)
{
	pthread_mutex_lock(&x->lock);
	for (size_t i = 0; i < x->targets.len; i++) {
		const struct scrape_target *t = x->targets.v[i];
		const struct scrape_view v = { .job = t->job->name,
			.discovered = t->discovered,
			.labels = t->labels,
			.discovered_count = t->discovered_count,
			.label_count = t->label_count,
			.url = t->url ? t->url : "",
			.error = t->error,
			.last_ns = t->last_ns,
			.next_ns = t->next_ns,
			.took_ns = t->took_ns,
			.health = t->health,
			.dropped = t->dropped };
		fn(ctx, &v);
	}
	pthread_mutex_unlock(&x->lock);
}
