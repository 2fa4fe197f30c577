/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles, over gRPC and over HTTP with protobuf. The answer is given when the samples are
 * durable. A message sent again is recognised by the hash of its bytes and stored once.
 * Source: opentelemetry.io/docs/specs/otlp (1.11): statuses, google.rpc.Status as the body of HTTP
 * errors, Retry-After.
 */
#include "otlp/otlp.h"
#include "base/clock.h"
#include "pb/pb.h"
#include "server/internal.h"

/* Tables of a message in memory, against its bytes, at most: varints become integers, samples of a
 * few bytes rows. Most take a quarter of that (STORE_ADMIT_BYTES). */
#define DECODED_FACTOR 16
#define DECODED_MIN ((size_t)1 << 20)

static enum status decode_and_store(
	struct server *s, struct str message, struct otlp_rejects *rejects, struct err *e)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	enum status st = profile_init(&p, DECODED_MIN + DECODED_FACTOR * message.len);
	if (st != OK)
		return err_set(e, st, "profile of %zu bytes", message.len);
	st = otlp_decode(message, &p, rejects, e);
	if (st != OK)
		return st;
	metric_add(&s->metrics.otlp_rejected, (uint64_t)MAX(rejects->profiles, (int64_t)0));
	if (p.samples.len == 0)
		return OK;
	st = store_append(s->store, STR(""), &p, hash128(message.p, message.len), e);
	if (st == OK)
		metric_add(&s->metrics.otlp_samples, p.samples.len);
	return st;
}

static enum status store_message(
	struct server *s, struct str message, struct otlp_rejects *rejects, struct err *e)
{
	uint64_t bytes = STORE_ADMIT_BYTES(message.len);
	enum status st = store_admit(s->store, bytes, e);
	if (st != OK)
		return st;
	st = decode_and_store(s, message, rejects, e);
	store_admit_end(s->store, bytes);
	return st;
}

/* google.rpc.Status { int32 code = 1; string message = 2; } */
static void fail(
	const struct net_request *r, struct net_response *out, enum status st, const struct err *e)
{
	net_fail(out, st, e);
	if (r->is_rpc)
		return;
	/* 429 would be sent again, as long as the sender likes (OTLP/HTTP, failures). */
	if (st == E_LIMIT)
		out->http_status = 413;
	buf_clear(&out->body);
	pb_put_u64(&out->body, 1, (uint64_t)status_grpc(st));
	pb_put_str(&out->body, 2, str_of(out->message));
	out->content_type = "application/x-protobuf";
}

static bool is_protobuf(const struct net_request *r)
{
	struct str type = net_header_find(r, "content-type");
	type = str_trim(str_sub(type, 0, str_index(type, ';')));
	return str_eq_nocase(type, STR("application/x-protobuf")) ||
	       str_eq_nocase(type, STR("application/protobuf"));
}

void server_handle_otlp(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct otlp_rejects rejects = { 0 };
	struct err e = { 0 };
	metric_add(&s->metrics.otlp_requests, 1);
	metric_add(&s->metrics.otlp_bytes, r->body.len);
	enum status st;
	if (!r->is_rpc && !is_protobuf(r)) {
		st = err_set(&e, E_UNSUPPORTED,
			"content-type must be application/x-protobuf; OTLP in JSON is not taken");
		net_fail(out, st, &e);
		out->http_status = 415;
		metric_add(&s->metrics.otlp_failed, 1);
		return;
	}
	if (!atomic_load_explicit(&s->ready, memory_order_acquire))
		st = err_set(&e, E_UNAVAILABLE, "the store is being opened");
	else
		st = store_message(s, r->body, &rejects, &e);
	if (st != OK) {
		metric_add(&s->metrics.otlp_failed, 1);
		fail(r, out, st, &e);
		return;
	}
	otlp_encode_response(&rejects, &out->body);
	out->content_type = "application/x-protobuf";
}
