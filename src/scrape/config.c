/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table has all keys, each with the function that reads its value. A known key that firn does not
 * support is refused with the reason, an unknown key with the nearest known one.
 */
#include "scrape/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define INTERVAL_DEFAULT_NS (10 * NS_PER_SEC)
#define INTERVAL_MIN_NS NS_PER_SEC
#define TIMEOUT_MORE_NS (3 * NS_PER_SEC)
#define FILE_REFRESH_NS (300 * NS_PER_SEC)
#define HTTP_REFRESH_NS (60 * NS_PER_SEC)

/* ---- discovery ---- */

static uint64_t hash_node(const struct conf_node *n, uint64_t seed)
{
	uint64_t h = hash_u64(seed ^ hash64(n->text.p, n->text.len) ^ n->kind);
	for (uint32_t i = 0; i < n->count; i++) {
		h = hash_u64(h ^ hash64(n->v[i].key.p, n->v[i].key.len));
		h = hash_node(n->v[i].value, h);
	}
	return h;
}

enum status scrape_groups_read(const struct conf_node *list, const char *meta_name,
	const char *meta_value, struct scrape_source *to, struct err *e)
{
	if (list && list->kind != CONF_LIST)
		return conf_wrong(e, list, "a list of groups is expected");
	for (uint32_t i = 0; list && i < list->count; i++) {
		const struct conf_node *n = list->v[i].value;
		struct scrape_group g = { conf_find(n, "targets"), conf_find(n, "labels"),
			meta_name, meta_value, NULL };
		static const char *const names[] = { "targets", "labels", "source", NULL };
		if (n->kind != CONF_MAP)
			return conf_wrong(e, n, "a group with targets and labels is expected");
		for (uint32_t k = 0; k < n->count; k++)
			if (!str_eq(n->v[k].key, STR("targets")) &&
				!str_eq(n->v[k].key, STR("labels")) &&
				!str_eq(n->v[k].key, STR("source")))
				return conf_unknown(e, &n->v[k], names);
		if (!g.targets || g.targets->kind != CONF_LIST)
			return conf_wrong(e, n, "targets must be a list");
		to->found += g.targets->count;
		if (to->found > SCRAPE_FOUND_MAX)
			return err_set(e, E_LIMIT, "more than %u targets", SCRAPE_FOUND_MAX);
		for (uint32_t k = 0; k < g.targets->count; k++)
			if (g.targets->v[k].value->kind != CONF_TEXT)
				return conf_wrong(
					e, g.targets->v[k].value, "a target must be a text");
		if (g.labels && conf_is_empty(g.labels))
			g.labels = NULL;
		if (g.labels && g.labels->kind != CONF_MAP)
			return conf_wrong(e, g.labels, "labels must be a mapping");
		for (uint32_t k = 0; g.labels && k < g.labels->count; k++)
			if (g.labels->v[k].value->kind != CONF_TEXT)
				return conf_wrong(
					e, g.labels->v[k].value, "a label must be a text");
		if (!VEC_PUSH(&to->groups, g))
			return err_set(e, E_NOMEM, "targets");
	}
	return OK;
}

static struct scrape_source *add_source(
	struct scrape_job *job, enum scrape_source_kind kind, int64_t refresh_ns)
{
	if (job->source_count == SCRAPE_SOURCES_MAX)
		return NULL;
	struct scrape_source *s = &job->sources[job->source_count++];
	*s = (struct scrape_source){ .kind = kind, .refresh_ns = refresh_ns };
	return s;
}

static enum status too_many(const struct conf_node *n, struct err *e)
{
	return conf_wrong(e, n, "more than %d discoveries in one job", SCRAPE_SOURCES_MAX);
}

static enum status statics(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	(void)f;
	struct scrape_source *s = add_source(base, SCRAPE_STATIC, 0);
	return s ? scrape_groups_read(x->value, NULL, NULL, s, e) : too_many(x->value, e);
}

static enum status file_patterns(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	struct scrape_source *s = base;
	(void)f;
	if (x->value->kind != CONF_LIST || x->value->count > ARRAY_COUNT(s->files))
		return conf_wrong(
			e, x->value, "files must be a list of at most %zu", ARRAY_COUNT(s->files));
	for (uint32_t i = 0; i < x->value->count; i++) {
		struct str pattern;
		enum status st = conf_text(x->value->v[i].value, "a file", &pattern, e);
		if (st != OK)
			return st;
		s->files[s->file_count++] = pattern.p;
	}
	return OK;
}

