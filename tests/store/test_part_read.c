/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this reader sees in a part is what the Python reader sees, which was written from the
 * document; and no flipped bit goes unnoticed. Parts that lie in the tree are read,
 * queried and merged.
 */
#include "codec/codec.h"
#include "store/part/part.h"

#include "tests/store/model_check.h"
#include "tests/store/python.h"

static int by_line(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void sort_lines(const struct buf *in, struct buf *out)
{
	VEC(struct str) lines = { 0 };
	struct str rest = buf_view(in), line;
	while (str_split(&rest, '\n', &line))
		CHECK(VEC_PUSH(&lines, line));
	if (lines.len)
		qsort(lines.v, lines.len, sizeof(*lines.v), by_line);
	for (size_t i = 0; i < lines.len; i++) {
		buf_str(out, lines.v[i]);
		buf_u8(out, '\n');
	}
	VEC_FREE(&lines);
}

static void write_series(const struct tabs *t, uint32_t series, struct buf *b)
{
	const struct tab_series *s = &t->series[series];
	buf_str(b, t->label_strings[s->tenant]);
	for (int k = 0; k < TABLES_TYPE_PARTS; k++) {
		buf_u8(b, k ? ':' : '|');
		buf_str(b, t->label_strings[s->type[k]]);
	}
	buf_printf(b, "%s|%lld|", s->delta ? ":delta" : "", (long long)s->period);
	for (uint32_t k = 0; k < s->label_count; k++) {
		const struct profile_label *l = &t->labels[s->label_first + k];
		buf_printf(b, "%s%.*s=%.*s", k ? "," : "", STR_ARG(t->label_strings[l->name]),
			STR_ARG(t->label_strings[l->value]));
	}
	buf_u8(b, '|');
}

static void write_set(const struct tabs *t, uint32_t set, struct buf *b)
{
	const char *comma = "";
	for (uint32_t k = 0; k < t->name_count; k++) {
		uint32_t value = t->sets[set * (1 + t->name_count) + 1 + k];
		if (!value)
			continue;
		buf_printf(b, "%s%.*s=%.*s", comma, STR_ARG(t->names[k]),
			STR_ARG(t->sample_strings[value]));
		comma = ",";
	}
	buf_u8(b, '|');
}

static void write_stack(const struct tabs *t, uint32_t node, struct buf *b)
{
	if (node == 0)
		return;
	write_stack(t, t->parent[node], b);
	const struct profile_location *l = &t->locations[t->node_location[node]];
	for (uint32_t k = 0; k < l->line_count; k++) {
		const struct profile_line *x = &t->lines[l->line_first + k];
		buf_printf(b, "%s%.*s:%u", k ? "<" : "",
			STR_ARG(t->symbol_strings[t->functions[x->function].name]), x->line);
	}
	if (!l->line_count)
		buf_printf(b, "%.*s+%llx",
			STR_ARG(t->symbol_strings[t->mappings[l->mapping].filename]),
			(unsigned long long)l->address);
	buf_u8(b, ';');
}

/* The same lines as part_reader.py. */
static void dump(struct part *p, struct buf *out)
{
	struct tabs t;
	struct part_rows rows;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 64 << 20);
	part_rows_init(&rows);
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	size_t n;
	const struct part_block *blocks = part_blocks(p, &n);
	for (size_t i = 0; i < n; i++) {
		CHECK_OK(part_read_block(p, &t, &blocks[i], ~0u, &rows, &e), &e);
		for (size_t k = 0; k < rows.count; k++) {
			write_series(&t, rows.series[k], &b);
			write_set(&t, rows.set[k], &b);
			write_stack(&t, rows.node[k], &b);
			buf_printf(&b, "|%lld|%lld|%lld\n", (long long)rows.time_ns[k],
				(long long)rows.value[k], (long long)rows.n[k]);
		}
	}
	part_unpin(p, PART_LOAD_ALL);
	part_rows_deinit(&rows);
	sort_lines(&b, out);
}

static bool run_python(const char *path, struct buf *out)
{
	char arguments[600];
	snprintf(arguments, sizeof(arguments), "part_reader.py %s", path);
	return python_run(arguments, out);
}

static void compare(struct store *s)
{
	for (size_t i = 0; i < s->parts.len; i++) {
		struct err e = { 0 };
		CLEANUP(buf_deinit) struct buf mine, theirs, lines;
		buf_init(&mine, 64 << 20);
		buf_init(&theirs, 64 << 20);
		buf_init(&lines, 64 << 20);
		dump(s->parts.v[i], &mine);
		CHECK_OK(part_verify(s->parts.v[i], &e), &e);
		CHECK(run_python(part_path(s->parts.v[i]), &theirs));
		sort_lines(&theirs, &lines);
		CHECK(mine.len > 1000);
		CHECK(str_eq(buf_view(&mine), buf_view(&lines)));
	}
}

