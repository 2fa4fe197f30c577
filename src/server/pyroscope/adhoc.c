/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adhocprofiles.v1.AdHocProfileService: single files, which Profiles Drilldown and Pyroscope's page
 * upload, show and compare. A file is kept as it came (kept.h) and decoded again for each request;
 * no sample of it goes into the store. Its id is that of kept.h, "LETTERS-NAME".
 */
#include "base/clock.h"
#include "http/http.h"
#include "pb/pb.h"
#include "pyroscope/pyroscope.h"
#include "server/pyroscope/pyroscope.h"
#include "server/request/request.h"

#include <inttypes.h>

/* A file, and what one takes in memory: texts, tables and graphs. As many requests read files at a
 * time; more are refused. */
#define ADHOC_FILE_MAX ((size_t)16 << 20)
#define ADHOC_PROFILE_BYTES ((size_t)128 << 20)
#define ADHOC_AT_ONCE 4

struct adhoc {
	struct server *s;
	const struct net_request *r;
	struct str tenant;
	struct arena a;
	struct buf *out;
	struct err *e;
};
typedef enum status adhoc_fn(struct adhoc *c);

/* Upload: name, profile. Get: id, profile_type. Diff: left_id, right_id, profile_type. */
struct request {
	struct str text[4]; /* by number */
	int64_t nodes_max;  /* 0: not said */
};

static enum status request_read(struct adhoc *c, struct request *out)
{
	struct reader r = reader_over(c->r->body.p, c->r->body.len);
	struct pb_field f;
	*out = (struct request){ 0 };
	while (pb_next(&r, &f)) {
		if (f.wire == PB_BYTES && f.number < ARRAY_COUNT(out->text))
			out->text[f.number] = f.bytes;
		else if (f.wire == PB_VARINT)
			out->nodes_max = (int64_t)f.u64;
	}
	if (r.failed)
		return err_set(
			c->e, E_INVALID, "the request is malformed at byte %zu", reader_offset(&r));
	if (out->nodes_max <= 0)
		out->nodes_max = PYROSCOPE_NODES_DEFAULT;
	out->nodes_max = MIN(out->nodes_max, (int64_t)PYROSCOPE_NODES_MAX);
	return OK;
}

/* ---- a file that was read ---- */

struct opened {
	struct profile p;
	struct pyroscope_file_type *types;
	size_t type_count;
};

static void opened_deinit(struct opened *f)
{
	profile_deinit(&f->p);
}

/* Deinit, also after a failure. */
static enum status file_open(struct adhoc *c, struct str bytes, struct opened *out)
{
	*out = (struct opened){ 0 };
	enum status s = profile_init(&out->p, ADHOC_PROFILE_BYTES);
	if (s != OK)
		return err_set(c->e, s, "the file");
	s = pyroscope_file_decode(bytes, clock_realtime_ns(), &out->p, c->e);
	if (s == OK)
		s = pyroscope_file_types(&out->p, &c->a, &out->types, &out->type_count, c->e);
	if (s == OK && out->type_count == 0)
		s = err_set(c->e, E_INVALID, "there are no profiles in the file");
	return s;
}

static enum status file_get(
	struct adhoc *c, struct str id, struct opened *out, int64_t *out_time_ns)
{
	CLEANUP(buf_deinit) struct buf bytes;
	*out = (struct opened){ 0 };
	buf_init(&bytes, ADHOC_FILE_MAX);
	enum status s = kept_get(c->s, c->tenant, KEPT_UPLOAD, id, &bytes, out_time_ns, c->e);
	return s == OK ? file_open(c, buf_view(&bytes), out) : s;
}

/* The type with that name, else the first, as in Pyroscope. */
static const struct pyroscope_file_type *type_of(const struct opened *f, struct str name)
{
	for (size_t i = 0; i < f->type_count; i++)
		if (str_eq(f->types[i].name, name))
			return &f->types[i];
	return &f->types[0];
}

/* ---- answers ---- */

/* `right` NULL: one file. As /pyroscope/render writes it, as a text in field `number`. */
static enum status put_graph(struct adhoc *c, const struct pyroscope_file_type *type,
	struct opened *left, struct opened *right, int64_t nodes_max, uint32_t number)
{
	CLEANUP(buf_deinit) struct buf json;
	struct pyroscope_side sides[2];
	struct pyroscope_flame flame;
	buf_init(&json, NET_ANSWER_MAX);
	enum status s = pyroscope_file_side(&left->p, type->type, &c->a, &sides[0], c->e);
	if (s == OK && right)
		s = pyroscope_file_side(
			&right->p, type_of(right, type->name)->type, &c->a, &sides[1], c->e);
	if (s == OK)
		s = pyroscope_flame_make(
			&sides[0], right ? &sides[1] : NULL, nodes_max, &c->a, &flame, c->e);
	if (s != OK)
		return s;
	pyroscope_flamebearer_write(&flame, type->name, type->unit, NULL, &json);
	pb_put_str(c->out, number, buf_view(&json));
	return buf_status(&json) == OK ? OK : err_set(c->e, buf_status(&json), "the flame graph");
}

/* AdHocProfilesGetResponse { id = 1, name = 2, uploaded_at = 3, profile_type = 4, profile_types =
 * 5, flamebearer_profile = 6 } */
static enum status put_file(struct adhoc *c, struct str id, int64_t time_ns, struct opened *f,
	struct str wanted, int64_t nodes_max)
{
	const struct pyroscope_file_type *type = type_of(f, wanted);
	pb_put_str(c->out, 1, id);
	pb_put_str(c->out, 2, kept_name(id));
	pb_put_i64(c->out, 3, time_ns / NS_PER_MS);
	pb_put_str(c->out, 4, type->name);
	for (size_t i = 0; i < f->type_count; i++)
		pb_put_str_always(c->out, 5, f->types[i].name);
	return put_graph(c, type, f, NULL, nodes_max, 6);
}

