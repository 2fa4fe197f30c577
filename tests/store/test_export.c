/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was exported, from wherever it lay, is what the selector picked: the answers of a store that
 * imported it are the model's.
 */
#include "tests/store/model_check.h"

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

static void export_to(
	struct store *s, const char *selector, int64_t from, int64_t to, struct buf *out)
{
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, selector, from, to);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, q, out, &e), &e);
	store_view_close(v);
	fx_query_end(&f);
}

/* Parts (one merged), a memtable, late samples. */
static void fill(struct store *s, struct model *m, bool merge)
{
	struct err e = { 0 };
	for (int round = 0; round < 6; round++) {
		model_append(m, s, 80, T0 + round * 10 * SEC, 10 * SEC);
		model_append(m, s, 20, T0, 60 * SEC);
		if (round == 1 || round == 3)
			CHECK_OK(store_flush(s, &e), &e);
		bool merged = merge && round == 3;
		while (merged)
			CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	}
}

static void model_keep(struct model *m, const struct model_query *q, int64_t from, int64_t to)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->samples.len; i++)
		if (model_picks(q, &m->samples.v[i], from, to))
			m->samples.v[kept++] = m->samples.v[i];
	m->samples.len = kept;
}

static void round_trips(const struct model_query *q, int64_t from, int64_t to)
{
	char dir[2][64], text[256];
	struct model m = { .random = 77 + (uint64_t)from };
	struct buf b;
	struct store_imported done;
	struct err e = { 0 };
	buf_init(&b, 16 << 20);
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *s = open_store(dir[0]), *other = open_store(dir[1]);
	fill(s, &m, true);
	model_query_text(q, text);
	export_to(s, text, from, to, &b);
	model_keep(&m, q, from, to);
	CHECK((b.len == 0) == (m.samples.len == 0));
	if (b.len)
		CHECK_OK(store_import(other, buf_view(&b), NULL, &done, &e), &e);
	if (b.len)
		CHECK(!done.known && done.samples == m.samples.len && done.rows > 0);
	model_check(other, &m, INT64_MIN, INT64_MAX);
	store_close(other);
	other = open_store(dir[1]);
	model_check(other, &m, INT64_MIN, INT64_MAX);
	store_close(other);
	store_close(s);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

static void selections_round_trip(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, model_queries) {
		round_trips(c, INT64_MIN, INT64_MAX);
		round_trips(c, T0 + 20 * SEC, T0 + 40 * SEC);
	}
	round_trips(&model_queries[0], T0 + 1000 * SEC, T0 + 2000 * SEC); /* nothing */
}

