/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.profilestore.v1alpha1.ProfileStoreService: WriteRaw (pprof), WriteArrow (schema v2), Write
 * (schema v1: samples, then the stacks that are not known yet). Answered when the samples are
 * durable; a message sent again is stored once.
 *
 * POST /api/push is WriteRaw with one file, for people: the file is the body as it is.
 */
#include "parca/parca.h"
#include "pb/pb.h"
#include "server/receive/receive.h"
#include "server/request/request.h"

#define ANSWER_MAX ((size_t)64 << 20)
/* How many times larger compressed parts of a message may become; most take less. */
#define COMPRESSED_FACTOR 4

/* Stacks of schema v1 that are remembered. */
#define KNOWN_STACKS_BYTES ((size_t)64 << 20)

#define ARROW_V1_METRICS(X)                                                       \
	X(stacks_known, COUNTER, "firn_ingest_known_stacks_total",                \
		"Stacks that a sender of schema v1 need not send again.")         \
	X(stacks_unknown, COUNTER, "firn_ingest_unknown_stacks_total",            \
		"Samples stored without their stack: the sender had it no more.") \
	X(stacks, GAUGE, "firn_ingest_stacks",                                    \
		"Stacks that senders of schema v1 need not send again.")
struct arrow_v1_metrics {
	ARROW_V1_METRICS(METRIC_FIELD)
};
static const struct metric_def arrow_v1_defs[] = { ARROW_V1_METRICS(METRIC_DEF) };

static enum status stacks_open(void **out_state)
{
	return parca_stacks_new(KNOWN_STACKS_BYTES, (struct parca_stacks **)out_state);
}

static void stacks_close(void *state)
{
	parca_stacks_free(state);
}

const struct server_protocol server_protocol_raw = {
	.ingest = { .name = "parca_raw", .expansion = COMPRESSED_FACTOR },
};
const struct server_protocol server_protocol_push = {
	.ingest = { .name = "push", .expansion = COMPRESSED_FACTOR },
};
const struct server_protocol server_protocol_arrow_v2 = {
	.ingest = { .name = "parca_arrow_v2", .expansion = COMPRESSED_FACTOR },
};
const struct server_protocol server_protocol_arrow_v1 = {
	.ingest = { .name = "parca_arrow_v1",
		.own = arrow_v1_defs,
		.own_count = ARRAY_COUNT(arrow_v1_defs) },
	.open = stacks_open,
	.close = stacks_close,
};

struct push {
	struct server_inlet *in;
	struct ingest_batch b;
	struct parca_arrow_stats stats;
};

/* `message_bytes` 0: not known yet. */
static enum status push_begin(
	struct push *w, void *ctx, const struct net_request *r, size_t message_bytes, struct err *e)
{
	*w = (struct push){ .in = ctx };
	ingest_batch_init(&w->b, w->in->in, r->peer, message_bytes);
	return server_batch_begin(&w->b, w->in, r, message_bytes, e);
}

static enum status push_put(struct push *w, struct hash128 batch_id, struct err *e)
{
	w->b.profile.zero_samples += w->stats.zero_values;
	enum status st = ingest_batch_put(&w->b, batch_id, e);
	return st == OK ? ingest_batch_verdict(&w->b, e) : st;
}

/* Counts the message, and answers a failure. */
static void push_end(struct push *w, struct net_response *out, enum status st, const struct err *e)
{
	if (st != OK)
		net_fail(out, st, e);
	ingest_batch_end(&w->b, st, st == OK ? "" : err_text(e, st));
}

void server_write_raw(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct push w;
	struct err e = { 0 };
	enum status st = push_begin(&w, ctx, r, r->body.len, &e);
	if (st == OK)
		st = parca_raw_decode(r->body, w.b.begun_ns, &w.b.profile, &e);
	if (st == OK)
		st = push_put(&w, hash128(r->body.p, r->body.len), &e);
	push_end(&w, out, st, &e);
}

