/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes targets of an address that discovery found: labels of the group and the job, then the
 * relabelling rules, then the URL from the labels __scheme__, __address__, __profile_path__ and
 * __param_…. The order is that of Prometheus and Parca.
 */
#include "scrape/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

#define TARGET_BYTES ((size_t)256 << 10)
#define PARAM "__param_"

static void put(struct relabel_set *set, const char *name, struct str value)
{
	if (!relabel_set_get(set, str_of(name)).len)
		relabel_set_put(set, str_of(name), value);
}

static void put_found(const struct discover_labels *l, struct relabel_set *set)
{
	for (uint32_t i = 0; i < l->count; i++)
		put(set, l->v[i].name, str_of(l->v[i].value));
}

static void put_discovered(const struct scrape_job *job, const struct scrape_profile *profile,
	const struct scrape_group *g, struct str address, struct relabel_set *set)
{
	relabel_set_put(set, STR("__address__"), address);
	for (uint32_t i = 0; g->labels && i < g->labels->count; i++)
		relabel_set_put(set, g->labels->v[i].key, g->labels->v[i].value->text);
	if (g->found) {
		put_found(&g->found->own, set);
		if (g->found->shared)
			put_found(g->found->shared, set);
	}
	if (g->meta_name)
		relabel_set_put(set, str_of(g->meta_name), str_of(g->meta_value));
	put(set, "job", str_of(job->name));
	put(set, "__scheme__", str_of(job->scheme));
	put(set, "__profile_path__", str_of(profile->path));
	put(set, "__name__", str_of(profile->name));
	for (uint32_t i = 0; i < job->param_count; i++) {
		char name[256];
		snprintf(name, sizeof(name), PARAM "%s", job->params[i].name);
		char *copy = arena_copy(set->arena, name, strlen(name));
		if (job->params[i].values->count && copy)
			put(set, copy, job->params[i].values->v[0].value->text);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct scrape_label *)a)->name, ((const struct scrape_label *)b)->name);
}

static const char *keep(struct arena *a, struct str s)
{
	return arena_copy(a, s.p ? s.p : "", s.len); /* ends with a NUL */
}

/* Copies the labels of the set that are stored, or all. */
static enum status copy_labels(const struct relabel_set *set, bool all, struct arena *a,
	struct scrape_label **out, size_t *out_count)
{
	size_t n = 0;
	struct scrape_label *v = arena_alloc(a, (set->count + 1) * sizeof(*v), _Alignof(void *));
	for (uint32_t i = 0; v && i < set->count; i++) {
		if (!set->v[i].value.len || (!all && str_starts(set->v[i].name, STR("__"))))
			continue;
		v[n] = (struct scrape_label){ keep(a, set->v[i].name), keep(a, set->v[i].value) };
		if (!v[n].name || !v[n].value)
			return arena_status(a);
		n++;
	}
	if (!v)
		return arena_status(a);
	qsort(v, n, sizeof(*v), by_name);
	*out = v;
	*out_count = n;
	return OK;
}

/* ---- the URL ---- */

static void put_escaped(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || (c && strchr("-_.~", c));
		buf_printf(b, plain ? "%c" : "%%%02X", c);
	}
}

static void put_param(struct buf *b, bool *first, struct str name, struct str value)
{
	buf_u8(b, *first ? '?' : '&');
	*first = false;
	put_escaped(b, name);
	buf_u8(b, '=');
	put_escaped(b, value);
}

/* Adds parameters: a label has the first value of each, the job the others. */
static void put_params(struct buf *b, const struct scrape_job *job,
	const struct scrape_profile *profile, const struct relabel_set *set)
{
	bool first = true;
	for (uint32_t i = 0; i < set->count; i++)
		if (str_starts(set->v[i].name, STR(PARAM)) && set->v[i].value.len)
			put_param(b, &first,
				str_sub(set->v[i].name, strlen(PARAM), set->v[i].name.len),
				set->v[i].value);
	for (uint32_t i = 0; i < job->param_count; i++)
		for (uint32_t k = 1; k < job->params[i].values->count; k++)
			put_param(b, &first, str_of(job->params[i].name),
				job->params[i].values->v[k].value->text);
	if (profile->delta && !relabel_set_get(set, STR(PARAM "seconds")).len) {
		char seconds[24];
		uint64_t n = profile->seconds ? profile->seconds
					      : (uint64_t)(job->interval_ns / NS_PER_SEC);
		snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)n);
		put_param(b, &first, STR("seconds"), str_of(seconds));
	}
}

static bool has_port(struct str address)
{
	size_t colon = str_rindex(address, ':');
	size_t bracket = str_rindex(address, ']');
	return colon < address.len && (bracket == address.len || colon > bracket);
}

/* The error for a bad address, without its part that may be a password. */
static enum status bad_address(struct str address, struct err *e)
{
	size_t at = str_rindex(address, '@');
	if (at < address.len)
		address = str_sub(address, at, address.len);
	return err_set(
		e, E_INVALID, "\"%.*s\" is not a valid address", STR_ARG(str_sub(address, 0, 200)));
}

