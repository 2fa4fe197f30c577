/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Pyroscope's SDKs, Alloy and profilecli send: push.v1.PusherService/Push, and POST /ingest.
 * Answered when the samples are durable; a message sent again is stored once.
 *
 * Most SDKs do not try again, so only wrong messages are refused. /ingest answers as Pyroscope
 * does: exactly 200 without a body (Alloy's forwarder accepts nothing else as success), 400 for a
 * wrong query, 422 for a body that cannot be decoded.
 */
#include "pyroscope/pyroscope.h"
#include "server/receive/receive.h"
#include "server/request/request.h"

#define PARAMETERS_BYTES_MAX ((size_t)64 << 10)
/* Profiles are compressed inside, most of them to a quarter. */
#define COMPRESSED_FACTOR 4

const struct server_protocol server_protocol_pyroscope_push = {
	.ingest = { .name = "pyroscope_push", .expansion = COMPRESSED_FACTOR },
};
const struct server_protocol server_protocol_pyroscope_ingest = {
	.ingest = { .name = "pyroscope_ingest", .expansion = COMPRESSED_FACTOR },
};

static enum status message_begin(
	struct ingest_batch *b, void *ctx, const struct net_request *r, struct err *e)
{
	const struct server_inlet *in = ctx;
	ingest_batch_init(b, in->in, r->peer, r->body.len);
	return server_batch_begin(b, in, r, r->body.len, e);
}

static enum status message_put(struct ingest_batch *b, struct hash128 id, struct err *e)
{
	enum status st = ingest_batch_put(b, id, e);
	return st == OK ? ingest_batch_verdict(b, e) : st;
}

/* A body that a decoder refuses because of its size or kind would be refused again, so the sender
 * must not retry. */
static enum status final(enum status st, struct err *e)
{
	if (st != E_LIMIT && st != E_UNSUPPORTED)
		return st;
	e->status = E_INVALID;
	return E_INVALID;
}

static bool has_time(const struct ingest_batch *b, int64_t time_ns)
{
	for (size_t i = 0; i < b->profile.heads.len; i++)
		if (b->profile.heads.v[i].time_ns == time_ns)
			return true;
	return false;
}

/* The same message again has the same profiles, unless one of them has no time. */
static struct hash128 push_id(const struct net_request *r, const struct ingest_batch *b)
{
	struct hash128 id = hash128(r->body.p, r->body.len);
	if (has_time(b, b->begun_ns))
		id.lo = hash_u64(id.lo ^ (uint64_t)b->begun_ns);
	return id;
}

void server_pyroscope_push(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct ingest_batch b;
	struct err e = { 0 };
	enum status st = message_begin(&b, ctx, r, &e);
	if (st == OK)
		st = final(pyroscope_push_decode(r->body, b.begun_ns, &b.profile, &e), &e);
	if (st == OK)
		st = message_put(&b, push_id(r, &b), &e);
	if (st != OK)
		net_fail(out, st, &e);
	ingest_batch_end(&b, st, st == OK ? "" : err_text(&e, st));
}

/* ---- POST /ingest ---- */

static enum status read_query(
	const struct net_request *r, struct arena *a, struct pyroscope_ingest *q, struct err *e)
{
	const struct {
		const char *key;
		struct str *to;
	} keys[] = { { "name", &q->name }, { "format", &q->format }, { "from", &q->from },
		{ "until", &q->until }, { "sampleRate", &q->sample_rate }, { "spyName", &q->spy },
		{ "aggregationType", &q->aggregation } };
	*q = (struct pyroscope_ingest){ .content_type = net_header_find(r, "content-type") };
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		if (!net_query_param(r, keys[i].key, 0, a, keys[i].to))
			*keys[i].to = STR("");
	if (arena_status(a) == E_LIMIT)
		return err_set(e, E_LIMIT, "the query is too long");
	return pyroscope_ingest_check(q, e);
}

/* Neither the query nor the body has a time: it counts as taken now. */
static bool is_of_now(const struct pyroscope_ingest *q, const struct ingest_batch *b)
{
	int64_t from = 0, later = 0;
	return pyroscope_time(q->from, b->begun_ns, &from) &&
	       pyroscope_time(q->from, b->begun_ns + 1, &later) && from != later &&
	       has_time(b, from);
}

/* The same body with another name or another time is another profile. */
static struct hash128 message_id(
	const struct net_request *r, const struct pyroscope_ingest *q, const struct ingest_batch *b)
{
	struct hash128 body = hash128(r->body.p, r->body.len);
	struct hash128 query = hash128(r->query.p, r->query.len);
	uint64_t now = is_of_now(q, b) ? hash_u64((uint64_t)b->begun_ns) : 0;
	return (struct hash128){ .lo = hash_u64(body.lo ^ query.lo ^ now),
		.hi = hash_u64(body.hi ^ query.hi) };
}

static const char *connect_code(enum status st)
{
	switch (st) {
	case E_INVALID:
		return "invalid_argument";
	case E_LIMIT:
	case E_QUOTA:
		return "resource_exhausted";
	case E_UNAVAILABLE:
	case E_NOSPACE:
		return "unavailable";
	default:
		return "unknown";
	}
}

/* {"code":"invalid_argument","message":"…"} */
static void refuse(struct net_response *out, enum status st, int http_status, const struct err *e)
{
	net_fail(out, st, e);
	if (http_status)
		out->http_status = http_status;
	buf_clear(&out->body);
	buf_printf(&out->body, "{\"code\":\"%s\",\"message\":", connect_code(st));
	buf_json_str(&out->body, str_of(err_text(e, st)));
	buf_cstr(&out->body, "}\n");
}

void server_pyroscope_ingest(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct ingest_batch b;
	struct pyroscope_ingest q;
	struct err e = { 0 };
	int http_status = 0;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, PARAMETERS_BYTES_MAX);
	enum status st = message_begin(&b, ctx, r, &e);
	if (st == OK)
		st = read_query(r, &a, &q, &e);
	if (st == OK) {
		st = final(pyroscope_ingest_decode(&q, r->body, b.begun_ns, &b.profile, &e), &e);
		if (st == OK)
			st = message_put(&b, message_id(r, &q, &b), &e);
		http_status = st == E_INVALID ? 422 : 0;
	}
	if (st != OK)
		refuse(out, st, http_status, &e);
	ingest_batch_end(&b, st, st == OK ? "" : err_text(&e, st));
}
