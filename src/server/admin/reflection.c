/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.reflection.v1 and v1alpha, whose messages are the same: the tables of schema/ as
 * descriptors. A file is answered together with all that it imports, so that a client need not ask
 * again. Source: grpc/reflection/v1/reflection.proto.
 */
#include "pb/pb.h"
#include "schema/schema.h"
#include "server/admin/admin.h"
#include "server/request/request.h"

#define FILES_MAX 32
#define GRPC_NOT_FOUND 5
#define GRPC_INVALID 3

struct request {
	uint32_t kind; /* field number of the choice; 0: none */
	struct str text;
};

static bool read_request(struct str message, struct request *out)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	*out = (struct request){ 0 };
	while (pb_next(&r, &f))
		if (f.number >= 3 && f.number <= 7 && f.wire == PB_BYTES) {
			out->kind = f.number;
			out->text = f.bytes;
		}
	return !r.failed;
}

static void put_error(struct buf *out, uint64_t code, const char *what, struct str name)
{
	size_t begun = pb_begin(out, 7);
	pb_put_u64(out, 1, code);
	size_t text = pb_begin(out, 2);
	buf_printf(out, "%s%.*s", what, STR_ARG(str_sub(name, 0, 200)));
	pb_end(out, text);
	pb_end(out, begun);
}

/* The file behind all that it imports, each once. */
static void collect(const struct pb_file *f, const struct pb_file **files, size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		if (files[i] == f)
			return;
	for (size_t i = 0; i < f->import_count; i++)
		collect(f->imports[i], files, count);
	assert(*count < FILES_MAX);
	files[(*count)++] = f;
}

static void put_file(struct buf *out, const struct pb_file *f, struct str name)
{
	const struct pb_file *files[FILES_MAX];
	size_t count = 0;
	if (!f) {
		put_error(out, GRPC_NOT_FOUND, "not found: ", name);
		return;
	}
	collect(f, files, &count);
	size_t begun = pb_begin(out, 4);
	/* The file that was asked for comes first. */
	while (count-- > 0) {
		size_t one = pb_begin(out, 1);
		pb_file_encode(files[count], out);
		pb_end(out, one);
	}
	pb_end(out, begun);
}

static void put_services(const struct server *s, struct buf *out)
{
	size_t begun = pb_begin(out, 6);
	for (size_t i = 0; i < s->service_count; i++) {
		size_t one = pb_begin(out, 1);
		pb_put_str(out, 1, str_of(s->services[i]));
		pb_end(out, one);
	}
	pb_end(out, begun);
}

/* There are no extensions: an empty list for a known type, NOT_FOUND for others. */
static void put_extensions(struct buf *out, struct str type)
{
	if (!schema_find_symbol(type)) {
		put_error(out, GRPC_NOT_FOUND, "not found: ", type);
		return;
	}
	size_t begun = pb_begin(out, 5);
	pb_put_str(out, 1, type);
	pb_end(out, begun);
}

static void answer(
	const struct server *s, const struct request *q, struct str request, struct buf *out)
{
	pb_put_str(out, 2, request);
	switch (q->kind) {
	case 3:
		put_file(out, schema_find_file(q->text), q->text);
		break;
	case 4:
		put_file(out, schema_find_symbol(q->text), q->text);
		break;
	case 5:
		put_error(out, GRPC_NOT_FOUND, "there are no extensions", STR(""));
		break;
	case 6:
		put_extensions(out, q->text);
		break;
	case 7:
		put_services(s, out);
		break;
	default:
		put_error(out, GRPC_INVALID, "the request asks nothing", STR(""));
	}
}

static enum status reflect(const struct server *s, struct net_stream *stream, struct err *e)
{
	CLEANUP(buf_deinit) struct buf reply;
	buf_init(&reply, NET_BODY_MAX);
	for (;;) {
		struct str message;
		struct request q;
		bool end;
		enum status st = net_stream_receive(stream, &message, &end, e);
		if (st != OK || end)
			return st;
		if (!read_request(message, &q))
			return err_set(e, E_INVALID, "malformed request");
		buf_clear(&reply);
		answer(s, &q, message, &reply);
		st = buf_status(&reply);
		if (st == OK)
			st = net_stream_send(stream, buf_view(&reply), e);
		if (st != OK)
			return st;
	}
}

void server_reflect(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	enum status st;
	(void)r;
	if (atomic_fetch_add(&s->watchers, 1) >= SERVER_WATCHERS_MAX)
		st = err_set(&e, E_QUOTA, "more than %d such streams", SERVER_WATCHERS_MAX);
	else
		st = reflect(s, stream, &e);
	atomic_fetch_sub(&s->watchers, 1);
	if (st != OK)
		net_fail(out, st, &e);
}
