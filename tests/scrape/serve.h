/* SPDX-License-Identifier: Apache-2.0 */
/* A server of profiles in this process, and a sink that counts; both for several threads. */
#pragma once

#include <unistd.h>

#include "net/net.h"
#include "pprof/pprof.h"
#include "scrape/internal.h"
#include "test.h"

#define SERVE_UNTIL(x)                                                 \
	do {                                                           \
		int64_t end_ = clock_monotonic_ns() + 60 * NS_PER_SEC; \
		while (!(x) && clock_monotonic_ns() < end_)            \
			usleep(5000);                                  \
		CHECK(x);                                              \
	} while (0)

static struct buf serve_profile; /* time/ns and other/count, one sample each */
static atomic_int serve_asked;

static inline void serve_make_profile(void)
{
	static const char *const types[][2] = { { "time", "nanoseconds" }, { "other", "count" } };
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		struct profile_type t = { 0 };
		struct profile_head h = { .time_ns = clock_realtime_ns() };
		struct profile_sample s = { .value = 5 };
		CHECK(profile_add_type_part(&p, str_of(types[i][0]), &t.sample_type) == OK &&
			profile_add_type_part(&p, str_of(types[i][1]), &t.sample_unit) == OK &&
			profile_add_type(&p, &t, &h.type) == OK &&
			profile_add_head(&p, &h, &s.head) == OK);
		s.time_ns = h.time_ns;
		CHECK(profile_add_sample(&p, &s) == OK);
	}
	buf_init(&serve_profile, 1 << 20);
	CHECK_OK(pprof_encode(&p, &serve_profile, &e), &e);
	profile_deinit(&p);
}

/* What /sd answers: sets it, or appends it to `out`. By any thread. */
static inline void serve_list(const char *set, struct buf *out)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char list[400];
	pthread_mutex_lock(&lock);
	if (set)
		snprintf(list, sizeof(list), "%s", set);
	else
		buf_cstr(out, list);
	pthread_mutex_unlock(&lock);
}

static inline void serve(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&serve_asked, 1);
	out->content_type = "application/octet-stream";
	if (str_eq(r->path, STR("/good")))
		buf_str(&out->body, buf_view(&serve_profile));
	else if (str_eq(r->path, STR("/html")))
		buf_cstr(&out->body, "<html></html>");
	else if (str_eq(r->path, STR("/wrong")))
		buf_cstr(&out->body, "\xff\xff\xff");
	else if (str_eq(r->path, STR("/sd")))
		serve_list(NULL, &out->body);
	else if (str_eq(r->path, STR("/who")))
		buf_str(&out->body, net_header_find(r, "authorization"));
	else if (str_eq(r->path, STR("/loop"))) {
		out->http_status = 302;
		snprintf(out->headers, sizeof(out->headers), "Location: /loop\r\n");
	} else if (!str_eq(r->path, STR("/empty"))) {
		out->http_status = 418;
		buf_cstr(&out->body, "a teapot\nand more");
	}
	while (str_eq(r->path, STR("/hang")) && !r->gone(r))
		usleep(1000);
}

static inline struct net_server *serve_start(void)
{
	static const struct net_route routes[] = { { .method = "GET", .path = "/*", .fn = serve } };
	struct net_server_config c;
	struct net_server *s = NULL;
	struct err e = { 0 };
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	c.workers = 4;
	CHECK_OK(net_server_start(&c, routes, 1, &s, &e), &e);
	return s;
}

/* ---- the sink ---- */

static atomic_int sink_samples, sink_labels;
static atomic_uint_fast64_t sink_id; /* of the last batch */
static atomic_int sink_equal_ids;    /* batches that had the id of the one before */

static inline enum status sink_admit(
	struct samples_sink *s, uint64_t bytes, struct samples_entry **entry, struct err *e)
{
	(void)bytes;
	(void)e;
	*entry = (struct samples_entry *)s;
	return OK;
}

static inline void sink_keep(struct samples_sink *s, struct samples_entry *entry, uint64_t bytes)
{
	(void)s;
	(void)entry;
	(void)bytes;
}

static inline void sink_admit_end(struct samples_sink *s, struct samples_entry *entry)
{
	(void)s;
	(void)entry;
}

static inline enum status sink_put(struct samples_sink *s, struct str tenant,
	const struct profile *p, struct hash128 id, struct err *e)
{
	(void)s;
	(void)tenant;
	if (atomic_exchange(&sink_id, id.lo ^ id.hi) == (id.lo ^ id.hi))
		atomic_fetch_add(&sink_equal_ids, 1);
	CHECK_OK(profile_validate(p, e), e);
	atomic_fetch_add(&sink_samples, (int)p->samples.len);
	for (size_t i = 0; i < p->samples.len; i++)
		atomic_store(&sink_labels, (int)p->label_sets.v[p->samples.v[i].resource].count);
	return OK;
}

static inline enum status sink_health(struct samples_sink *s, struct err *e)
{
	(void)s;
	(void)e;
	return OK;
}

static inline struct ingest_inlet *sink_open(struct ingest *in)
{
	static const struct samples_sink_ops ops = { sink_admit, sink_keep, sink_admit_end,
		sink_put, sink_health };
	static struct samples_sink sink = { &ops };
	static const struct ingest_config config = { .limits = { .labels = 128,
							     .label_name_bytes = 256,
							     .label_value_bytes = 4096,
							     .stack_frames = PROFILE_STACK_MAX } };
	struct ingest_inlet *inlet = NULL;
	struct err e = { 0 };
	memset(in, 0, sizeof(*in));
	CHECK_OK(ingest_init(in, &config, &e), &e);
	CHECK_OK(ingest_inlet(in, &scrape_protocol, &inlet, &e), &e);
	ingest_open(in, &sink, NULL);
	return inlet;
}
