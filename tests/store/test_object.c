/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part is read the same from a file and from anything else that gives bytes at an offset: here
 * from memory, also when each of its reads fails in turn, and when it is shorter than it says.
 */
#include "store/disk/object.h"

#include "store/read/view.h"
#include "tests/store/model.h"

/* Bytes in memory; the read with number `fail_at` fails. */
struct memory {
	struct object object;
	struct str bytes;
	int reads;
	int fail_at; /* -1: none */
	enum status failure;
	int *closed;
};

static enum status memory_read(
	struct object *o, uint64_t offset, void *out, size_t len, struct err *e)
{
	struct memory *m = (struct memory *)o;
	CHECK(offset + len <= o->bytes);
	if (m->reads++ == m->fail_at)
		return err_set(e, m->failure, "%s: injected", o->name);
	memcpy(out, m->bytes.p + offset, len);
	return OK;
}

static void memory_close(struct object *o)
{
	struct memory *m = (struct memory *)o;
	++*m->closed;
	free(m);
}

static const struct object_ops memory_ops = { memory_read, memory_close };

static struct memory *memory_new(struct str bytes, int *closed)
{
	struct memory *m = calloc(1, sizeof(*m));
	CHECK(m != NULL);
	*m = (struct memory){ .object = { &memory_ops, "bucket/part", bytes.len },
		.bytes = bytes,
		.fail_at = -1,
		.failure = E_IO,
		.closed = closed };
	return m;
}

/* The file of the only part of a store with some samples. */
static void make_part(struct buf *bytes, char dir[64], struct store **out)
{
	struct model m = { .random = 5 };
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, out, &e), &e);
	fixture_stop_merging(*out); /* the part and its file stay */
	model_append(&m, *out, 300, T0, 60 * SEC);
	CHECK_OK(store_flush(*out, &e), &e);
	CHECK((*out)->parts.len == 1);
	CHECK_OK(os_read_file(part_path((*out)->parts.v[0]), bytes, &e), &e);
	VEC_FREE(&m.samples);
}

/* Sum of values, names and stacks included, over one part. */
static enum status sum(struct store *s, struct part *p, int64_t *total, struct err *e)
{
	struct store_view *v;
	struct fx_query f;
	struct samples_tree t;
	CHECK_OK(store_view_open(s, STR(""), &v, e), e);
	CHECK(v->source_count == 1);
	part_unref(v->sources[0].part);
	v->sources[0].part = part_ref(p);
	struct samples_query *q =
		fx_query(&f, "cpu:samples:count:cpu:nanoseconds:delta", T0, T0 + 30 * SEC);
	enum status st = store_sum_stacks(v, q, &t, e);
	if (st == OK) {
		*total = t.total;
		samples_tree_deinit(&t);
	}
	fx_query_end(&f);
	store_view_close(v);
	return st;
}

static void parts_lie_anywhere(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct part *p;
	struct err e = { 0 };
	int64_t want, got;
	int closed = 0, reads = 0;
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, 64 << 20);
	make_part(&bytes, dir, &s);
	CHECK_OK(sum(s, s->parts.v[0], &want, &e), &e);
	CHECK(want > 0);
	struct memory *m = memory_new(buf_view(&bytes), &closed);
	CHECK_OK(part_open_object(&m->object, &p, &e), &e);
	CHECK_STR(str_of(part_path(p)), "bucket/part");
	CHECK_OK(part_verify(p, &e), &e);
	part_trim(p, ~0u, INT64_MAX);
	CHECK_OK(sum(s, p, &got, &e), &e);
	CHECK(got == want);
	reads = m->reads;
	part_unref(p);
	CHECK(closed == 1);

	int failed = 0;
	for (int k = 0; k < reads; k++) {
		m = memory_new(buf_view(&bytes), &closed);
		m->fail_at = k;
		enum status st = part_open_object(&m->object, &p, &e);
		if (st == OK) {
			st = sum(s, p, &got, &e);
			CHECK(st != OK || got == want);
			if (st != OK) /* and it works another time */
				CHECK_OK(sum(s, p, &got, &e), &e);
			CHECK(got == want);
			part_unref(p);
		}
		CHECK(st == OK || st == E_IO);
		if (st != OK)
			CHECK(strstr(e.text, "injected") != NULL);
		failed += st != OK;
	}
	CHECK(failed > 10);
	CHECK(closed == 1 + reads);
	store_close(s);
	fixture_clean(dir);
}

static void never_beyond_the_end(void **state)
{
	(void)state;
	uint8_t to[8];
	int closed = 0;
	struct part *p;
	struct err e = { 0 };
	struct memory *m = memory_new(STR("0123456789"), &closed);
	CHECK(object_read(&m->object, 4, to, 6, &e) == OK);
	CHECK(object_read(&m->object, 5, to, 6, &e) == E_CORRUPT);
	CHECK(strstr(e.text, "bucket/part: 6 bytes at +5") != NULL);
	CHECK(object_read(&m->object, UINT64_MAX, to, 6, &e) == E_CORRUPT);
	CHECK(object_read(&m->object, 11, to, 0, &e) == E_CORRUPT);
	CHECK(part_open_object(&m->object, &p, &e) == E_CORRUPT);
	CHECK(closed == 1);
	object_close(NULL);
}

static void files_only(void **state)
{
	(void)state;
	struct object *o;
	struct err e = { 0 };
	CHECK(object_open_file("/dev/null", &o, &e) == E_INVALID);
	CHECK(strstr(e.text, "not a regular file") != NULL);
	CHECK(object_open_file("/nowhere/at/all", &o, &e) != OK);
	char dir[64], path[96];
	fixture_dir(dir);
	snprintf(path, sizeof(path), "%s/pipe", dir);
	CHECK(mkfifo(path, 0600) == 0);
	alarm(600); /* nobody writes to it: who waits, waits for ever */
	CHECK(object_open_file(path, &o, &e) == E_INVALID);
	CHECK(object_open_file(dir, &o, &e) == E_INVALID);
	alarm(0);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(parts_lie_anywhere), cmocka_unit_test(never_beyond_the_end),
	cmocka_unit_test(files_only))
