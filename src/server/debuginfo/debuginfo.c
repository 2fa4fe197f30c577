/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.debuginfo.v1alpha1.DebuginfoService (reference: Parca's pkg/debuginfo/store.go). Its agents
 * compare the reasons letter by letter, and act upon the statuses, so both are Parca's. An upload
 * that is known to have broken off is stale at once; in Parca only after
 * --debuginfo-upload-max-duration and two minutes.
 *
 * The only strategy is gRPC's: there is no bucket that could sign an address.
 */
#include "server/debuginfo/debuginfo.h"
#include "base/clock.h"
#include "base/log.h"
#include "pb/pb.h"
#include "server/debuginfo/files.h"
#include "server/request/request.h"

#include <inttypes.h>
#include <stdio.h>

#define WAIT_NS (60 * NS_PER_SEC) /* for others to arrive */
#define STRATEGY_GRPC 1

#define FIRST_TIME                                                                         \
	"First time we see this Build ID, and it does not exist in debuginfod, therefore " \
	"please upload!"
#define STALE \
	"A previous upload was started but not finished and is now stale, so it can be retried."
#define IN_PROGRESS                                                                            \
	"A previous upload is still in-progress and not stale yet (only stale uploads can be " \
	"retried)."
#define IN_PROGRESS_FORCED                                                                      \
	"A previous upload is in-progress, but accepting restart because it's requested to be " \
	"forced."
#define EXISTS                                                                               \
	"Debuginfo already exists and is not marked as invalid, therefore no new upload is " \
	"needed."
#define EXISTS_FORCED                                                                     \
	"Debuginfo already exists and is not marked as invalid, therefore wouldn't have " \
	"accepted a new upload, but accepting it because it's requested to be forced."
#define BAD                                                                                     \
	"Debuginfo already exists but is marked as invalid, therefore a new upload is needed. " \
	"Hash the debuginfo and initiate the upload."
#define BAD_EQUAL                                                                                \
	"Debuginfo already exists and is marked as invalid, but the proposed hash is the same "  \
	"as the one already available, therefore the upload is not accepted as it would result " \
	"in the same invalid debuginfos."
#define BAD_OTHER                                                                            \
	"Debuginfo already exists but is marked as invalid, therefore a new upload will be " \
	"accepted."
#define PURGED                                                                               \
	"Debuginfo was previously uploaded but has been purged/cleaned up, therefore a new " \
	"upload is needed."

/* ---- requests ---- */

/* The fields of all requests, by their numbers. */
struct request {
	struct debuginfo_key key;
	struct str hash, upload_id;
	int64_t size;
	bool force;
};

enum member { M_NONE, M_BUILD_ID, M_HASH, M_SIZE, M_FORCE, M_TYPE, M_UPLOAD_ID };

static const enum member should_members[] = { M_NONE, M_BUILD_ID, M_HASH, M_FORCE, M_TYPE };
static const enum member initiate_members[] = { M_NONE, M_BUILD_ID, M_SIZE, M_HASH, M_FORCE,
	M_TYPE };
static const enum member upload_members[] = { M_NONE, M_BUILD_ID, M_UPLOAD_ID, M_TYPE };

static enum status take_text(
	const struct pb_field *f, const char *name, struct str *out, struct err *e)
{
	if (f->wire != PB_BYTES || !str_is_utf8(f->bytes))
		return err_set(e, E_INVALID, "%s is not UTF-8 text", name);
	*out = f->bytes;
	return OK;
}

static enum status take_member(
	const struct pb_field *f, enum member m, struct request *q, struct err *e)
{
	if (m == M_BUILD_ID)
		return take_text(f, "build_id", &q->key.build_id, e);
	if (m == M_HASH)
		return take_text(f, "hash", &q->hash, e);
	if (m == M_UPLOAD_ID)
		return take_text(f, "upload_id", &q->upload_id, e);
	if (m != M_NONE && f->wire != PB_VARINT)
		return err_set(e, E_INVALID, "field %u is not a number", f->number);
	if (m == M_SIZE)
		q->size = (int64_t)f->u64;
	else if (m == M_FORCE)
		q->force = f->u64 != 0;
	else if (m == M_TYPE && f->u64 >= DEBUGINFO_TYPES)
		return err_set(e, E_INVALID, "type: %" PRIu64 " is not known", f->u64);
	else if (m == M_TYPE)
		q->key.type = (enum debuginfo_type)f->u64;
	return OK;
}

static enum status decode(struct str message, const enum member *members, size_t count,
	struct request *out, struct err *e)
{
	struct reader reader = reader_over(message.p, message.len);
	struct pb_field f;
	struct request q = { 0 };
	while (pb_next(&reader, &f)) {
		enum status s =
			take_member(&f, f.number < count ? members[f.number] : M_NONE, &q, e);
		if (s != OK)
			return s;
	}
	if (reader.failed)
		return err_set(e, E_INVALID, "the message is malformed at byte %zu",
			reader_offset(&reader));
	*out = q;
	return OK;
}

#define DECODE(message, members, out, e) decode(message, members, ARRAY_COUNT(members), out, e)

/* ---- the decision ---- */

/* Whether an upload should begin, and the reason. */
static bool should_initiate(const struct server *s, const struct request *q,
	const struct debuginfo_record *known, const char **out_reason)
{
	bool yes = true;
	switch (known->state) {
	case DEBUGINFO_NOT_SEEN:
		*out_reason = FIRST_TIME;
		break;
	case DEBUGINFO_PURGED:
		*out_reason = PURGED;
		break;
	case DEBUGINFO_UPLOADING:
	case DEBUGINFO_BROKEN:
		yes = q->force || debuginfo_upload_is_stale(s->uploads, known, clock_realtime_ns());
		*out_reason = q->force ? IN_PROGRESS_FORCED : yes ? STALE : IN_PROGRESS;
		break;
	case DEBUGINFO_UPLOADED:
		if (!known->invalid) {
			yes = q->force;
			*out_reason = yes ? EXISTS_FORCED : EXISTS;
		} else if (q->hash.len == 0) {
			*out_reason = BAD;
		} else {
			yes = !str_eq(q->hash, str_of(known->hash));
			*out_reason = yes ? BAD_OTHER : BAD_EQUAL;
		}
		break;
	}
	return yes;
}

/* ---- unary calls ---- */

struct call {
	struct server *s;
	struct request q;
	struct buf *out;
	struct err *e;
};

typedef enum status call_fn(struct call *c);

static void answer(void *ctx, const struct net_request *r, struct net_response *out,
	const enum member *members, size_t member_count, call_fn *fn)
{
	struct err e = { 0 };
	struct call c = { .s = (struct server *)ctx, .out = &out->body, .e = &e };
	if (!server_is_ready(c.s, out))
		return;
	enum status st = decode(r->body, members, member_count, &c.q, &e);
	if (st == OK)
		st = server_tenant(c.s, r, &c.q.key.tenant, &e);
	if (st == OK)
		st = fn(&c);
	if (st != OK)
		net_fail(out, st, &e);
}

/* ShouldInitiateUploadResponse { should_initiate_upload = 1; reason = 2 } */
static enum status should(struct call *c)
{
	struct debuginfo_record known;
	const char *reason = "";
	enum status st = debuginfo_uploads_find(c->s->uploads, &c->q.key, &known, c->e);
	if (st != OK)
		return st;
	pb_put_bool(c->out, 1, should_initiate(c->s, &c->q, &known, &reason));
	pb_put_str(c->out, 2, str_of(reason));
	return OK;
}

static enum status may_begin(void *ctx, const struct debuginfo_record *known, struct err *e)
{
	const struct call *c = (const struct call *)ctx;
	uint64_t most = c->s->config->debuginfo_upload_bytes;
	const char *reason;
	if (!should_initiate(c->s, &c->q, known, &reason)) {
		if (strcmp(reason, BAD_EQUAL) == 0)
			return err_set(e, E_EXISTS, "%s", reason);
		return err_set(e, E_PRECONDITION,
			"upload should not have been attempted to be initiated, a previous check "
			"should have failed with: %s",
			reason);
	}
	if (c->q.size < 0 || (uint64_t)c->q.size > most)
		return err_set(e, E_INVALID,
			"upload size %" PRId64 " exceeds maximum allowed size %" PRIu64
			" (--debuginfo-upload-max-size)",
			c->q.size, most);
	return OK;
}

/* InitiateUploadResponse { upload_instructions = 1 { build_id = 1; upload_id = 2; upload_strategy =
 * 3; type = 5 } } */
static enum status initiate(struct call *c)
{
	struct debuginfo_record r;
	if (c->q.hash.len == 0)
		return err_set(c->e, E_INVALID, "hash must be set");
	if (c->q.size == 0)
		return err_set(c->e, E_INVALID, "size must be set");
	enum status st = debuginfo_uploads_begin(
		c->s->uploads, &c->q.key, c->q.hash, (uint64_t)c->q.size, may_begin, c, &r, c->e);
	if (st != OK)
		return st;
	size_t at = pb_begin(c->out, 1);
	pb_put_str(c->out, 1, c->q.key.build_id);
	pb_put_str(c->out, 2, str_of(r.upload));
	pb_put_u64(c->out, 3, STRATEGY_GRPC);
	pb_put_u64(c->out, 5, c->q.key.type);
	pb_end(c->out, at);
	return OK;
}

static enum status mark_finished(struct call *c)
{
	struct debuginfo_record r;
	struct err e = { 0 };
	char quoted[DEBUGINFO_ID_MAX * 4 + 8];
	enum status st =
		debuginfo_uploads_finish(c->s->uploads, &c->q.key, c->q.upload_id, &r, c->e);
	if (st != OK)
		return st;
	log_info("debuginfo uploaded", "build_id=%s type=%d bytes=%" PRIu64 " invalid=%s",
		log_quote(str_of(r.build_id), quoted, sizeof(quoted)), (int)r.type, r.size_bytes,
		r.invalid ? "yes" : "no");
	if (r.invalid || r.type > DEBUGINFO_EXECUTABLE)
		return OK;
	/* E_INVALID: no mapping can have this build id. */
	st = symbolizer_look_again(c->s->engine.symbolizer, r.build_id, true, &e);
	if (st != OK && st != E_INVALID)
		log_warn("uploaded names wait", "build_id=%s why=%s",
			log_quote(str_of(r.build_id), quoted, sizeof(quoted)),
			LOG_QUOTED(err_text(&e, st)));
	return OK;
}

#define HANDLER(name, members, fn)                                                \
	void server_debuginfo_##name(                                             \
		void *ctx, const struct net_request *r, struct net_response *out) \
	{                                                                         \
		answer(ctx, r, out, members, ARRAY_COUNT(members), fn);           \
	}

