/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes go to the server as a stream of messages, or to a signed address by one PUT.
 */
#include "upload/upload.h"

#include "fetch/fetch.h"
#include "pb/pb.h"
#include "upload/wire.h"

#include <stdio.h>
#include <stdlib.h>

#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define REQUEST_BYTES_MAX ((size_t)4 << 10)

static enum status call(struct net_client *c, const struct upload_limits *limits,
	const char *method, struct buf *request, struct buf *answer, bool *out_retry, struct err *e)
{
	char path[128];
	*out_retry = false;
	enum status s = buf_status(request);
	if (s != OK)
		return err_set(e, s, "%s: the request", method);
	snprintf(path, sizeof(path), SERVICE "%s", method);
	s = net_client_rpc(c, path, buf_view(request), limits->call_ns, answer, out_retry, e);
	return s == OK ? OK : err_prefix(e, s, "%s", method);
}

/* { build_id = 1; hash = 2; force = 3; type = 4; build_id_type = 5 } */
enum status upload_ask(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, struct upload_answer *out, bool *out_retry, struct err *e)
{
	CLEANUP(buf_deinit) struct buf request, answer;
	buf_init(&request, REQUEST_BYTES_MAX);
	buf_init(&answer, UPLOAD_ANSWER_BYTES_MAX);
	pb_put_str(&request, 1, str_of(f->build_id));
	pb_put_str(&request, 2, str_of(f->hash ? f->hash : ""));
	pb_put_bool(&request, 3, f->force);
	pb_put_u64(&request, 4, f->type);
	pb_put_u64(&request, 5, f->id_type);
	enum status s = call(c, limits, "ShouldInitiateUpload", &request, &answer, out_retry, e);
	return s == OK ? upload_answer_decode(buf_view(&answer), out, e) : s;
}

/* { build_id = 1; size = 2; hash = 3; force = 4; type = 5; build_id_type = 6 } */
enum status upload_begin(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, struct upload_ticket *out, bool *out_retry, struct err *e)
{
	CLEANUP(buf_deinit) struct buf request, answer;
	buf_init(&request, REQUEST_BYTES_MAX);
	buf_init(&answer, UPLOAD_ANSWER_BYTES_MAX);
	pb_put_str(&request, 1, str_of(f->build_id));
	pb_put_u64(&request, 2, f->bytes);
	pb_put_str(&request, 3, str_of(f->hash));
	pb_put_bool(&request, 4, f->force);
	pb_put_u64(&request, 5, f->type);
	pb_put_u64(&request, 6, f->id_type);
	enum status s = call(c, limits, "InitiateUpload", &request, &answer, out_retry, e);
	return s == OK ? upload_ticket_decode(buf_view(&answer), out, e) : s;
}

static void put_info(struct buf *b, const struct upload_file *f, const struct upload_ticket *t)
{
	pb_put_str(b, 1, str_of(f->build_id));
	pb_put_str(b, 2, str_of(t->id));
	pb_put_u64(b, 3, f->type);
}

/* ---- the bytes ---- */

struct sending {
	const struct upload_file *file;
	const struct upload_ticket *ticket;
	bool has_begun; /* gRPC: the first message has no bytes */
	uint64_t at;
	struct buf message;
	uint8_t *chunk;
};

static enum status next_chunk(struct sending *x, struct str *out, bool *out_end, struct err *e)
{
	*out_end = x->at == x->file->bytes;
	if (*out_end)
		return OK;
	size_t n = (size_t)MIN(x->file->bytes - x->at, (uint64_t)UPLOAD_CHUNK_BYTES);
	enum status s = x->file->read(x->file->ctx, x->at, x->chunk, n, e);
	x->at += n;
	*out = str_make(x->chunk, n);
	return s;
}

static enum status next_piece(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	return next_chunk(ctx, out, out_end, e);
}

/* UploadRequest { info = 1; chunk_data = 2 } */
static enum status next_message(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	struct sending *x = ctx;
	buf_clear(&x->message);
	if (!x->has_begun) {
		size_t at = pb_begin(&x->message, 1);
		put_info(&x->message, x->file, x->ticket);
		pb_end(&x->message, at);
		x->has_begun = true;
	} else {
		struct str chunk = STR("");
		enum status s = next_chunk(x, &chunk, out_end, e);
		if (s != OK)
			return s;
		if (!*out_end)
			pb_put_str(&x->message, 2, chunk);
	}
	*out = buf_view(&x->message);
	return buf_status(&x->message);
}

static enum status send_to_server(struct net_client *c, const struct upload_limits *limits,
	struct sending *x, bool *out_retry, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	buf_init(&answer, UPLOAD_ANSWER_BYTES_MAX);
	enum status s = net_client_send(
		c, SERVICE "Upload", next_message, x, limits->bytes_ns, &answer, out_retry, e);
	return s == OK ? OK : err_prefix(e, s, "Upload");
}

/* The headers for the server, among them a token, are not sent to another server. The part of the
 * address after the host is a secret, and not in any message. */
static enum status send_to_address(
	const struct upload_limits *limits, struct sending *x, bool *out_retry, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	CLEANUP(free_cleanup) struct upload_url *url = calloc(1, sizeof(*url));
	struct fetch *f = NULL;
	int code = 0;
	buf_init(&answer, UPLOAD_ANSWER_BYTES_MAX);
	enum status s = url ? upload_url_parse(x->ticket->url, limits->clear_text, url, e)
			    : err_set(e, E_NOMEM, "signed address");
	if (s == OK)
		s = fetch_new(&(struct fetch_config){ .address = url->server }, &f, e);
	if (s != OK)
		return err_prefix(e, s, "Upload");
	fetch_limit(f, UPLOAD_ANSWER_BYTES_MAX);
	fetch_interrupt(f, limits->wake_fd, limits->patience_ns);
	s = fetch_put(
		f, url->target, x->file->bytes, next_piece, x, limits->bytes_ns, &code, &answer, e);
	fetch_free(f);
	*out_retry = s == E_UNAVAILABLE || s == E_TIMEOUT || code >= 500;
	if (s != OK)
		return err_prefix(e, s, "Upload to the signed address");
	if (code >= 200 && code < 300)
		return OK;
	return err_set(e, code >= 500 ? E_UNAVAILABLE : E_INVALID,
		"Upload to the signed address: %s answers HTTP %d", url->server, code);
}

enum status upload_send(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, const struct upload_ticket *t, bool *out_retry, struct err *e)
{
	struct sending x = { .file = f, .ticket = t, .chunk = malloc(UPLOAD_CHUNK_BYTES) };
	*out_retry = false;
	if (!x.chunk)
		return err_set(e, E_NOMEM, "Upload");
	buf_init(&x.message, UPLOAD_CHUNK_BYTES + REQUEST_BYTES_MAX);
	enum status s = t->url[0] ? send_to_address(limits, &x, out_retry, e)
				  : send_to_server(c, limits, &x, out_retry, e);
	buf_deinit(&x.message);
	free(x.chunk);
	return s;
}

/* { build_id = 1; upload_id = 2; type = 3 } */
enum status upload_finish(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, const struct upload_ticket *t, bool *out_retry, struct err *e)
{
	CLEANUP(buf_deinit) struct buf request, answer;
	buf_init(&request, REQUEST_BYTES_MAX);
	buf_init(&answer, UPLOAD_ANSWER_BYTES_MAX);
	put_info(&request, f, t);
	return call(c, limits, "MarkUploadFinished", &request, &answer, out_retry, e);
}