static enum status files(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "files", file_patterns, 0, NULL },
		{ "refresh_interval", conf_field_duration,
			offsetof(struct scrape_source, refresh_ns), NULL },
		{ 0 },
	};
	(void)f;
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "file_sd_configs must be a list");
	enum status st = OK;
	for (uint32_t i = 0; st == OK && i < x->value->count; i++) {
		struct scrape_source *s = add_source(base, SCRAPE_FILE, FILE_REFRESH_NS);
		st = s ? conf_read_map(x->value->v[i].value, fields, s, e) : too_many(x->value, e);
		if (st == OK && !s->file_count)
			st = conf_wrong(e, x->value->v[i].value, "files are missing");
	}
	return st;
}

static enum status https(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "url", conf_field_text, offsetof(struct scrape_source, url), NULL },
		{ "refresh_interval", conf_field_duration,
			offsetof(struct scrape_source, refresh_ns), NULL },
		CLIENT_FIELDS(offsetof(struct scrape_source, client)),
		{ 0 },
	};
	(void)f;
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "http_sd_configs must be a list");
	enum status st = OK;
	for (uint32_t i = 0; st == OK && i < x->value->count; i++) {
		const struct conf_node *n = x->value->v[i].value;
		struct scrape_source *s = add_source(base, SCRAPE_HTTP, HTTP_REFRESH_NS);
		if (s)
			s->client.follow = true;
		st = s ? conf_read_map(n, fields, s, e) : too_many(x->value, e);
		if (st == OK && (!s->url || (!str_starts(str_of(s->url), STR("http://")) &&
						    !str_starts(str_of(s->url), STR("https://")))))
			st = conf_wrong(e, n, "url must begin with http:// or https://");
		if (st == OK && s->refresh_ns < INTERVAL_MIN_NS)
			st = conf_wrong(e, n, "refresh_interval must be 1s or more");
		if (st == OK)
			st = client_check(&s->client, n, e);
	}
	return st;
}

/* ---- profiles ---- */

static enum status keep(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	struct scrape_profile *p = base;
	(void)f;
	if (x->value->kind != CONF_LIST || x->value->count > SCRAPE_KEEP_MAX)
		return conf_wrong(e, x->value, "keep_sample_type must be a list of at most %d",
			SCRAPE_KEEP_MAX);
	p->keep_count = 0;
	for (uint32_t i = 0; i < x->value->count; i++) {
		const struct conf_node *n = x->value->v[i].value;
		const struct conf_node *type = conf_find(n, "type"), *unit = conf_find(n, "unit");
		if (!type || !unit || type->kind != CONF_TEXT || unit->kind != CONF_TEXT)
			return conf_wrong(e, n, "type and unit are expected");
		p->keep[p->keep_count].type = type->text.p;
		p->keep[p->keep_count++].unit = unit->text.p;
	}
	return OK;
}

static const struct scrape_profile default_profiles[] = {
	{ .name = "memory", .path = "/debug/pprof/allocs", .enabled = true },
	{ .name = "block", .path = "/debug/pprof/block", .enabled = true },
	{ .name = "goroutine", .path = "/debug/pprof/goroutine", .enabled = true },
	{ .name = "mutex", .path = "/debug/pprof/mutex", .enabled = true },
	{ .name = "process_cpu", .path = "/debug/pprof/profile", .enabled = true, .delta = true },
};

static struct scrape_profile *profile_of(struct scrape_job *job, const char *name)
{
	for (uint32_t i = 0; i < job->profile_count; i++)
		if (strcmp(job->profiles[i].name, name) == 0)
			return &job->profiles[i];
	if (job->profile_count == SCRAPE_PROFILES_MAX)
		return NULL;
	struct scrape_profile *p = &job->profiles[job->profile_count++];
	*p = (struct scrape_profile){ .name = name, .enabled = true };
	return p;
}

/* Absent fields keep their default, except delta: as in Parca it must be repeated. */
static enum status pprof(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "enabled", conf_field_bool, offsetof(struct scrape_profile, enabled), NULL },
		{ "path", conf_field_text, offsetof(struct scrape_profile, path), NULL },
		{ "delta", conf_field_bool, offsetof(struct scrape_profile, delta), NULL },
		{ "seconds", conf_field_seconds, offsetof(struct scrape_profile, seconds), NULL },
		{ "keep_sample_type", keep, 0, NULL },
		{ 0 },
	};
	(void)f;
	if (x->value->kind != CONF_MAP)
		return conf_wrong(e, x->value, "pprof_config must be a mapping");
	enum status s = OK;
	for (uint32_t i = 0; s == OK && i < x->value->count; i++) {
		const struct conf_entry *y = &x->value->v[i];
		struct scrape_profile *p = profile_of(base, y->key.p);
		if (!p)
			return conf_wrong(
				e, x->value, "more than %d profiles", SCRAPE_PROFILES_MAX);
		p->delta = false;
		s = conf_read_map(y->value, fields, p, e);
		if (s == OK && p->enabled && (!p->path || p->path[0] != '/'))
			s = conf_wrong(e, y->value, "path must begin with a '/'");
	}
	return s;
}

