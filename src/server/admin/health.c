/* SPDX-License-Identifier: Apache-2.0 */
/* /healthy, /ready, /metrics. */
#include "base/clock.h"
#include "os/os.h"
#include "server/admin/admin.h"
#include "server/admin/handover.h"
#include "server/request/request.h"
#include "trace/trace.h"

static const struct metric_def defs[] = { SERVER_METRICS(METRIC_DEF) };

void server_handle_healthy(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "text/plain; charset=utf-8";
	buf_cstr(&out->body, "healthy\n");
}

void server_handle_ready(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)r;
	struct server *s = (struct server *)ctx;
	if (!server_is_ready(s, out))
		return;
	if (atomic_load(&s->leaving)) {
		struct err e;
		net_fail(out, err_set(&e, E_UNAVAILABLE, "the server is about to stop"), &e);
		return;
	}
	out->content_type = "text/plain; charset=utf-8";
	buf_cstr(&out->body, "ready\n");
}

static void write_process(struct buf *out)
{
	buf_printf(out,
		"# HELP process_cpu_seconds_total User and system time of this process.\n"
		"# TYPE process_cpu_seconds_total counter\n"
		"process_cpu_seconds_total %.3f\n"
		"# HELP process_resident_memory_bytes Resident memory of this process.\n"
		"# TYPE process_resident_memory_bytes gauge\n"
		"process_resident_memory_bytes %llu\n"
		"# HELP firn_build_info The version that runs.\n"
		"# TYPE firn_build_info gauge\n"
		"firn_build_info{version=\"" FIRN_VERSION "\"} 1\n",
		(double)os_self_cpu_ns() / (double)NS_PER_SEC,
		(unsigned long long)os_self_rss_bytes());
}

void server_handle_metrics(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	(void)r;
	out->content_type = "text/plain; version=0.0.4; charset=utf-8";
	write_process(&out->body);
	metrics_write(&out->body, defs, (const metric_value *)&s->metrics, ARRAY_COUNT(defs));
	ingest_write_metrics(&s->ingest, &out->body);
	net_server_write_metrics(s->net, &out->body);
	if (s->auth)
		auth_write_metrics(s->auth, &out->body);
	server_handover_write_figures(s, &out->body);
	if (!atomic_load_explicit(&s->ready, memory_order_acquire))
		return;
	scrape_write_metrics(s->scrape, &out->body);
	trace_write_metrics(s->trace, &out->body);
	store_write_metrics(s->store, &out->body);
	symbolizer_write_metrics(s->engine.symbolizer, &out->body);
	if (s->debuginfod)
		debuginfod_write_metrics(s->debuginfod, &out->body);
	if (s->uploads)
		debuginfo_uploads_write_metrics(s->uploads, &out->body);
}