static void python_reads_the_same(void **state)
{
	(void)state;
	if (!python_has_zstandard())
		SKIP("no /usr/bin/python3 with the module zstandard (python3-zstandard)");
	char dir[64];
	struct model m = { .random = 77 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock); /* the young part stays for a moment */
	model_append(&m, s, 3000, T0, 100 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK(part_meta(s->parts.v[0])->level == 0);
	compare(s);
	model_append(&m, s, 2000, T0 + 50 * SEC, 100 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	lock_release(&s->merge_lock);
	bool merged;
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	CHECK(s->parts.len == 1 && part_meta(s->parts.v[0])->order == PART_ORDER_STACK);
	compare(s);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* Times kept to a microsecond, on the grids of two CPUs' timers. */
static void python_reads_times_of_timers(void **state)
{
	(void)state;
	if (!python_has_zstandard())
		SKIP("no /usr/bin/python3 with the module zstandard (python3-zstandard)");
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.resolution_ns = 1000;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (uint64_t batch = 0; batch < 4; batch++) {
		struct profile p;
		CHECK(profile_init(&p, 64 << 20) == OK);
		uint32_t head = fx_head(&p, "cpu", true, 52631578);
		for (uint64_t i = 0; i < 600; i++) {
			uint64_t r = hash_u64(batch * 1000 + i), tick = batch * 500 + r % 500;
			const char *comm[] = { "comm", r >> 20 & 1 ? "a" : "b", NULL };
			int64_t time = T0 + (int64_t)(tick * 52631578 + (r >> 21 & 1) * 30000000 +
						      (r >> 22) % 40000);
			fx_sample(&p, time, 1, head, model_stack(&p, (int)(r >> 40) % MODEL_STACKS),
				fx_labels(&p, comm), 0);
		}
		CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 1 + batch, 7 }, &e), &e);
		CHECK_OK(store_flush(s, &e), &e);
		profile_deinit(&p);
	}
	bool merged;
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	CHECK(s->parts.len == 1 && part_meta(s->parts.v[0])->order == PART_ORDER_TIME);
	struct tabs t;
	size_t n;
	CHECK_OK(part_pin(s->parts.v[0], PART_LOAD_BLOCKS, UINT64_MAX, &t, &e), &e);
	CHECK(part_blocks(s->parts.v[0], &n)[0].columns[ROW_TIME].encoding == COLUMN_TICKS);
	part_unpin(s->parts.v[0], PART_LOAD_BLOCKS);
	compare(s);
	store_close(s);
	fixture_clean(dir);
}

