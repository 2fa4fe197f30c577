/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target's thread: it waits for the next scrape, fetches, decodes, hands over and notes the
 * result. The time of scrapes within the interval is taken from the target's hash, so that scrapes
 * of many targets are spread over it and keep their times after a restart. A profile that lasts the
 * whole interval ends just after the next scrape's time: that scrape is then late, not left out.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "codec/codec.h"
#include "pprof/pprof.h"
#include "scrape/internal.h"

#define EXPANSION 4 /* most profiles are gzip */
#define SHOWN_BYTES 80
#define FORWARD_PROFILE_BYTES ((size_t)256 << 20)

const struct ingest_protocol scrape_protocol = {
	.name = "scrape", .expansion = EXPANSION, .asks = true
};

/* ---- one scrape ---- */

static enum status refused(int code, const struct buf *body, struct err *e)
{
	struct str line = str_sub(buf_view(body), 0, SHOWN_BYTES);
	line = str_trim(str_sub(line, 0, str_index(line, '\n')));
	bool html = line.len && line.p[0] == '<';
	return err_set(e, E_INVALID, "server returned HTTP status %d%s%.*s", code,
		line.len && !html ? ": " : "", html ? 0 : (int)line.len, line.p ? line.p : "");
}

static bool kept(const struct scrape_profile *sp, const struct profile *p, uint32_t type)
{
	const struct profile_type *t = &p->types.v[type];
	for (uint32_t i = 0; i < sp->keep_count; i++)
		if (str_eq(strtab_get(&p->strings, t->sample_type), str_of(sp->keep[i].type)) &&
			str_eq(strtab_get(&p->strings, t->sample_unit), str_of(sp->keep[i].unit)))
			return true;
	return sp->keep_count == 0;
}

static void drop_types(const struct scrape_profile *sp, struct profile *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->samples.len; i++)
		if (kept(sp, p, p->heads.v[p->samples.v[i].head].type))
			p->samples.v[n++] = p->samples.v[i];
	p->samples.len = n;
}

static enum status add_labels(
	const struct scrape_target *t, struct profile *p, uint32_t *out, struct err *e)
{
	struct profile_label v[PROFILE_LABELS_MAX];
	uint32_t n = 0;
	if (t->label_count > ARRAY_COUNT(v))
		return err_set(e, E_LIMIT, "more than %zu labels", ARRAY_COUNT(v));
	for (size_t i = 0; i < t->label_count; i++, n++) {
		enum status s = profile_add_name(p, str_of(t->labels[i].name), &v[n].name);
		if (s == OK)
			s = profile_add_string(p, str_of(t->labels[i].value), &v[n].value);
		if (s != OK)
			return err_set(e, s, "labels");
	}
	return profile_add_labels(p, v, n, out);
}

static enum status decode(struct scrape_target *t, struct str body, int64_t begun_ns,
	struct profile *p, struct err *e)
{
	CLEANUP(buf_deinit) struct buf plain;
	struct pprof_options o = { .name = str_of(t->name), .time_ns = begun_ns };
	buf_init(&plain, SCRAPE_ANSWER_MAX);
	enum status s = add_labels(t, p, &o.resource, e);
	if (s == OK && codec_is_gzip(body.p, body.len)) {
		s = codec_gunzip(body.p, body.len, &plain, e);
		body = buf_view(&plain);
	}
	if (s == OK && body.len && body.p[0] == '<')
		return err_set(e, E_INVALID, "the answer is HTML, and no profile");
	if (s == OK)
		s = pprof_decode_with(body, &o, p, e);
	if (s != OK)
		return err_prefix(e, s, "the answer is no profile");
	drop_types(t->profile, p);
	return OK;
}

/* An id for the body and its time: equal answers, of a program that has done nothing since, are
 * different profiles. */
static struct hash128 id_of(const struct scrape_target *t, struct str body, int64_t begun_ns)
{
	struct hash128 id = hash128(body.p, body.len);
	id.lo = hash_u64(id.lo ^ t->key);
	id.hi = hash_u64(id.hi ^ (uint64_t)begun_ns);
	return id;
}

