/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread checks files every second: the configuration and those of file discovery (source.c).
 * When a source finds different targets than before, sync_targets() makes all targets again. A
 * target whose key existed before keeps its thread; a new key gets a thread; the thread of a key
 * that is gone ends.
 *
 * `lock` is held only for a short time: threads are joined, and files read, without it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "scrape/internal.h"

struct target_list {
	VEC(struct scrape_target *) v;
};

/* ---- targets ---- */

/* Takes the old target with this key out of the list. */
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
	enum status failed; /* the last error of a target */
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
	/* No room for the target: an old one goes back to the list, whose threads end. */
	if (!fits || !VEC_PUSH(&r->fresh.v, t)) {
		if (!old || !VEC_PUSH(&r->x->targets, t))
			scrape_target_free(t);
		return;
	}
	++*count;
}

static void add_address(struct round *r, const struct scrape_job *job, const struct scrape_group *g,
	struct str address)
{
	for (uint32_t k = 0; k < job->profile_count; k++) {
		struct scrape_target *t = NULL;
		struct err e = { 0 };
		if (!job->profiles[k].enabled)
			continue;
		enum status s = scrape_target_make(
			r->x->config, job, &job->profiles[k], g, address, &t, &e);
		if (s == OK) {
			add_target(r, t);
			continue;
		}
		metric_add(&r->x->metrics.discovery_failed, 1);
		r->failed = err_prefix(&e, s, "job \"%s\"", job->name);
		r->problem = e;
	}
}

static void add_source(struct round *r, const struct scrape_job *job, const struct scrape_source *s)
{
	for (size_t i = 0; i < s->groups.len; i++) {
		const struct scrape_group *g = &s->groups.v[i];
		for (uint32_t k = 0; k < g->targets->count; k++)
			add_address(r, job, g, g->targets->v[k].value->text);
	}
	for (size_t i = 0; i < s->discovered.targets.len; i++) {
		const struct scrape_group g = { .found = &s->discovered.targets.v[i] };
		add_address(r, job, &g, str_of(g.found->address));
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

/* Called with reload_lock. */
static void sync_targets(struct scrape *x)
{
	struct round r = { .x = x };
	struct target_list gone = { 0 };
	lock_take(&x->lock);
	x->changed = false;
	for (size_t i = 0; x->config && i < x->config->jobs.len; i++) {
		const struct scrape_job *job = x->config->jobs.v[i];
		for (uint32_t k = 0; k < job->source_count; k++)
			add_source(&r, job, &job->sources[k]);
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
	lock_release(&x->lock);
	scrape_tell(x, x->problem, r.failed, &r.problem);
	end_targets(&gone);
}

/* ---- configurations ---- */

/* With reload_lock. */
static void put_config(struct scrape *x, struct scrape_config *c)
{
	struct scrape_config *old = x->config;
	scrape_sources_stop(old);
	if (c) {
		lock_take(&x->lock);
		scrape_sources_hand_on(old, c);
		lock_release(&x->lock);
		scrape_sources_start(x, c);
	}
	lock_take(&x->lock);
	x->config = c;
	lock_release(&x->lock);
	sync_targets(x);
	scrape_config_unref(old);
}

void scrape_check_by(struct scrape *x, scrape_check_fn *check)
{
	lock_take(&x->reload_lock);
	x->check = check;
	lock_release(&x->reload_lock);
}

enum status scrape_reload(struct scrape *x, struct err *e)
{
	struct scrape_config *c = NULL;
	lock_take(&x->reload_lock);
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
	lock_release(&x->reload_lock);
	return s;
}

/* ---- the thread that looks ---- */

static bool file_changed(struct scrape *x)
{
	struct os_stamp now;
	if (os_read_own(x->path, NULL, &now, NULL) != OK)
		return false;
	lock_take(&x->reload_lock);
	bool same = os_stamp_is_same(&now, &x->stamp);
	lock_release(&x->reload_lock);
	return !same;
}

static void look(struct scrape *x)
{
	lock_take(&x->reload_lock);
	for (size_t i = 0; i < x->config->jobs.len; i++)
		for (uint32_t k = 0; k < x->config->jobs.v[i]->source_count; k++)
			if (x->config->jobs.v[i]->sources[k].kind == SCRAPE_FILE)
				scrape_source_look(x, &x->config->jobs.v[i]->sources[k]);
	lock_take(&x->lock);
	bool changed = x->changed;
	lock_release(&x->lock);
	if (changed)
		sync_targets(x);
	lock_release(&x->reload_lock);
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

static enum status start(struct scrape *x, struct err *e)
{
	x->wake_fd = -1;
	lock_init(&x->lock, LOCK_SCRAPE);
	lock_init(&x->reload_lock, LOCK_RELOAD);
	x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	enum status s = x->wake_fd < 0 ? err_os(e, "eventfd") : scrape_reload(x, e);
	if (s == OK)
		s = os_thread_start(&x->thread, "scrapes", run, x, e);
	x->runs = s == OK;
	if (s != OK)
		scrape_stop(x);
	return s;
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
	enum status s = start(x, e);
	if (s == OK)
		*out = x;
	return s;
}

enum status scrape_start_forwarding(const char *path, scrape_forward_fn *forward, void *ctx,
	scrape_told_fn *told, struct scrape **out, struct err *e)
{
	struct scrape *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "scraping");
	x->path = path;
	x->forward = forward;
	x->forward_ctx = ctx;
	x->told = told;
	enum status s = start(x, e);
	if (s == OK)
		*out = x;
	return s;
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
	lock_take(&x->reload_lock);
	put_config(x, NULL);
	lock_release(&x->reload_lock);
	VEC_FREE(&x->targets);
	if (x->wake_fd >= 0)
		close(x->wake_fd);
	lock_destroy(&x->lock);
	lock_destroy(&x->reload_lock);
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
	lock_take(&x->lock);
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
	lock_release(&x->lock);
}

void scrape_each_discovery(struct scrape *x, scrape_discovery_fn *fn, void *ctx)
{
	lock_take(&x->lock);
	for (size_t i = 0; x->config && i < x->config->jobs.len; i++) {
		const struct scrape_job *job = x->config->jobs.v[i];
		for (uint32_t k = 0; k < job->source_count; k++)
			fn(ctx, &(struct scrape_discovery){ .job = job->name,
					.key = scrape_source_key(&job->sources[k]),
					.error = job->sources[k].problem,
					.found = scrape_source_found(&job->sources[k]) });
	}
	lock_release(&x->lock);
}
