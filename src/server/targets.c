/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.scrape.v1alpha1.ScrapeService: what is scraped, how it went, and what relabelling dropped;
 * targets by job, each as message Target, and how discoveries went. POST /-/reload reads the
 * configuration file again.
 */
#include "base/log.h"
#include "pb/pb.h"
#include "server/request/request.h"
#include "server/start.h"

enum { STATE_ANY, STATE_ACTIVE, STATE_DROPPED };

struct answer {
	struct buf *out;
	uint64_t state;
	struct buf jobs; /* Targets of one job */
	const char *job;
};

/* LabelSet { labels = 1 { name = 1; value = 2 } } */
static void put_labels(struct buf *b, uint32_t field, const struct scrape_label *v, size_t count)
{
	size_t set = pb_begin(b, field);
	for (size_t i = 0; i < count; i++) {
		size_t label = pb_begin(b, 1);
		pb_put_str(b, 1, str_of(v[i].name));
		pb_put_str(b, 2, str_of(v[i].value));
		pb_end(b, label);
	}
	pb_end(b, set);
}

/* Timestamp and Duration { seconds = 1; nanos = 2 } */
static void put_time(struct buf *b, uint32_t field, int64_t ns)
{
	size_t at = pb_begin(b, field);
	pb_put_u64(b, 1, (uint64_t)(ns / NS_PER_SEC));
	pb_put_u64(b, 2, (uint64_t)(ns % NS_PER_SEC));
	pb_end(b, at);
}

/* map<string, Targets>: { key = 1; value = 2 } */
static void end_job(struct answer *a)
{
	if (!a->job)
		return;
	size_t entry = pb_begin(a->out, 1);
	pb_put_str(a->out, 1, str_of(a->job));
	pb_put_str(a->out, 2, buf_view(&a->jobs));
	pb_end(a->out, entry);
	buf_clear(&a->jobs);
}

static void put_target(void *ctx, const struct scrape_view *v)
{
	struct answer *a = ctx;
	if ((a->state == STATE_ACTIVE && v->dropped) || (a->state == STATE_DROPPED && !v->dropped))
		return;
	if (!a->job || strcmp(a->job, v->job) != 0) {
		end_job(a);
		a->job = v->job;
	}
	struct buf *b = &a->jobs;
	size_t at = pb_begin(b, 1);
	put_labels(b, 1, v->discovered, v->discovered_count);
	put_labels(b, 2, v->labels, v->label_count);
	pb_put_str(b, 3, str_of(v->error));
	if (v->last_ns) {
		put_time(b, 4, v->last_ns);
		put_time(b, 5, v->took_ns);
	}
	pb_put_str(b, 6, str_of(v->url));
	pb_put_u64(b, 7, v->health);
	if (v->next_ns && !v->dropped)
		put_time(b, 1000, v->next_ns);
	pb_put_bool(b, 1001, v->dropped);
	pb_end(b, at);
}

static void put_discovery(void *ctx, const struct scrape_discovery *d)
{
	struct buf *b = ctx;
	size_t at = pb_begin(b, 1000);
	pb_put_str(b, 1, str_of(d->job));
	pb_put_str(b, 2, str_of(d->key));
	pb_put_u64(b, 3, d->found);
	pb_put_str(b, 4, str_of(d->error));
	pb_end(b, at);
}

static enum status read_state(struct str message, uint64_t *out, struct err *e)
{
	struct reader reader = reader_over(message.p, message.len);
	struct pb_field f;
	*out = STATE_ANY;
	while (pb_next(&reader, &f)) {
		if (f.number == 1 && f.wire != PB_VARINT)
			return err_set(e, E_INVALID, "state is not a number");
		if (f.number == 1)
			*out = f.u64;
	}
	if (reader.failed)
		return err_set(e, E_INVALID, "TargetsRequest: malformed at byte %zu",
			reader_offset(&reader));
	return OK;
}

void server_targets(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	struct answer a = { .out = &out->body };
	struct err e;
	enum status st = read_state(r->body, &a.state, &e);
	buf_init(&a.jobs, NET_BODY_MAX);
	if (st == OK && atomic_load_explicit(&s->ready, memory_order_acquire) && s->scrape) {
		scrape_each(s->scrape, put_target, &a);
		end_job(&a);
		scrape_each_discovery(s->scrape, put_discovery, a.out);
		st = buf_status(&a.jobs) != OK ? err_set(&e, E_LIMIT, "too many targets") : OK;
	}
	buf_deinit(&a.jobs);
	if (st != OK)
		net_fail(out, st, &e);
}

void server_reloaded(enum status s, const struct err *e)
{
	char text[ERR_TEXT_MAX + 8];
	if (s == OK)
		log_info("configuration read again", "status=OK");
	else
		log_warn("configuration stays as it was", "err=%s",
			log_quote(str_of(err_text(e, s)), text, sizeof(text)));
}

void server_scrape_told(enum scrape_news of, enum status s, const struct err *e)
{
	if (of == SCRAPE_CONFIG)
		server_reloaded(s, e);
	else if (of == SCRAPE_FAILS)
		log_warn("a target gives no profile", "err=%s", LOG_QUOTED(err_text(e, s)));
	else if (of == SCRAPE_WORKS)
		log_info("a target gives profiles again", "target=%s", LOG_QUOTED(e->text));
	else
		log_warn("targets cannot be found", "err=%s", LOG_QUOTED(err_text(e, s)));
}

void server_handle_reload(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	struct err e = { 0 };
	(void)r;
	if (!server_is_ready(s, out))
		return;
	enum status st = s->scrape ? scrape_reload(s->scrape, &e)
				   : err_set(&e, E_INVALID, "there is no configuration file");
	if (s->scrape)
		server_reloaded(st, &e);
	if (st != OK)
		net_fail(out, st, &e);
	else
		buf_cstr(&out->body, "ok\n");
}