static enum status take(struct scrape_target *t, struct str body, struct err *e)
{
	struct ingest_batch b;
	ingest_batch_init(&b, t->pool->inlet, t->url, body.len);
	enum status s = ingest_batch_begin(&b, STR(""), body.len, e);
	if (s == OK)
		s = decode(t, body, b.begun_ns, &b.profile, e);
	if (s == OK)
		s = ingest_batch_put(&b, id_of(t, body, b.begun_ns), e);
	if (s == OK)
		s = ingest_batch_verdict(&b, e);
	ingest_batch_end(&b, s, s == OK ? "" : err_text(e, s));
	return s;
}

/* Sends the body on unchanged, or without the types that are left out. A body that is not a profile
 * is dropped. */
static enum status forward(struct scrape_target *t, struct str body, struct err *e)
{
	CLEANUP(profile_deinit) struct profile p;
	CLEANUP(buf_deinit) struct buf kept;
	buf_init(&kept, SCRAPE_ANSWER_MAX);
	enum status s = profile_init(&p, FORWARD_PROFILE_BYTES);
	if (s == OK)
		s = decode(t, body, clock_realtime_ns(), &p, e);
	if (s == OK && t->profile->keep_count) {
		for (size_t i = 0; i < p.samples.len; i++)
			p.samples.v[i].resource = 0; /* labels are passed separately */
		s = pprof_encode(&p, &kept, e);
		body = buf_view(&kept);
	}
	return s == OK ? t->pool->forward(t->pool->forward_ctx, t->labels, t->label_count, t->name,
				 body, t->wake_fd, e)
		       : s;
}

static enum status scrape_once(struct scrape_target *t, struct fetch *f, struct err *e)
{
	CLEANUP(buf_deinit) struct buf body;
	int code = 0;
	buf_init(&body, SCRAPE_ANSWER_MAX);
	enum status s = client_present(&t->job->client, f, t->wake_fd, e);
	if (s == OK)
		s = fetch_get(f, t->url, t->job->timeout_ns, &code, &body, e);
	if (s == OK && code == 401)
		client_refused(&t->job->client);
	if (s == OK && code != 200)
		s = refused(code, &body, e);
	if (s == OK && !body.len)
		s = err_set(e, E_INVALID, "the answer is empty");
	if (s != OK)
		return s;
	return t->pool->forward ? forward(t, buf_view(&body), e) : take(t, buf_view(&body), e);
}

/* ---- the thread ---- */

enum wake { WAKE_DUE, WAKE_CLOCK_SET, WAKE_END };

static enum wake wait_until(struct scrape_target *t, int64_t at_ns)
{
	for (;;) {
		int64_t left = at_ns - clock_realtime_ns();
		struct pollfd p = { .fd = t->wake_fd, .events = POLLIN };
		if (left > t->job->interval_ns)
			return WAKE_CLOCK_SET;
		if (left <= 0)
			left = 0;
		/* At most ten seconds at a time, since the clock may be set. */
		int ms = (int)MIN(left / NS_PER_MS + (left > 0), (int64_t)10000);
		if (poll(&p, 1, ms) > 0)
			return WAKE_END;
		if (at_ns - clock_realtime_ns() <= 0)
			return WAKE_DUE;
	}
}

static void note(struct scrape_target *t, enum status s, int64_t begun_ns, int64_t took_ns,
	const struct err *e)
{
	metric_add(&t->pool->metrics.scrapes, 1);
	if (s != OK)
		metric_add(&t->pool->metrics.failed, 1);
	lock_take(&t->pool->lock);
	t->last_ns = begun_ns;
	t->took_ns = took_ns;
	t->health = s == OK ? SCRAPE_GOOD : SCRAPE_BAD;
	snprintf(t->error, sizeof(t->error), "%s", s == OK ? "" : err_text(e, s));
	lock_release(&t->pool->lock);
}

bool scrape_is_news(struct scrape_target *t, bool bad, int64_t now_ns)
{
	if (bad == t->told_bad || (t->told_ns && now_ns - t->told_ns < SCRAPE_TOLD_NS))
		return false;
	t->told_bad = bad;
	t->told_ns = now_ns;
	return true;
}

