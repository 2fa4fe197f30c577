/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of keys, each with what reads it. A key that is known and not done is refused with a
 * sentence, one that is not known with the nearest that is.
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
#define KEYS_MAX 96

struct field;
typedef enum status read_fn(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e);
struct field {
	const char *name;
	read_fn *read;
	size_t at;
	const char *why; /* of `refuse` */
};

static enum status read_map(
	const struct conf_node *n, const struct field *fields, void *base, struct err *e)
{
	if (n->kind != CONF_MAP)
		return conf_is_empty(n) ? OK : conf_wrong(e, n, "a mapping is expected");
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_entry *x = &n->v[i];
		const struct field *f = fields;
		while (f->name && !str_eq(x->key, str_of(f->name)))
			f++;
		if (!f->name) {
			const char *names[KEYS_MAX + 1];
			size_t count = 0;
			for (f = fields; f->name && count < KEYS_MAX; f++)
				names[count++] = f->name;
			names[count] = NULL;
			return conf_unknown(e, x, names);
		}
		enum status s = conf_is_empty(x->value) ? OK : f->read(x, base, f, e);
		if (s != OK)
			return s;
	}
	return OK;
}

#define AT(base, f, T) ((T *)(void *)((char *)(base) + (f)->at))

static enum status text(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	struct str s;
	enum status st = conf_text(x->value, f->name, &s, e);
	if (st == OK)
		*AT(base, f, const char *) = s.p;
	return st;
}

static enum status boolean(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	return conf_bool(x->value, f->name, AT(base, f, bool), e);
}

static enum status duration(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	/* Go writes no duration as 0 alone. */
	if (x->value->kind == CONF_TEXT && str_eq(x->value->text, STR("0"))) {
		*AT(base, f, int64_t) = 0;
		return OK;
	}
	return conf_duration(x->value, f->name, AT(base, f, int64_t), e);
}

static enum status number(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	return conf_number(x->value, f->name, 0, 3600, AT(base, f, uint64_t), e);
}

static enum status refuse(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	(void)base;
	return err_set(e, E_INVALID, "line %u, column %u: %s: %s", x->line, x->column, f->name,
		f->why ? f->why : "firn does not do this");
}

/* What changes nothing here: taken. */
static enum status ignore(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	(void)x;
	(void)base;
	(void)f;
	(void)e;
	return OK;
}

/* ---- how a server is spoken to ---- */

#define C(member) offsetof(struct scrape_client, member)

static const struct field basic_fields[] = {
	{ "username", text, C(username), NULL },
	{ "username_file", text, C(username_file), NULL },
	{ "password", text, C(password), NULL },
	{ "password_file", text, C(password_file), NULL },
	{ 0 },
};
static const struct field authorization_fields[] = {
	{ "type", text, C(auth_type), NULL },
	{ "credentials", text, C(credentials), NULL },
	{ "credentials_file", text, C(credentials_file), NULL },
	{ 0 },
};
#define AS_FILE "only the key with _file is taken"
static const struct field tls_fields[] = {
	{ "ca_file", text, C(ca_file), NULL },
	{ "cert_file", text, C(cert_file), NULL },
	{ "key_file", text, C(key_file), NULL },
	{ "insecure_skip_verify", boolean, C(insecure), NULL },
	{ "ca", refuse, 0, AS_FILE },
	{ "cert", refuse, 0, AS_FILE },
	{ "key", refuse, 0, AS_FILE },
	{ "server_name", refuse, 0, "the name of the address is checked, and no other" },
	{ "min_version", ignore, 0, NULL },
	{ "max_version", refuse, 0, "TLS 1.2 and all that is later is spoken" },
	{ 0 },
};

static enum status basic(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	return read_map(x->value, basic_fields, AT(base, f, struct scrape_client), e);
}

static enum status authorization(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	return read_map(x->value, authorization_fields, AT(base, f, struct scrape_client), e);
}

static enum status tls(const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	return read_map(x->value, tls_fields, AT(base, f, struct scrape_client), e);
}

