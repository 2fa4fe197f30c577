/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of agents other than profiles. TelemetryService/ReportPanic is logged. OTLP's traces,
 * logs and metrics are acknowledged, so that an agent that exports them on the same connection goes
 * on; their spans, records and metrics are counted, nothing is kept.
 */
#include "base/log.h"
#include "pb/pb.h"
#include "schema/schema.h"
#include "server/receive/otlp.h"
#include "server/receive/receive.h"
#include "server/request/request.h"

#define PANIC_BYTES_MAX 3000 /* bytes of the text that are logged */

void server_report_panic(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	struct reader reader = reader_over(r->body.p, r->body.len);
	struct pb_field f;
	struct str text = STR("");
	char quoted[PANIC_BYTES_MAX + 256];
	while (pb_next(&reader, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			text = f.bytes;
	if (reader.failed) {
		struct err e;
		net_fail(out,
			err_set(&e, E_INVALID, "ReportPanicRequest: malformed at byte %zu",
				reader_offset(&reader)),
			&e);
		return;
	}
	metric_add(&s->metrics.panics, 1);
	/* The end says what happened; the beginning is often a log. */
	if (text.len > PANIC_BYTES_MAX)
		text = str_sub(text, text.len - PANIC_BYTES_MAX, PANIC_BYTES_MAX);
	log_warn("agent panicked", "peer=%s stderr=%s", r->peer,
		log_quote(text, quoted, sizeof(quoted)));
}

/* Request, resource and scope have their lists in fields 1, 2 and 2: the elements of the last.
 * False: malformed. */
static bool count_items(struct str bytes, int depth, uint64_t *io_count)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint32_t list = depth == 2 ? 1 : 2;
	bool sound = true;
	while (sound && pb_next(&r, &f)) {
		if (f.number != list || f.wire != PB_BYTES)
			continue;
		if (depth == 0)
			(*io_count)++;
		else
			sound = count_items(f.bytes, depth - 1, io_count);
	}
	return sound && !r.failed;
}

static void acknowledge(struct server *s, const struct net_request *r, struct net_response *out,
	const struct pb_service *service, metric_value *items)
{
	struct server_otlp_body body;
	struct err e = { 0 };
	uint64_t count = 0;
	metric_add(&s->metrics.otlp_requests, 1);
	metric_add(&s->metrics.otlp_bytes, r->body.len);
	enum status st = server_otlp_body_read(r, service->methods[0].input, &body, &e);
	if (st == OK && !count_items(body.message, 2, &count))
		st = err_set(&e, E_INVALID, "%s: malformed", service->methods[0].input->name);
	if (st == OK)
		metric_add(items, count);
	else
		metric_add(&s->metrics.otlp_failed, 1);
	/* An empty answer: everything was taken. */
	server_otlp_answer(r, &body, service->methods[0].output, st, &e, out);
	server_otlp_body_deinit(&body);
}

void server_otlp_traces(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	acknowledge(s, r, out, &schema_otlp_trace_service, &s->metrics.otlp_spans);
}

void server_otlp_logs(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	acknowledge(s, r, out, &schema_otlp_logs_service, &s->metrics.otlp_logs);
}

void server_otlp_metrics(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	acknowledge(s, r, out, &schema_otlp_metrics_service, &s->metrics.otlp_metrics);
}