/* Finds the bytes of field 1: WriteArrowRequest.ipc_buffer, WriteRequest.record. */
static enum status first_field(struct str message, const char *name, struct str *out, struct err *e)
{
	struct reader reader = reader_over(message.p, message.len);
	struct pb_field f;
	*out = STR("");
	while (pb_next(&reader, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			*out = f.bytes;
	if (reader.failed)
		return err_set(e, E_INVALID, "the message is malformed at byte %zu",
			reader_offset(&reader));
	return out->len ? OK : err_set(e, E_INVALID, "%s is empty", name);
}

void server_write_arrow(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct push w;
	struct str ipc;
	struct err e = { 0 };
	enum status st = push_begin(&w, ctx, r, r->body.len, &e);
	if (st == OK)
		st = first_field(r->body, "ipc_buffer", &ipc, &e);
	if (st == OK) {
		st = parca_arrow_decode(ipc, ingest_memory(ipc.len), &w.b.profile, &w.stats, &e);
		if (st != OK)
			err_prefix(&e, st, "ipc_buffer");
	}
	if (st == OK)
		st = push_put(&w, hash128(ipc.p, ipc.len), &e);
	push_end(&w, out, st, &e);
}

/* ---- Write ---- */

/* The key has the sender's address, so that one sender cannot define another's stack. */
static struct hash128 stack_key(const struct push *w, struct str id)
{
	struct str address = str_of(w->b.peer);
	address = str_sub(address, 0, str_rindex(address, ':'));
	uint8_t key[STORE_TENANT_MAX + 1 + 128 + 1 + PARCA_STACK_ID_MAX];
	size_t n = w->b.tenant.len;
	memcpy(key, n ? w->b.tenant.p : "", n);
	key[n++] = 0;
	address = str_sub(address, 0, 128);
	memcpy(key + n, address.p, address.len);
	n += address.len;
	key[n++] = 0; /* else the end of an address could be taken for the begin of an id */
	memcpy(key + n, id.p, id.len);
	return hash128(key, n + id.len);
}

static struct arrow_v1_metrics *stack_metrics(const struct push *w)
{
	return ingest_own(w->in->in);
}

static void recall_stacks(struct push *w, struct parca_session *session)
{
	uint32_t stack;
	for (uint32_t i = 1; i < parca_session_stack_count(session); i++) {
		struct str id = parca_session_stack_id(session, i);
		if (!parca_stacks_find(w->in->state, stack_key(w, id), &w->b.profile, &stack))
			continue;
		parca_session_set_stack(session, i, stack);
		metric_add(&stack_metrics(w)->stacks_known, 1);
	}
}

static void remember_stacks(struct push *w, struct parca_session *session)
{
	uint32_t stack;
	for (uint32_t i = 1; i < parca_session_stack_count(session); i++)
		if (parca_session_stack(session, i, &stack))
			parca_stacks_add(w->in->state,
				stack_key(w, parca_session_stack_id(session, i)), &w->b.profile,
				stack);
	metric_set(&stack_metrics(w)->stacks, parca_stacks_count(w->in->state));
}

static enum status receive(
	struct push *w, struct net_stream *stream, const char *what, struct str *out, struct err *e)
{
	struct str message;
	bool end = false;
	enum status st = net_stream_receive(stream, &message, &end, e);
	if (st != OK)
		return st;
	if (end)
		return err_set(e, E_INVALID, "the stream ended before %s", what);
	st = ingest_batch_more(&w->b, message.len, e);
	return st == OK ? first_field(message, "record", out, e) : st;
}

static enum status ask_stacks(
	struct push *w, struct parca_session *session, struct net_stream *stream, struct err *e)
{
	CLEANUP(buf_deinit) struct buf record;
	CLEANUP(buf_deinit) struct buf message;
	struct str stacks;
	bool any;
	buf_init(&record, ANSWER_MAX);
	buf_init(&message, ANSWER_MAX + 16);
	enum status st = parca_session_ask(session, &record, &any, e);
	if (st != OK || !any)
		return st;
	pb_put_str(&message, 1, buf_view(&record));
	st = buf_status(&message);
	if (st != OK)
		return err_set(e, st, "the list of stacks to ask for");
	st = net_stream_send(stream, buf_view(&message), e);
	/* The sender may take long, or never answer: others get the unused memory meanwhile.
	 */
	buf_deinit(&message);
	buf_deinit(&record);
	ingest_batch_wait(&w->b, parca_session_bytes(session));
	if (st == OK)
		st = receive(w, stream, "the stacks that were asked for came", &stacks, e);
	if (st != OK)
		return st;
	st = parca_session_stacks(session, stacks, e);
	return st == OK ? OK : err_prefix(e, st, "record of stacks");
}

static enum status write_stream(struct push *w, struct net_stream *stream, struct err *e)
{
	struct parca_session *session = NULL;
	struct str samples;
	enum status st = receive(w, stream, "its first message", &samples, e);
	if (st != OK)
		return st;
	struct hash128 batch_id = hash128(samples.p, samples.len);
	st = parca_session_new(ingest_memory(samples.len), &w->b.profile, &w->stats, &session);
	if (st != OK)
		return err_set(e, st, "%s", status_text(st));
	st = parca_session_samples(session, samples, e);
	if (st != OK)
		err_prefix(e, st, "record of samples");
	if (st == OK) {
		recall_stacks(w, session);
		st = ask_stacks(w, session, stream, e);
	}
	if (st == OK) {
		remember_stacks(w, session);
		st = parca_session_finish(session, e);
	}
	parca_session_free(session);
	return st == OK ? push_put(w, batch_id, e) : st;
}

void server_write(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct push w;
	struct err e = { 0 };
	enum status st = push_begin(&w, ctx, r, 0, &e);
	if (st == OK)
		st = write_stream(&w, stream, &e);
	metric_add(&stack_metrics(&w)->stacks_unknown, w.stats.no_stack);
	push_end(&w, out, st, &e);
}

/* ---- /api/push ---- */

#define PUSH_PARAMETERS_BYTES_MAX ((size_t)64 << 10)
#define PUSH_HEAD_BYTES ((size_t)256 << 10) /* more than the labels take */
#define PUSH_PREFIX "series[0]: samples[0]: raw_profile: "
#define PUSH_NAME "profile" /* until a better name is known */

static void put_label(struct buf *b, struct str name, struct str value)
{
	size_t label = pb_begin(b, 1);
	pb_put_str(b, 1, name);
	pb_put_str(b, 2, value);
	pb_end(b, label);
}

/* The labels of the series: name=…, and labels=KEY=VALUE as often as there are some. */
static enum status put_labels(
	const struct net_request *r, struct buf *b, bool *out_named, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct str text;
	arena_init(&a, PUSH_PARAMETERS_BYTES_MAX);
	size_t set = pb_begin(b, 1);
	*out_named = net_query_param(r, "name", 0, &a, &text) && text.len > 0;
	put_label(b, STR("__name__"), *out_named ? text : STR(PUSH_NAME));
	for (size_t i = 0; net_query_param(r, "labels", i, &a, &text); i++) {
		size_t equals = str_index(text, '=');
		if (equals == 0 || equals == text.len)
			return err_set(e, E_INVALID, "labels: \"%.*s\" is not NAME=VALUE",
				STR_ARG(str_sub(text, 0, 64)));
		put_label(b, str_sub(text, 0, equals), str_sub(text, equals + 1, text.len));
	}
	pb_end(b, set);
	return arena_status(&a) == E_LIMIT ? err_set(e, E_LIMIT, "labels: too long") : OK;
}

/* Makes a WriteRawRequest of one series with one sample, the body. */
static enum status wrap(const struct net_request *r, struct buf *b, bool *out_named, struct err *e)
{
	if (r->body.len == 0)
		return err_set(e, E_INVALID, "the body is empty: it has to be a pprof file");
	size_t series = pb_begin(b, 2);
	enum status st = put_labels(r, b, out_named, e);
	size_t sample = pb_begin(b, 2);
	pb_put_str(b, 1, r->body);
	pb_end(b, sample);
	pb_end(b, series);
	if (st == OK && buf_status(b) != OK)
		return err_set(e, buf_status(b), "the body and its labels");
	return st;
}

/* The name of Go's own profile with these sample types; if there is none, the first sample type. */
static struct str usual_name(const struct profile *p)
{
	static const char *const names[][2] = { { "cpu", "process_cpu" },
		{ "alloc_space", "memory" }, { "inuse_space", "memory" },
		{ "goroutine", "goroutine" }, { "contentions", "mutex" } };
	for (size_t t = 1; t < p->types.len; t++)
		for (size_t i = 0; i < ARRAY_COUNT(names); i++)
			if (str_eq(profile_str(p, p->types.v[t].sample_type), str_of(names[i][0])))
				return str_of(names[i][1]);
	return p->types.len > 1 ? profile_str(p, p->types.v[1].sample_type) : STR(PUSH_NAME);
}

static enum status name_types(struct profile *p, struct err *e)
{
	uint32_t name = 0;
	struct str usual = usual_name(p);
	enum status st = profile_add_string(p, usual.len ? usual : STR(PUSH_NAME), &name);
	if (st != OK)
		return err_set(e, st, "a name of the profile");
	for (size_t t = 1; t < p->types.len; t++)
		p->types.v[t].name = name;
	return OK;
}

/* Removes the place in the message from an error, which means nothing for a single file. */
static void err_without(struct err *e, const char *prefix)
{
	size_t len = strlen(prefix);
	if (strncmp(e->text, prefix, len) == 0)
		memmove(e->text, e->text + len, strlen(e->text + len) + 1);
}

void server_push(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct push w;
	struct err e = { 0 };
	bool named = false;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, r->body.len + PUSH_HEAD_BYTES);
	enum status st = push_begin(&w, ctx, r, r->body.len, &e);
	if (st == OK)
		st = wrap(r, &message, &named, &e);
	if (st == OK) {
		st = parca_raw_decode(buf_view(&message), w.b.begun_ns, &w.b.profile, &e);
		if (st != OK)
			err_without(&e, PUSH_PREFIX);
	}
	if (st == OK && !named)
		st = name_types(&w.b.profile, &e);
	if (st == OK)
		st = push_put(&w, hash128(message.data, message.len), &e);
	if (st == OK)
		buf_printf(&out->body, "{\"samples\":%zu}", w.b.profile.samples.len);
	out->content_type = "application/json";
	push_end(&w, out, st, &e);
}