/* Every single byte of a small part, one after the other. */
static void each_byte_is_checked(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct model m = { .random = 8 };
	struct store *s;
	struct err e = { 0 };
	struct part *p;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	model_append(&m, s, 60, T0, 100 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock);
	snprintf(path, sizeof(path), "%s", part_path(s->parts.v[0]));
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	CHECK(fd >= 0 && size > 500);
	for (off_t at = 0; at < size; at++) {
		uint8_t byte, bad;
		CHECK(pread(fd, &byte, 1, at) == 1);
		bad = (uint8_t)(byte ^ 1u << (at % 8));
		CHECK(pwrite(fd, &bad, 1, at) == 1);
		enum status st = part_open(path, &p, &e);
		if (st == OK) {
			st = part_verify(p, &e);
			part_unref(p);
		}
		if (st == OK)
			print_error("a flipped bit at +%lld was not noticed\n", (long long)at);
		CHECK(st == E_CORRUPT || st == E_UNSUPPORTED);
		CHECK(pwrite(fd, &byte, 1, at) == 1);
	}
	close(fd);
	lock_release(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* ---- parts that lie in the tree (parts/README.md) ---- */

static const struct old_part {
	const char *name;
	uint64_t id;
	uint8_t minor;
	const char *rows, *profiles;
} old_parts[] = {
	{ "1.0, merged", 0x100, 0, "merged.rows", "merged.profiles" },
	{ "1.0, fine", 0x101, 0, "fine.rows", "fine.profiles" },
};

static void load_old(const char *name, struct buf *out)
{
	char path[512];
	struct err e = { 0 };
	buf_init(out, 1 << 20);
	snprintf(path, sizeof(path), FIRN_TESTS_DIR "/parts/%s", name);
	CHECK_OK(os_read_file(path, out, &e), &e);
}

static void old_name(const struct old_part *of, char out[32])
{
	snprintf(out, 32, "%016llx.part", (unsigned long long)of->id);
}

static void dump_profiles(struct part *p, struct buf *out)
{
	struct tabs t;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	for (uint32_t i = 0; i < t.profile_count; i++) {
		const struct tab_profile *x = &t.profiles[i];
		write_series(&t, x->series, &b);
		buf_printf(&b, "%lld|%lld|%lld\n", (long long)x->time_ns, (long long)x->duration_ns,
			(long long)x->samples);
	}
	part_unpin(p, PART_LOAD_ALL);
	sort_lines(&b, out);
}

static void check_profiles(const struct old_part *c, const char *path, bool python)
{
	char arguments[600];
	struct part *p;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf want, mine, theirs;
	buf_init(&mine, 1 << 20);
	buf_init(&theirs, 1 << 20);
	load_old(c->profiles, &want);
	CHECK_OK(part_open(path, &p, &e), &e);
	dump_profiles(p, &mine);
	part_unref(p);
	CHECK_CASE(c, want.len > 0 && str_eq(buf_view(&mine), buf_view(&want)));
	snprintf(arguments, sizeof(arguments), "part_reader.py --profiles %s", path);
	CHECK_CASE(c, !python || python_run(arguments, &theirs));
	CHECK_CASE(c, !python || str_eq(buf_view(&theirs), buf_view(&want)));
}

/* What the reader of its own day saw is what both readers of today see. */
static void old_parts_are_read(void **state)
{
	(void)state;
	bool python = python_has_zstandard();
	FOR_EACH_CASE (c, old_parts) {
		char name[32], path[512];
		struct part *p;
		struct err e = { 0 };
		CLEANUP(buf_deinit) struct buf want, file, mine, theirs;
		buf_init(&mine, 1 << 20);
		buf_init(&theirs, 1 << 20);
		load_old(c->rows, &want);
		old_name(c, name);
		load_old(name, &file);
		CHECK_CASE(c, file.data[8] == 1 && file.data[10] == c->minor);
		snprintf(path, sizeof(path), FIRN_TESTS_DIR "/parts/%s", name);
		CHECK_OK(part_open(path, &p, &e), &e);
		CHECK_OK(part_verify(p, &e), &e);
		dump(p, &mine);
		CHECK_CASE(c, str_eq(buf_view(&mine), buf_view(&want)));
		part_unref(p);
		CHECK_CASE(c, !python || run_python(path, &theirs));
		CHECK_CASE(c, !python || str_eq(buf_view(&theirs), buf_view(&want)));
		check_profiles(c, path, python);
	}
}

/* A line of part_reader.py. */
struct old_row {
	struct str key; /* all before the time */
	int64_t time_ns, value, count;
};

struct old_rows {
	struct buf text[ARRAY_COUNT(old_parts)];
	VEC(struct old_row) rows;
};

/* What lies behind the last bar, which goes too. */
static struct str take_last(struct str *s)
{
	size_t at = s->len;
	while (at && s->p[at - 1] != '|')
		at--;
	CHECK(at > 0);
	struct str out = str_sub(*s, at, s->len - at);
	*s = str_sub(*s, 0, at - 1);
	return out;
}

static int by_key(const void *a, const void *b)
{
	const struct old_row *x = a, *y = b;
	int order = str_cmp(x->key, y->key);
	return order ? order : (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Rows of all the parts as they are when all are merged: times of delta types by 10 s. */
static void old_rows_merged(struct old_rows *r)
{
	for (size_t i = 0; i < ARRAY_COUNT(old_parts); i++) {
		load_old(old_parts[i].rows, &r->text[i]);
		struct str rest = buf_view(&r->text[i]), line;
		while (str_split(&rest, '\n', &line)) {
			struct old_row x = { 0 };
			CHECK(str_parse_i64(take_last(&line), &x.count));
			CHECK(str_parse_i64(take_last(&line), &x.value));
			CHECK(str_parse_i64(take_last(&line), &x.time_ns));
			x.key = line;
			if (!str_starts(line, STR("|inuse:")))
				x.time_ns -= x.time_ns % (10 * SEC);
			CHECK(VEC_PUSH(&r->rows, x));
		}
	}
	qsort(r->rows.v, r->rows.len, sizeof(*r->rows.v), by_key);
	size_t n = 0;
	for (size_t i = 1; i < r->rows.len; i++) {
		if (by_key(&r->rows.v[n], &r->rows.v[i]) != 0) {
			r->rows.v[++n] = r->rows.v[i];
			continue;
		}
		r->rows.v[n].value += r->rows.v[i].value;
		r->rows.v[n].count += r->rows.v[i].count;
	}
	r->rows.len = n + 1;
}

static void old_rows_deinit(struct old_rows *r)
{
	for (size_t i = 0; i < ARRAY_COUNT(old_parts); i++)
		buf_deinit(&r->text[i]);
	VEC_FREE(&r->rows);
}

static int64_t old_sum(const struct old_rows *r, const char *type, struct str stack)
{
	int64_t sum = 0;
	for (size_t i = 0; i < r->rows.len; i++) {
		struct str key = r->rows.v[i].key;
		struct str of = take_last(&key);
		if (str_starts(str_sub(key, 1, key.len - 1), str_of(type)) && str_eq(of, stack))
			sum += r->rows.v[i].value;
	}
	return sum;
}

static void check_old_sums(struct store *s, const struct old_rows *r)
{
	for (int i = 0; i < 2; i++) { /* the delta types */
		struct fx_query f;
		struct store_view *v;
		struct samples_tree t;
		struct err e = { 0 };
		int64_t total = 0, want = 0;
		struct samples_query *q = fx_query(&f, model_types[i].text, INT64_MIN, INT64_MAX);
		CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
		CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
		for (uint32_t n = 0; n < t.nodes.len; n++) {
			CLEANUP(buf_deinit) struct buf b;
			buf_init(&b, 4096);
			node_text(&t, n, &b);
			CHECK(t.nodes.v[n].self == old_sum(r, model_types[i].text, buf_view(&b)));
			total += t.nodes.v[n].self;
		}
		for (size_t k = 0; k < r->rows.len; k++)
			if (str_starts(str_sub(r->rows.v[k].key, 1, r->rows.v[k].key.len - 1),
				    str_of(model_types[i].text)))
				want += r->rows.v[k].value;
		CHECK(total == want && t.total == want && want > 1000);
		samples_tree_deinit(&t);
		store_view_close(v);
		fx_query_end(&f);
	}
}

static void check_old_labels(struct store *s)
{
	struct fx_query f;
	struct store_view *v;
	struct str *values;
	size_t n;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_label_values(v, q, STR("comm"), &f.arena, &values, &n, &e), &e);
	CHECK(n == 4 && str_eq(values[0], STR("busy")) && str_eq(values[3], STR("c3")));
	CHECK_OK(store_label_values(v, q, STR("thread_name"), &f.arena, &values, &n, &e), &e);
	CHECK(n == 43 && str_eq(values[0], STR("t1")));
	CHECK(str_eq(values[42], STR("worker-thread-39")));
	store_view_close(v);
	fx_query_end(&f);
}

/* A store of these parts: what it answers, and what their merge has. */
static void old_parts_are_merged(void **state)
{
	(void)state;
	char dir[64], name[32], path[256];
	struct old_rows r = { 0 };
	struct store *s;
	struct err e = { 0 };
	bool merged = true;
	old_rows_merged(&r);
	fixture_dir(dir);
	snprintf(path, sizeof(path), "%s/parts", dir);
	CHECK(mkdir(path, 0700) == 0);
	FOR_EACH_CASE (c, old_parts) {
		CLEANUP(buf_deinit) struct buf file;
		old_name(c, name);
		load_old(name, &file);
		snprintf(path, sizeof(path), "%s/parts/%s", dir, name);
		CHECK_OK(os_replace_file(path, file.data, file.len, 0600, &e), &e);
	}
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check_old_sums(s, &r);
	check_old_labels(s);
	while (merged)
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	CHECK(s->parts.len == 1);
	check_old_sums(s, &r);
	check_old_labels(s);
	CLEANUP(buf_deinit) struct buf lines, want, mine;
	buf_init(&lines, 1 << 20);
	buf_init(&want, 1 << 20);
	buf_init(&mine, 1 << 20);
	for (size_t i = 0; i < r.rows.len; i++) {
		const struct old_row *x = &r.rows.v[i];
		buf_printf(&lines, "%.*s|%lld|%lld|%lld\n", STR_ARG(x->key), (long long)x->time_ns,
			(long long)x->value, (long long)x->count);
	}
	sort_lines(&lines, &want);
	dump(s->parts.v[0], &mine);
	CHECK(str_eq(buf_view(&mine), buf_view(&want)));
	if (python_has_zstandard())
		compare(s);
	store_close(s);
	old_rows_deinit(&r);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(python_reads_the_same), cmocka_unit_test(python_reads_times_of_timers),
	cmocka_unit_test(each_byte_is_checked), cmocka_unit_test(old_parts_are_read),
	cmocka_unit_test(old_parts_are_merged))