static enum status make_url(struct scrape_target *t, struct relabel_set *set, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, FETCH_URL_MAX - 1);
	struct str scheme = relabel_set_get(set, STR("__scheme__"));
	struct str address = relabel_set_get(set, STR("__address__"));
	struct str path = relabel_set_get(set, STR("__profile_path__"));
	if (!address.len)
		return err_set(e, E_INVALID, "the target has no __address__");
	for (size_t i = 0; i < address.len; i++)
		if (address.p[i] <= ' ' || address.p[i] > '~' || strchr("/@?#", address.p[i]))
			return bad_address(address, e);
	if (!str_eq(scheme, STR("http")) && !str_eq(scheme, STR("https")))
		return err_set(e, E_INVALID, "__scheme__ is neither http nor https");
	buf_printf(&b, "%.*s://%.*s%s", STR_ARG(scheme), STR_ARG(address),
		has_port(address)              ? ""
		: str_eq(scheme, STR("https")) ? ":443"
					       : ":80");
	if (t->job->path_prefix[0] && t->job->path_prefix[0] != '/')
		buf_u8(&b, '/');
	buf_printf(&b, "%.*s%s%.*s",
		(int)(strlen(t->job->path_prefix) -
			str_ends(str_of(t->job->path_prefix), STR("/"))),
		t->job->path_prefix, path.len && path.p[0] == '/' ? "" : "/", STR_ARG(path));
	put_params(&b, t->job, t->profile, set);
	t->url = keep(&t->arena, buf_view(&b));
	return buf_status(&b) == OK && t->url ? OK
					      : err_set(e, E_LIMIT, "the target's URL is too long");
}

/* ---- the whole ---- */

static void set_key(struct scrape_target *t)
{
	uint64_t h = hash_u64(
		t->job->settings ^ t->dropped ^ hash64(t->job->name, strlen(t->job->name)));
	const struct scrape_label *v = t->dropped ? t->discovered : t->labels;
	size_t count = t->dropped ? t->discovered_count : t->label_count;
	h = hash_u64(h ^ hash64(t->profile->name, strlen(t->profile->name)));
	for (size_t i = 0; i < count; i++) {
		h = hash_u64(h ^ hash64(v[i].name, strlen(v[i].name)));
		h = hash_u64(h ^ hash64(v[i].value, strlen(v[i].value)));
	}
	if (t->url)
		h = hash_u64(h ^ hash64(t->url, strlen(t->url)));
	if (t->name)
		h = hash_u64(h ^ hash64(t->name, strlen(t->name)));
	t->key = h;
}

static enum status fill(struct scrape_target *t, const struct scrape_group *g, struct str address,
	struct relabel_set *set, struct err *e)
{
	bool keeps = true;
	put_discovered(t->job, t->profile, g, address, set);
	enum status s = copy_labels(set, true, &t->arena, &t->discovered, &t->discovered_count);
	if (s == OK && t->job->rules)
		s = relabel_apply(t->job->rules, set, &keeps, e);
	if (s != OK || set->failed)
		return err_set(e, s == OK ? E_LIMIT : s, "too many labels");
	t->dropped = !keeps;
	if (t->dropped)
		return OK;
	s = make_url(t, set, e);
	if (s != OK)
		return s;
	put(set, "instance", relabel_set_get(set, STR("__address__")));
	t->name = keep(&t->arena, relabel_set_get(set, STR("__name__")));
	if (!t->name || !t->name[0])
		return err_set(e, E_INVALID, "the target has no __name__");
	s = copy_labels(set, false, &t->arena, &t->labels, &t->label_count);
	return s == OK ? OK : err_set(e, s, "too many labels");
}

enum status scrape_target_make(struct scrape_config *c, const struct scrape_job *job,
	const struct scrape_profile *profile, const struct scrape_group *g, struct str address,
	struct scrape_target **out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a = { 0 };
	struct scrape_target *t = calloc(1, sizeof(*t));
	struct relabel_set *set = calloc(1, sizeof(*set));
	if (!t || !set) {
		free(t);
		free(set);
		return err_set(e, E_NOMEM, "targets");
	}
	t->wake_fd = -1;
	t->job = job;
	t->profile = profile;
	arena_init(&t->arena, TARGET_BYTES);
	arena_init(&a, TARGET_BYTES);
	relabel_set_init(set, &a);
	enum status s = fill(t, g, address, set, e);
	free(set);
	if (s != OK) {
		scrape_target_free(t);
		return s;
	}
	set_key(t);
	t->config = c;
	atomic_fetch_add(&c->refs, 1);
	*out = t;
	return OK;
}

void scrape_target_free(struct scrape_target *t)
{
	if (!t)
		return;
	if (t->wake_fd >= 0)
		close(t->wake_fd);
	arena_deinit(&t->arena);
	scrape_config_unref(t->config);
	free(t);
}