/* {NAME: {values: [a, b]}} */
static enum status headers(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	struct scrape_client *c = AT(base, f, struct scrape_client);
	if (x->value->kind != CONF_MAP)
		return conf_wrong(e, x->value, "http_headers must be a mapping");
	for (uint32_t i = 0; i < x->value->count; i++) {
		const struct conf_node *values = conf_find(x->value->v[i].value, "values");
		if (!values || values->kind != CONF_LIST || values->count != 1 ||
			values->v[0].value->kind != CONF_TEXT)
			return conf_wrong(e, x->value->v[i].value,
				"a header needs values: with one text in the list");
		if (c->header_count == ARRAY_COUNT(c->headers))
			return conf_wrong(
				e, x->value, "more than %zu headers", ARRAY_COUNT(c->headers));
		c->headers[c->header_count++] =
			(struct scrape_label){ x->value->v[i].key.p, values->v[0].value->text.p };
	}
	return OK;
}

#define CLIENT_FIELDS(base)                                                                      \
	{ "basic_auth", basic, (base), NULL }, { "authorization", authorization, (base), NULL }, \
		{ "bearer_token", text, (base) + C(credentials), NULL },                         \
		{ "bearer_token_file", text, (base) + C(credentials_file), NULL },               \
		{ "oauth2", refuse, 0, "firn does not speak OAuth 2 yet" },                      \
		{ "tls_config", tls, (base), NULL },                                             \
		{ "follow_redirects", boolean, (base) + C(follow), NULL },                       \
		{ "enable_http2", ignore, 0, NULL },                                             \
		{ "proxy_url", text, (base) + C(proxy_url), NULL },                              \
		{ "no_proxy", text, (base) + C(no_proxy), NULL },                                \
		{ "proxy_from_environment", boolean, (base) + C(proxy_from_environment), NULL }, \
		{ "proxy_connect_header", refuse, 0, NULL },                                     \
	{                                                                                        \
		"http_headers", headers, (base), NULL                                            \
	}

static enum status check_client(
	const struct scrape_client *c, const struct conf_node *n, struct err *e)
{
	bool has_basic = c->username || c->username_file;
	bool has_token = c->credentials || c->credentials_file;
	if (has_basic && has_token)
		return conf_wrong(e, n, "basic_auth and a token: one of them is enough");
	if ((c->password && c->password_file) || (c->credentials && c->credentials_file))
		return conf_wrong(e, n, "a secret and a file of it: one of them is enough");
	if (!c->cert_file != !c->key_file)
		return conf_wrong(e, n, "cert_file and key_file belong together");
	return OK;
}

/* ---- discovery ---- */

enum status scrape_groups_read(const struct conf_node *list, const char *meta_name,
	const char *meta_value, struct scrape_source *to, struct err *e)
{
	if (list && list->kind != CONF_LIST)
		return conf_wrong(e, list, "a list of groups is expected");
	for (uint32_t i = 0; list && i < list->count; i++) {
		const struct conf_node *n = list->v[i].value;
		struct scrape_group g = { conf_find(n, "targets"), conf_find(n, "labels"),
			meta_name, meta_value };
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
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	(void)f;
	struct scrape_source *s = add_source(base, SCRAPE_STATIC, 0);
	return s ? scrape_groups_read(x->value, NULL, NULL, s, e) : too_many(x->value, e);
}

static enum status file_patterns(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
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
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	static const struct field fields[] = {
		{ "files", file_patterns, 0, NULL },
		{ "refresh_interval", duration, offsetof(struct scrape_source, refresh_ns), NULL },
		{ 0 },
	};
	(void)f;
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "file_sd_configs must be a list");
	enum status st = OK;
	for (uint32_t i = 0; st == OK && i < x->value->count; i++) {
		struct scrape_source *s = add_source(base, SCRAPE_FILE, FILE_REFRESH_NS);
		st = s ? read_map(x->value->v[i].value, fields, s, e) : too_many(x->value, e);
		if (st == OK && !s->file_count)
			st = conf_wrong(e, x->value->v[i].value, "files are missing");
	}
	return st;
}

static enum status https(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	static const struct field fields[] = {
		{ "url", text, offsetof(struct scrape_source, url), NULL },
		{ "refresh_interval", duration, offsetof(struct scrape_source, refresh_ns), NULL },
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
		st = s ? read_map(n, fields, s, e) : too_many(x->value, e);
		if (st == OK && (!s->url || (!str_starts(str_of(s->url), STR("http://")) &&
						    !str_starts(str_of(s->url), STR("https://")))))
			st = conf_wrong(e, n, "url must begin with http:// or https://");
		if (st == OK && s->refresh_ns < INTERVAL_MIN_NS)
			st = conf_wrong(e, n, "refresh_interval must be 1s or more");
		if (st == OK)
			st = check_client(&s->client, n, e);
	}
	return st;
}