/* The name as part of an id; characters that an id may not have become '_'. */
static struct str plain_name(struct adhoc *c, struct str name)
{
	name = str_sub(name, 0, KEPT_NAME_MAX);
	char *copy = arena_copy(&c->a, name.p, name.len);
	for (size_t i = 0; copy && i < name.len; i++) {
		char x = copy[i];
		bool fits = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') ||
			    (x >= '0' && x <= '9') || x == '.' || x == '-' || x == '_';
		copy[i] = fits ? x : '_';
	}
	return str_make(copy, copy ? name.len : 0);
}

static enum status upload(struct adhoc *c)
{
	CLEANUP(buf_deinit) struct buf bytes;
	CLEANUP(opened_deinit) struct opened f = { 0 };
	struct request q;
	struct kept kept;
	buf_init(&bytes, ADHOC_FILE_MAX);
	enum status s = request_read(c, &q);
	if (s != OK)
		return s;
	if (q.text[2].len > ADHOC_FILE_MAX / 3 * 4)
		return err_set(
			c->e, E_LIMIT, "the file is larger than %zu MiB", ADHOC_FILE_MAX >> 20);
	if (!http_base64_decode(&bytes, q.text[2]))
		return err_set(c->e, E_INVALID, "profile: this is not base64");
	s = file_open(c, buf_view(&bytes), &f);
	if (s == OK)
		s = kept_put(c->s, c->tenant, KEPT_UPLOAD, plain_name(c, q.text[1]),
			buf_view(&bytes), 0, &kept, c->e);
	return s == OK ? put_file(c, str_of(kept.id), kept.time_ns, &f, STR(""), q.nodes_max) : s;
}

static enum status get(struct adhoc *c)
{
	CLEANUP(opened_deinit) struct opened f = { 0 };
	struct request q;
	int64_t time_ns = 0;
	enum status s = request_read(c, &q);
	if (s == OK)
		s = file_get(c, q.text[1], &f, &time_ns);
	return s == OK ? put_file(c, q.text[1], time_ns, &f, q.text[2], q.nodes_max) : s;
}

/* AdHocProfilesListResponse { profiles = 1: { id = 1, name = 2, uploaded_at = 3 } } */
static enum status list(struct adhoc *c)
{
	struct kept *v = NULL;
	size_t count = 0;
	enum status s = kept_list(c->s, c->tenant, KEPT_UPLOAD, &c->a, &v, &count, c->e);
	for (size_t i = 0; s == OK && i < count; i++) {
		struct str id = str_of(v[i].id);
		size_t begun = pb_begin(c->out, 1);
		pb_put_str(c->out, 1, id);
		pb_put_str(c->out, 2, kept_name(id));
		pb_put_i64(c->out, 3, v[i].time_ns / NS_PER_MS);
		pb_end(c->out, begun);
	}
	return s;
}

static bool has_type(const struct opened *f, struct str name)
{
	return str_eq(type_of(f, name)->name, name);
}

/* AdHocProfilesDiffResponse { profile_types = 1, flamebearer_profile = 2 }: types that both have,
 * and the comparison in the one that was asked for, or the first of the left file. */
static enum status diff(struct adhoc *c)
{
	CLEANUP(opened_deinit) struct opened left = { 0 };
	CLEANUP(opened_deinit) struct opened right = { 0 };
	struct request q;
	int64_t time_ns;
	enum status s = request_read(c, &q);
	if (s == OK)
		s = file_get(c, q.text[1], &left, &time_ns);
	if (s == OK)
		s = file_get(c, q.text[2], &right, &time_ns);
	if (s != OK)
		return s;
	const struct pyroscope_file_type *type = type_of(&left, q.text[3]);
	if (!has_type(&right, type->name))
		return err_set(c->e, E_INVALID, "the right file has no profile \"%.*s\"",
			STR_ARG(str_sub(type->name, 0, 64)));
	for (size_t i = 0; i < left.type_count; i++)
		if (has_type(&right, left.types[i].name))
			pb_put_str_always(c->out, 1, left.types[i].name);
	return put_graph(c, type, &left, &right, q.nodes_max, 2);
}

/* ---- handlers ---- */

static void answer(void *ctx, const struct net_request *r, struct net_response *out, adhoc_fn *fn)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	struct adhoc c = { .s = s, .r = r, .out = &out->body, .e = &e };
	if (!server_is_ready(s, out))
		return;
	arena_init(&c.a, ADHOC_PROFILE_BYTES);
	enum status st = server_tenant(s, r, &c.tenant, &e);
	unsigned others = atomic_fetch_add(&s->files_read, 1);
	if (st == OK && others >= ADHOC_AT_ONCE)
		st = err_set(&e, E_UNAVAILABLE, "%d files are being read", ADHOC_AT_ONCE);
	if (st == OK)
		st = fn(&c);
	atomic_fetch_sub(&s->files_read, 1);
	arena_deinit(&c.a);
	if (st == OK && buf_status(&out->body) != OK)
		st = err_set(&e, buf_status(&out->body), "the answer");
	if (st != OK)
		net_fail(out, st, &e);
}

#define HANDLER(name, fn)                                                           \
	void name(void *ctx, const struct net_request *r, struct net_response *out) \
	{                                                                           \
		answer(ctx, r, out, fn);                                            \
	}
HANDLER(server_adhoc_upload, upload)
HANDLER(server_adhoc_get, get)
HANDLER(server_adhoc_list, list)
HANDLER(server_adhoc_diff, diff)