/* Whether "http://host:port" is the same in both. */
static bool same_server(const char *a, const char *b)
{
	int slashes = 0;
	for (; *a && *a == *b; a++, b++)
		if (*a == '/' && ++slashes == 3)
			return true;
	return *a == *b;
}

bool scrape_is_told_of_another(const struct scrape_target *t)
{
	int64_t lately_ns = MAX(SCRAPE_TOLD_NS, 2 * t->job->interval_ns);
	for (size_t i = 0; i < t->pool->targets.len; i++) {
		const struct scrape_target *o = t->pool->targets.v[i];
		if (o && o != t && o->told_ns && o->told_bad == t->told_bad &&
			t->told_ns - o->told_ns < lately_ns &&
			strcmp(o->job->name, t->job->name) == 0 && same_server(o->url, t->url))
			return true;
	}
	return false;
}

static bool is_news(struct scrape_target *t, bool bad)
{
	lock_take(&t->pool->lock);
	bool news = scrape_is_news(t, bad, clock_monotonic_ns()) && !scrape_is_told_of_another(t);
	lock_release(&t->pool->lock);
	return news;
}

static void tell(struct scrape_target *t, enum status s, const struct err *e)
{
	bool bad = s != OK;
	const char *at = strrchr(t->url, '@'); /* user and password are not shown */
	struct err told;
	if (!t->pool->told || !is_news(t, bad))
		return;
	err_set(&told, s, "job \"%s\", %s%s%s", t->job->name, at ? at + 1 : t->url, bad ? ": " : "",
		bad ? err_text(e, s) : "");
	t->pool->told(bad ? SCRAPE_FAILS : SCRAPE_WORKS, s, &told);
}

int64_t scrape_moment(uint64_t key, int64_t interval_ns, int64_t last_ns, int64_t now_ns)
{
	int64_t next = last_ns + interval_ns;
	if (next > now_ns - interval_ns && next <= now_ns + interval_ns)
		return next;
	int64_t at = now_ns - now_ns % interval_ns + (int64_t)(key % (uint64_t)interval_ns);
	return at > now_ns ? at : at + interval_ns;
}

static void *run(void *ctx)
{
	struct scrape_target *t = ctx;
	struct fetch *f = NULL;
	struct err e = { 0 };
	enum status s = client_open(&t->job->client, NULL, &f, &e);
	if (s != OK) {
		note(t, s, clock_realtime_ns(), 0, &e);
		tell(t, s, &e);
		fetch_free(f);
		return NULL;
	}
	fetch_limit(f, SCRAPE_ANSWER_MAX);
	fetch_interrupt(f, t->wake_fd, 0);
	for (int64_t last = 0;;) {
		int64_t at = scrape_moment(t->key, t->job->interval_ns, last, clock_realtime_ns());
		lock_take(&t->pool->lock);
		t->next_ns = at;
		lock_release(&t->pool->lock);
		enum wake wake = wait_until(t, at);
		if (wake == WAKE_END)
			break;
		if (wake == WAKE_CLOCK_SET)
			continue;
		last = at;
		int64_t begun = clock_realtime_ns(), from = clock_monotonic_ns();
		e = (struct err){ 0 };
		s = scrape_once(t, f, &e);
		if (s == E_CANCELED)
			break;
		note(t, s, begun, clock_monotonic_ns() - from, &e);
		tell(t, s, &e);
	}
	fetch_free(f);
	return NULL;
}

enum status scrape_target_start(struct scrape_target *t, struct err *e)
{
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->wake_fd < 0)
		return err_os(e, "eventfd");
	enum status s = os_thread_start(&t->thread, "scrape", run, t, e);
	t->runs = s == OK;
	return s;
}

void scrape_target_wake(struct scrape_target *t)
{
	uint64_t one = 1;
	if (t->runs)
		(void)!write(t->wake_fd, &one, sizeof(one));
}

void scrape_target_join(struct scrape_target *t)
{
	if (t->runs)
		pthread_join(t->thread, NULL);
	t->runs = false;
}