/* ---- profiles ---- */

static enum status keep(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
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

/* What a default profile is said nothing of stays; but delta, as in Parca, must be said again. */
static enum status pprof(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	static const struct field fields[] = {
		{ "enabled", boolean, offsetof(struct scrape_profile, enabled), NULL },
		{ "path", text, offsetof(struct scrape_profile, path), NULL },
		{ "delta", boolean, offsetof(struct scrape_profile, delta), NULL },
		{ "seconds", number, offsetof(struct scrape_profile, seconds), NULL },
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
		s = read_map(y->value, fields, p, e);
		if (s == OK && p->enabled && (!p->path || p->path[0] != '/'))
			s = conf_wrong(e, y->value, "path must begin with a '/'");
	}
	return s;
}

static enum status profiling(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	static const struct field fields[] = {
		{ "path_prefix", text, offsetof(struct scrape_job, path_prefix), NULL },
		{ "pprof_config", pprof, 0, NULL },
		{ 0 },
	};
	(void)f;
	return read_map(x->value, fields, base, e);
}

/* ---- jobs ---- */

static enum status params(
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
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
	const struct conf_entry *x, void *base, const struct field *f, struct err *e)
{
	struct scrape_job *job = base;
	(void)f;
	return relabel_read(x->value, &job->rules, e);
}

#define J(member) offsetof(struct scrape_job, member)
#define DISCOVERY(name)                                                              \
	{                                                                            \
		name "_sd_configs", refuse, 0, "firn does not find targets this way" \
	}

static const struct field job_fields[] = {
	{ "job_name", text, J(name), NULL },
	{ "params", params, 0, NULL },
	{ "scrape_interval", duration, J(interval_ns), NULL },
	{ "scrape_timeout", duration, J(timeout_ns), NULL },
	{ "scheme", text, J(scheme), NULL },
	{ "normalized_addresses", ignore, 0, NULL },
	{ "profiling_config", profiling, 0, NULL },
	{ "relabel_configs", rules, 0, NULL },
	CLIENT_FIELDS(J(client)),
	{ "static_configs", statics, 0, NULL },
	{ "file_sd_configs", files, 0, NULL },
	{ "http_sd_configs", https, 0, NULL },
	DISCOVERY("dns"),
	DISCOVERY("consul"),
	DISCOVERY("kubernetes"),
	DISCOVERY("ec2"),
	DISCOVERY("lightsail"),
	DISCOVERY("azure"),
	DISCOVERY("gce"),
	DISCOVERY("digitalocean"),
	DISCOVERY("docker"),
	DISCOVERY("dockerswarm"),
	DISCOVERY("eureka"),
	DISCOVERY("hetzner"),
	DISCOVERY("ionos"),
	DISCOVERY("kuma"),
	DISCOVERY("linode"),
	DISCOVERY("marathon"),
	DISCOVERY("nerve"),
	DISCOVERY("serverset"),
	DISCOVERY("nomad"),
	DISCOVERY("openstack"),
	DISCOVERY("ovhcloud"),
	DISCOVERY("puppetdb"),
	DISCOVERY("scaleway"),
	DISCOVERY("stackit"),
	DISCOVERY("triton"),
	DISCOVERY("uyuni"),
	DISCOVERY("vultr"),
	{ 0 },
};

static uint64_t hash_node(const struct conf_node *n, uint64_t seed)
{
	uint64_t h = hash_u64(seed ^ hash64(n->text.p, n->text.len) ^ n->kind);
	for (uint32_t i = 0; i < n->count; i++) {
		h = hash_u64(h ^ hash64(n->v[i].key.p, n->v[i].key.len));
		h = hash_node(n->v[i].value, h);
	}
	return h;
}

/* What finds and names targets is left out: their labels say it. */
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
	return check_client(&job->client, n, e);
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
	enum status s = read_map(n, job_fields, job, e);
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
		for (uint32_t k = 0; k < job->source_count; k++) {
			VEC_FREE(&job->sources[k].groups);
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
