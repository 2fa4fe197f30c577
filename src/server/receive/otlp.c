/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles, over gRPC and over HTTP with protobuf or JSON. The answer is given when the
 * samples are durable. A message sent again is recognised by the hash of its bytes and stored once.
 * Source: opentelemetry.io/docs/specs/otlp (1.11): statuses, google.rpc.Status as the body of HTTP
 * errors, Retry-After; JSON with ids in hexadecimal, unknown fields ignored.
 */
#include "otlp/otlp.h"
#include "pb/pb.h"
#include "schema/schema.h"
#include "server/receive/otlp.h"
#include "server/receive/receive.h"
#include "server/request/request.h"

#include <stdio.h>

/* ---- bodies of any signal ---- */

static bool type_is(const struct net_request *r, const char *type)
{
	struct str got = net_header_find(r, "content-type");
	got = str_trim(str_sub(got, 0, str_index(got, ';')));
	return str_eq_nocase(got, str_of(type));
}

enum status server_otlp_body_read(const struct net_request *r, const struct pb_desc *d,
	struct server_otlp_body *out, struct err *e)
{
	*out = (struct server_otlp_body){ .message = r->body };
	buf_init(&out->made, NET_BODY_MAX);
	if (r->is_rpc || type_is(r, "application/x-protobuf") || type_is(r, "application/protobuf"))
		return OK;
	if (!type_is(r, "application/json")) {
		out->bad_type = true;
		return err_set(e, E_UNSUPPORTED,
			"content-type must be application/x-protobuf or application/json");
	}
	out->json = true;
	enum status s = pb_json_decode(d, r->body, PB_IGNORE_UNKNOWN, &out->made, e);
	out->message = buf_view(&out->made);
	return s;
}

void server_otlp_body_deinit(struct server_otlp_body *b)
{
	buf_deinit(&b->made);
}

/* google.rpc.Status { int32 code = 1; string message = 2; } */
static void fail(const struct net_request *r, const struct server_otlp_body *b, enum status st,
	const struct err *e, struct net_response *out)
{
	net_fail(out, st, e);
	if (r->is_rpc)
		return;
	if (b->bad_type)
		out->http_status = 415;
	buf_clear(&out->body);
	if (b->json) {
		buf_printf(&out->body, "{\"code\":%d,\"message\":", status_grpc(st));
		buf_json_str(&out->body, str_of(out->message));
		buf_u8(&out->body, '}');
		out->content_type = "application/json";
		return;
	}
	pb_put_u64(&out->body, 1, (uint64_t)status_grpc(st));
	pb_put_str(&out->body, 2, str_of(out->message));
	out->content_type = "application/x-protobuf";
}

void server_otlp_answer(const struct net_request *r, const struct server_otlp_body *b,
	const struct pb_desc *d, enum status st, const struct err *e, struct net_response *out)
{
	if (st != OK) {
		fail(r, b, st, e, out);
		return;
	}
	out->content_type = b->json ? "application/json" : "application/x-protobuf";
	if (!b->json)
		return;
	struct buf json;
	struct err failure;
	buf_init(&json, NET_ANSWER_MAX);
	st = pb_json_encode(d, buf_view(&out->body), 0, &json, &failure);
	if (st != OK) {
		fail(r, b, st, &failure, out);
	} else {
		struct buf message = out->body;
		out->body = json;
		json = message;
	}
	buf_deinit(&json);
}

/* ---- profiles ---- */

#define OTLP_METRICS(X)                                                              \
	X(index, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"index\"}",     \
		"Profiles left out of OTLP messages, whole or (samples) in part.")   \
	X(time, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"time\"}",       \
		"Profiles left out of OTLP messages, whole or (samples) in part.")   \
	X(period, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"period\"}",   \
		"Profiles left out of OTLP messages, whole or (samples) in part.")   \
	X(type, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"type\"}",       \
		"Profiles left out of OTLP messages, whole or (samples) in part.")   \
	X(values, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"values\"}",   \
		"Profiles left out of OTLP messages, whole or (samples) in part.")   \
	X(limit, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"limit\"}",     \
		"Profiles left out of OTLP messages, whole or (samples) in part.")   \
	X(samples, COUNTER, "firn_otlp_rejected_profiles_total{reason=\"samples\"}", \
		"Profiles left out of OTLP messages, whole or (samples) in part.")
struct otlp_metrics {
	OTLP_METRICS(METRIC_FIELD)
};
static const struct metric_def otlp_defs[] = { OTLP_METRICS(METRIC_DEF) };

const struct server_protocol server_protocol_otlp = {
	.ingest = { .name = "otlp", .own = otlp_defs, .own_count = ARRAY_COUNT(otlp_defs) },
};

/* Adds the refused samples to the rejects; the first reason is kept. */
static void merge_rejects(struct otlp_rejects *rejects, const struct profile_refused *refused)
{
	if (refused->samples == 0)
		return;
	if (rejects->reason[0] == 0)
		snprintf(rejects->reason, sizeof(rejects->reason), "%llu samples were refused: %s",
			(unsigned long long)refused->samples, refused->reason);
	rejects->profiles += rejects->profiles == 0;
}

static void count_rejects(struct otlp_metrics *m, const struct otlp_rejects *rejects,
	const struct profile_refused *refused)
{
	metric_value *const reasons[] = { &m->index, &m->time, &m->period, &m->type, &m->values,
		&m->limit };
	static_assert(ARRAY_COUNT(reasons) == OTLP_REJECTS_COUNT, "a reason without a counter");
	for (size_t i = 0; i < ARRAY_COUNT(reasons); i++)
		metric_add(reasons[i], rejects->by_reason[i]);
	metric_add(&m->samples, refused->samples > 0);
}

static enum status store_message(struct ingest_batch *b, const struct server_inlet *in,
	const struct net_request *r, struct str message, struct otlp_rejects *rejects,
	struct err *e)
{
	enum status st = server_batch_begin(b, in, r, message.len, e);
	if (st == OK)
		st = otlp_decode(message, &b->profile, rejects, e);
	if (st == OK)
		st = ingest_batch_put(b, hash128(message.p, message.len), e);
	if (st != OK)
		return st;
	count_rejects(ingest_own(in->in), rejects, &b->refused);
	merge_rejects(rejects, &b->refused);
	return OK;
}

void server_handle_otlp(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server_inlet *in = ctx;
	const struct pb_method *method = &schema_otlp_profiles_service.methods[0];
	struct otlp_rejects rejects = { 0 };
	struct server_otlp_body body;
	struct ingest_batch b;
	struct err e = { 0 };
	ingest_batch_init(&b, in->in, r->peer, r->body.len);
	enum status st = server_otlp_body_read(r, method->input, &body, &e);
	if (st == OK)
		st = store_message(&b, in, r, body.message, &rejects, &e);
	if (st == OK)
		otlp_encode_response(&rejects, &out->body);
	ingest_batch_end(&b, st, st == OK ? rejects.reason : err_text(&e, st));
	server_otlp_answer(r, &body, method->output, st, &e, out);
	server_otlp_body_deinit(&body);
}