/* The Python reader, written from the documents, sees in an export what it sees in a part. */
static void an_export_is_a_part(void **state)
{
	(void)state;
	char dir[64], path[128], command[512];
	struct model m = { .random = 3 };
	struct buf b;
	struct err e = { 0 };
	buf_init(&b, 16 << 20);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	fill(s, &m, false);
	export_to(s, "{}", INT64_MIN, INT64_MAX, &b);
	snprintf(path, sizeof(path), "%s/all", dir);
	CHECK_OK(os_replace_file(path, b.data, b.len, 0600, &e), &e);
	snprintf(command, sizeof(command),
		"/usr/bin/python3 %s/part_reader.py %s >/dev/null && /usr/bin/python3 "
		"%s/part_reader.py --meta %s | grep '^samples %zu$' >/dev/null",
		FIRN_TESTS_DIR, path, FIRN_TESTS_DIR, path, m.samples.len);
	CHECK(system(command) == 0); // NOLINT
	struct buf found;
	buf_init(&found, 1 << 20);
	CHECK_OK(store_verify(path, &found, &e), &e);
	buf_deinit(&found);
	buf_deinit(&b);
	store_close(s);
	snprintf(path, sizeof(path), "%s/export", dir);
	DIR *d = opendir(path);
	CHECK(d != NULL);
	for (struct dirent *x; (x = readdir(d));)
		CHECK(x->d_name[0] == '.'); /* nothing is left behind */
	closedir(d);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* One young part alone: its rows go through in their own order. */
static void one_part_alone(void **state)
{
	(void)state;
	char dir[2][64];
	struct model m = { .random = 5 };
	struct buf b;
	struct store_imported done;
	struct err e = { 0 };
	buf_init(&b, 16 << 20);
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *s = open_store(dir[0]), *other = open_store(dir[1]);
	fixture_stop_merging(s);
	fixture_stop_merging(other);
	model_append(&m, s, 300, T0, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	export_to(s, "{}", INT64_MIN, INT64_MAX, &b);
	CHECK_OK(store_import(other, buf_view(&b), NULL, &done, &e), &e);
	CHECK(part_meta(other->parts.v[0])->order == PART_ORDER_TIME);
	model_check(other, &m, INT64_MIN, INT64_MAX);
	store_close(s);
	store_close(other);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

static void parts_stand_behind_each_other(void **state)
{
	(void)state;
	char dir[2][64];
	struct model m = { .random = 9 };
	struct buf b;
	struct err e = { 0 };
	buf_init(&b, 16 << 20);
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *s = open_store(dir[0]), *other = open_store(dir[1]);
	fill(s, &m, false);
	export_to(s, "{}", INT64_MIN, T0 + 20 * SEC, &b);
	export_to(s, "{}", T0 + 20 * SEC, T0 + 40 * SEC, &b);
	export_to(s, "{}", T0 + 40 * SEC, INT64_MAX, &b);
	struct str rest = buf_view(&b), part;
	int n = 0;
	for (; rest.len; n++) {
		struct store_imported done;
		CHECK_OK(store_export_split(rest, &rest, &part, &e), &e);
		CHECK_OK(store_import(other, part, NULL, &done, &e), &e);
	}
	CHECK(n == 3);
	model_check(other, &m, INT64_MIN, INT64_MAX);
	rest = str_sub(buf_view(&b), 0, b.len - 1);
	CHECK(store_export_split(rest, &rest, &part, &e) == E_CORRUPT);
	CHECK(strstr(e.text, "no end of a part") != NULL);
	store_close(s);
	store_close(other);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

static void limits(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 9 };
	struct fx_query f;
	struct store_view *v;
	struct buf b;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	fill(s, &m, false);
	buf_init(&b, 1000);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	struct samples_query *q = fx_query(&f, "{}", 0, INT64_MAX);
	CHECK(store_export(v, q, &b, &e) == E_LIMIT && b.len == 0);
	CHECK(strstr(e.text, "more than one part of an export takes") != NULL);
	q->to_ns = 0;
	CHECK(store_export(v, q, &b, &e) == E_INVALID);
	store_view_close(v);
	fx_query_end(&f);
	buf_deinit(&b);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static atomic_bool is_full;

/* Another time it may fit: that is not the same as too much. */
static void a_full_disk_is_told(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 5 };
	struct buf b;
	struct err e = { 0 };
	struct fx_query f;
	struct store_view *v;
	buf_init(&b, 16 << 20);
	fixture_dir(dir);
	store_io_hook = (struct store_io_hook){ fixture_full_disk, &is_full };
	struct store *s = open_store(dir);
	model_append(&m, s, 50, T0, 60 * SEC);
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	atomic_store(&is_full, true);
	CHECK(store_export(v, q, &b, &e) == E_NOSPACE && b.len == 0);
	CHECK(strstr(e.text, "No space left") != NULL);
	atomic_store(&is_full, false);
	CHECK_OK(store_export(v, q, &b, &e), &e);
	CHECK(b.len > 0);
	store_view_close(v);
	fx_query_end(&f);
	store_close(s);
	store_io_hook = (struct store_io_hook){ 0 };
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(a_full_disk_is_told), cmocka_unit_test(selections_round_trip),
	cmocka_unit_test(an_export_is_a_part), cmocka_unit_test(one_part_alone),
	cmocka_unit_test(parts_stand_behind_each_other), cmocka_unit_test(limits))