HANDLER(should_initiate, should_members, should)
HANDLER(initiate, initiate_members, initiate)
HANDLER(mark_finished, upload_members, mark_finished)

/* ---- Upload: UploadRequest { info = 1 { build_id = 1; upload_id = 2; type = 3 }; chunk_data = 2 }
 */

static enum status first_message(struct net_stream *stream, struct request *out, struct err *e)
{
	struct str message, info = STR("");
	bool end = false;
	struct pb_field f;
	enum status st = net_stream_receive(stream, &message, &end, e);
	if (st == OK && end)
		return err_set(e, E_INVALID, "failed to receive upload info: \"EOF\"");
	if (st != OK)
		return st;
	struct reader reader = reader_over(message.p, message.len);
	while (pb_next(&reader, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			info = f.bytes;
	if (reader.failed)
		return err_set(e, E_INVALID, "the message is malformed at byte %zu",
			reader_offset(&reader));
	return DECODE(info, upload_members, out, e);
}

static enum status take_chunk(struct debuginfo_upload *up, struct str message, struct err *e)
{
	struct reader reader = reader_over(message.p, message.len);
	struct pb_field f;
	/* A message may be without a chunk. */
	enum status st = debuginfo_upload_write(up, STR(""), e);
	while (st == OK && pb_next(&reader, &f))
		if (f.number == 2 && f.wire == PB_BYTES)
			st = debuginfo_upload_write(up, f.bytes, e);
	if (st != OK)
		return st;
	return reader.failed ? err_set(e, E_INVALID, "the message is malformed at byte %zu",
				       reader_offset(&reader))
			     : OK;
}

static enum status take_chunks(
	struct debuginfo_upload *up, struct net_stream *stream, uint64_t *out_bytes, struct err *e)
{
	for (;;) {
		struct str message;
		bool end = false;
		enum status st = net_stream_receive(stream, &message, &end, e);
		if (st == OK && end)
			return debuginfo_upload_end(up, out_bytes, e);
		if (st == OK)
			st = take_chunk(up, message, e);
		if (st != OK)
			return st;
	}
}

/* Parca's error message for metadata that does not fit. */
static enum status in_parcas_words(enum status st, struct err *e)
{
	if (st == E_NOTFOUND)
		return err_set(e, E_PRECONDITION,
			"metadata not found, this indicates that the upload was not previously "
			"initiated");
	if (st == E_INVALID && strcmp(e->text, "upload id mismatch") == 0)
		return err_set(e, st,
			"the upload ID does not match the one returned by the InitiateUpload call");
	if (st == E_INVALID && strcmp(e->text, "unexpectedly short input") == 0)
		return err_set(e, st, "invalid build ID: \"unexpectedly short input\"");
	return st;
}

static enum status upload(struct server *s, const struct net_request *r, struct net_stream *stream,
	struct buf *out, struct err *e)
{
	struct request q;
	struct debuginfo_upload *up;
	uint64_t bytes = 0;
	enum status st = first_message(stream, &q, e);
	/* The texts lie in the message, which goes with the next one. */
	char build_id[DEBUGINFO_ID_MAX + 1];
	if (st == OK)
		st = server_tenant(s, r, &q.key.tenant, e);
	if (st != OK)
		return st;
	int64_t deadline = MIN(r->deadline_ns, clock_monotonic_ns() + WAIT_NS);
	st = debuginfo_upload_open(s->uploads, &q.key, q.upload_id, deadline, &up, e);
	if (st != OK)
		return in_parcas_words(st, e);
	snprintf(build_id, sizeof(build_id), "%.*s", STR_ARG(q.key.build_id));
	st = take_chunks(up, stream, &bytes, e);
	debuginfo_upload_close(up);
	if (st != OK)
		return st;
	pb_put_str(out, 1, str_of(build_id)); /* UploadResponse { build_id = 1; size = 2 } */
	pb_put_u64(out, 2, bytes);
	return OK;
}

void server_debuginfo_upload(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	if (!server_is_ready(s, out))
		return;
	enum status st = upload(s, r, stream, &out->body, &e);
	if (st != OK)
		net_fail(out, st, &e);
}

/* ---- for the reports ---- */

static enum status uploaded_source(const struct server *s, const struct debuginfo_key *key,
	struct str filename, debuginfo_cancel_fn *cancel, void *cancel_ctx, struct buf *out,
	struct err *e)
{
	CLEANUP(fd_cleanup) int fd = -1;
	uint64_t bytes;
	enum status st = s->uploads ? debuginfo_uploads_file(s->uploads, key, &fd, &bytes, e)
				    : err_set(e, E_NOTFOUND, "no sources");
	/* A frame may have no build id, or one for which no agent uploads. */
	if (st == E_INVALID)
		return err_set(e, E_NOTFOUND, "no sources");
	if (st == OK)
		st = debuginfo_archive_find(fd, filename, cancel, cancel_ctx, out, e);
	if (st == E_CORRUPT)
		return err_prefix(e, st, "archive of sources of build id %.*s",
			STR_ARG(str_sub(key->build_id, 0, DEBUGINFO_ID_MAX)));
	return st;
}

enum status server_source_text(const struct server *s, struct str tenant, struct str build_id,
	struct str filename, int64_t until_ns, debuginfo_cancel_fn *cancel, void *cancel_ctx,
	const char **out_origin, struct buf *out, struct err *e)
{
	const struct debuginfo_key key = { build_id, tenant, DEBUGINFO_SOURCES };
	if (out_origin)
		*out_origin = "upload";
	enum status st = uploaded_source(s, &key, filename, cancel, cancel_ctx, out, e);
	/* Texts from other servers are for clients that may have all files of debuginfod. */
	if (st != E_NOTFOUND || !s->debuginfod || s->config->tenant_header || tenant.len)
		return st;
	if (out_origin)
		*out_origin = "debuginfod";
	return debuginfod_source(s->debuginfod, build_id, filename, until_ns, out, e);
}

bool server_has_sources(const struct server *s, struct str tenant, struct str build_id)
{
	const struct debuginfo_key key = { build_id, tenant, DEBUGINFO_SOURCES };
	struct debuginfo_record r;
	return s->uploads && debuginfo_uploads_find(s->uploads, &key, &r, NULL) == OK && r.ready[0];
}