static enum status profiling(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "path_prefix", conf_field_text, offsetof(struct scrape_job, path_prefix), NULL },
		{ "pprof_config", pprof, 0, NULL },
		{ 0 },
	};
	(void)f;
	return conf_read_map(x->value, fields, base, e);
}

/* ---- jobs ---- */

static enum status params(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	struct scrape_job *job = base;
	(void)f;
	if (x->value->kind != CONF_MAP || x->value->count > SCRAPE_PARAMS_MAX)
		return conf_wrong(
			e, x->value, "params must be a mapping of at most %d", SCRAPE_PARAMS_MAX);
	for (uint32_t i = 0; i < x->value->count; i++) {
		const struct conf_node *n = x->value->v[i].value;
		if (n->kind != CONF_LIST)
			return conf_wrong(e, n, "a list of texts is expected");
		for (uint32_t k = 0; k < n->count; k++)
			if (n->v[k].value->kind != CONF_TEXT)
				return conf_wrong(e, n->v[k].value, "a text is expected");
		job->params[job->param_count].name = x->value->v[i].key.p;
		job->params[job->param_count++].values = n;
	}
	return OK;
}

static enum status rules(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	struct scrape_job *job = base;
	(void)f;
	return relabel_read(x->value, &job->rules, e);
}

#define J(member) offsetof(struct scrape_job, member)

/* `at`: which of the job's settings is read. */
static enum status modules(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "%s must be a list", f->name);
	enum status st = OK;
	for (uint32_t i = 0; st == OK && i < x->value->count; i++) {
		const struct conf_node *n = x->value->v[i].value;
		struct scrape_source *s = add_source(base, SCRAPE_MODULE, 0);
		if (!s)
			return too_many(x->value, e);
		s->settings = hash_node(n, hash64(f->name, strlen(f->name)));
		st = discover_read(discover_kinds[f->at], n, &s->discover, e);
	}
	return st;
}

static const struct conf_field job_fields[] = {
	{ "job_name", conf_field_text, J(name), NULL },
	{ "params", params, 0, NULL },
	{ "scrape_interval", conf_field_duration, J(interval_ns), NULL },
	{ "scrape_timeout", conf_field_duration, J(timeout_ns), NULL },
	{ "scheme", conf_field_text, J(scheme), NULL },
	{ "normalized_addresses", conf_field_ignore, 0, NULL },
	{ "profiling_config", profiling, 0, NULL },
	{ "relabel_configs", rules, 0, NULL },
	CLIENT_FIELDS(J(client)),
	{ "static_configs", statics, 0, NULL },
	{ "file_sd_configs", files, 0, NULL },
	{ "http_sd_configs", https, 0, NULL },
};

/* The rows of job_fields, and one for each kind of discovery. */
static void make_fields(struct conf_field v[CONF_FIELDS_MAX + 1])
{
	size_t n = ARRAY_COUNT(job_fields);
	memcpy(v, job_fields, sizeof(job_fields));
	for (size_t i = 0; discover_kinds[i]; i++)
		v[n++] = (struct conf_field){ discover_kinds[i]->key, modules, i, NULL };
	for (size_t i = 0; discover_refused[i]; i++)
		v[n++] = (struct conf_field){ discover_refused[i], conf_field_refuse, 0,
			DISCOVER_REFUSED };
	assert(n <= CONF_FIELDS_MAX);
	v[n] = (struct conf_field){ 0 };
}

/* A hash of a job's settings without those that find and name targets, since these are in a
 * target's labels. */
static uint64_t settings_of(const struct conf_node *n)
{
	uint64_t h = 1;
	for (uint32_t i = 0; i < n->count; i++)
		if (!str_ends(n->v[i].key, STR("_configs")))
			h = hash_node(n->v[i].value,
				hash_u64(h ^ hash64(n->v[i].key.p, n->v[i].key.len)));
	return h;
}

static enum status check_job(
	struct scrape_config *c, struct scrape_job *job, const struct conf_node *n, struct err *e)
{
	if (!job->name || !job->name[0])
		return conf_wrong(e, n, "job_name is missing");
	for (size_t i = 0; i + 1 < c->jobs.len; i++)
		if (strcmp(c->jobs.v[i]->name, job->name) == 0)
			return conf_wrong(e, n, "there is another job \"%s\"", job->name);
	if (strcmp(job->scheme, "http") != 0 && strcmp(job->scheme, "https") != 0)
		return conf_wrong(e, n, "scheme must be http or https");
	if (job->interval_ns < INTERVAL_MIN_NS)
		return conf_wrong(e, n, "scrape_interval must be 1s or more");
	if (!job->timeout_ns)
		job->timeout_ns = job->interval_ns + TIMEOUT_MORE_NS;
	for (uint32_t i = 0; i < job->profile_count; i++) {
		const struct scrape_profile *p = &job->profiles[i];
		int64_t takes = p->seconds ? (int64_t)p->seconds * NS_PER_SEC : job->interval_ns;
		if (p->enabled && p->delta && job->timeout_ns <= takes)
			return conf_wrong(e, n,
				"scrape_timeout must be longer than %s takes, which is %llds",
				p->name, (long long)(takes / NS_PER_SEC));
	}
	return client_check(&job->client, n, e);
}

static enum status read_job(const struct conf_node *n, struct scrape_config *c, struct err *e)
{
	struct scrape_job *job = calloc(1, sizeof(*job));
	if (!job || !VEC_PUSH(&c->jobs, job)) {
		free(job);
		return err_set(e, E_NOMEM, "scrape_configs");
	}
	*job = (struct scrape_job){ .scheme = "http",
		.path_prefix = "",
		.interval_ns = INTERVAL_DEFAULT_NS,
		.client = { .follow = true },
		.profile_count = ARRAY_COUNT(default_profiles) };
	memcpy(job->profiles, default_profiles, sizeof(default_profiles));
	if (n->kind != CONF_MAP)
		return conf_wrong(e, n, "a job must be a mapping");
	struct conf_field fields[CONF_FIELDS_MAX + 1];
	make_fields(fields);
	enum status s = conf_read_map(n, fields, job, e);
	job->settings = settings_of(n);
	return s == OK ? check_job(c, job, n, e) : s;
}

enum status scrape_config_read(const struct conf_node *list, struct scrape_config *c, struct err *e)
{
	if (!list || conf_is_empty(list))
		return OK;
	if (list->kind != CONF_LIST || list->count > SCRAPE_JOBS_MAX)
		return conf_wrong(
			e, list, "scrape_configs must be a list of at most %d", SCRAPE_JOBS_MAX);
	enum status s = OK;
	for (uint32_t i = 0; s == OK && i < list->count; i++)
		s = read_job(list->v[i].value, c, e);
	return s;
}

void scrape_config_unref(struct scrape_config *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	for (size_t i = 0; i < c->jobs.len; i++) {
		struct scrape_job *job = c->jobs.v[i];
		relabel_free(job->rules);
		client_deinit(&job->client);
		for (uint32_t k = 0; k < job->source_count; k++) {
			VEC_FREE(&job->sources[k].groups);
			discover_found_deinit(&job->sources[k].discovered);
			discover_free(job->sources[k].discover);
			client_deinit(&job->sources[k].client);
			arena_deinit(&job->sources[k].arena);
		}
		free(job);
	}
	VEC_FREE(&c->jobs);
	arena_deinit(&c->arena);
	free(c);
}

enum status scrape_config_load(
	const char *path, struct scrape_config **out, struct os_stamp *stamp, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	const struct conf_node *root = NULL;
	struct err why = { 0 };
	struct scrape_config *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, E_NOMEM, "scrape_configs");
	atomic_store(&c->refs, 1);
	arena_init(&c->arena, CONF_ARENA_BYTES);
	buf_init(&bytes, CONF_BYTES_MAX);
	enum status s = os_read_own(path, &bytes, stamp, &why);
	if (s == OK)
		s = conf_parse(buf_view(&bytes), &c->arena, &root, &why);
	if (s == OK)
		s = scrape_config_read(conf_find(root, "scrape_configs"), c, &why);
	if (s != OK) {
		scrape_config_unref(c);
		return err_set(e, s, "%s: %s", path, err_text(&why, s));
	}
	*out = c;
	return OK;
}

enum status scrape_check(const struct conf_node *list, struct err *e)
{
	struct scrape_config *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, E_NOMEM, "scrape_configs");
	atomic_store(&c->refs, 1);
	enum status s = scrape_config_read(list, c, e);
	scrape_config_unref(c);
	return s;
}
