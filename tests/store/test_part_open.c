/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward rules of docs/formats/part.md, section 7: what a later minor version may add is read
 * over, by this reader and by the Python one; what must be known is refused by name.
 */
#include "codec/codec.h"
#include "tests/store/model.h"
#include "tests/store/python.h"

static void put_crc(uint8_t *at, const uint8_t *bytes, size_t len)
{
	uint32_t crc = codec_crc32c(0, bytes, len);
	memcpy(at, &crc, 4);
}

static void make_part(const char *dir, struct buf *out)
{
	struct model m = { .random = 8 };
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock); /* the merging thread waits */
	model_append(&m, s, 60, T0, 100 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	buf_init(out, 1 << 20);
	CHECK_OK(os_read_file(part_path(s->parts.v[0]), out, &e), &e);
	lock_release(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
}

static bool replaces(unsigned kind)
{
	return kind == PART_META || kind == PART_SAMPLE_STRINGS || kind == PART_SAMPLE_SETS;
}

/* The part with another section: kind 0 changes nothing, some replace what was there. */
static void with_section(
	const struct buf *from, unsigned kind, unsigned flags, struct str bytes, struct buf *out)
{
	const uint8_t *trailer = from->data + from->len - 32;
	uint64_t offset;
	uint32_t n;
	memcpy(&offset, trailer, 8);
	memcpy(&n, from->data + offset, 4);
	buf_init(out, 1 << 20);
	buf_put(out, from->data, offset); /* all before the table of contents */
	uint64_t at = out->len;
	buf_str(out, bytes);
	uint64_t toc = out->len;
	buf_u32(out, n + (kind && !replaces(kind)));
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *entry = from->data + offset + 4 + (size_t)24 * i;
		if (!replaces(kind) || entry[0] != kind)
			buf_put(out, entry, 24);
	}
	if (kind) {
		buf_u16(out, (uint16_t)kind);
		buf_u16(out, (uint16_t)flags);
		buf_u32(out, codec_crc32c(0, bytes.p, bytes.len));
		buf_u64(out, at);
		buf_u64(out, bytes.len);
	}
	uint32_t toc_len = (uint32_t)(out->len - toc);
	buf_u64(out, toc);
	buf_u32(out, toc_len);
	buf_u32(out, codec_crc32c(0, out->data + toc, toc_len));
	buf_u64(out, out->len + 16);
	buf_cstr(out, "FIRNPEND");
}

static void save(const char *path, const struct buf *b)
{
	struct err e = { 0 };
	CHECK_OK(os_replace_file(path, b->data, b->len, 0600, &e), &e);
}

/* Opens, and has all its rows. */
static void check_read(const char *path, uint64_t samples)
{
	struct part *p;
	struct err e = { 0 };
	CHECK_OK(part_open(path, &p, &e), &e);
	CHECK_OK(part_verify(p, &e), &e);
	CHECK(part_meta(p)->samples == samples && part_meta(p)->level == 0);
	part_unref(p);
	if (!python_has_zstandard())
		return;
	char arguments[256];
	struct buf rows;
	buf_init(&rows, 1 << 20);
	snprintf(arguments, sizeof(arguments), "part_reader.py %s", path);
	CHECK(python_run(arguments, &rows) && rows.len > 100);
	buf_deinit(&rows);
}

static void check_refused_as(enum status want, const char *path, const char *says)
{
	struct part *p;
	struct err e = { 0 };
	CHECK(part_open(path, &p, &e) == want);
	if (!strstr(e.text, says))
		print_error("%s\n", e.text);
	CHECK(strstr(e.text, says) != NULL && strstr(e.text, path) != NULL);
}

static void check_refused(const char *path, const char *says)
{
	check_refused_as(E_UNSUPPORTED, path, says);
}

/* Which of the two counts? Readers would differ. */
static void each_section_once(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct buf b, c;
	fixture_dir(dir);
	make_part(dir, &b);
	snprintf(path, sizeof(path), "%s/part", dir);
	static const unsigned kinds[] = { PART_SERIES, PART_TRIE, PART_SAMPLES };
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		char says[64];
		with_section(&b, kinds[i], 0, STR("another"), &c);
		save(path, &c);
		snprintf(says, sizeof(says), "names section %u twice", kinds[i]);
		check_refused_as(E_CORRUPT, path, says);
		buf_deinit(&c);
	}
	buf_deinit(&b);
	fixture_clean(dir);
}

static void later_versions(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct buf b, c;
	fixture_dir(dir);
	make_part(dir, &b);
	snprintf(path, sizeof(path), "%s/part", dir);
	with_section(&b, 0, 0, STR(""), &c);
	save(path, &c);
	check_read(path, 60); /* this test's own writing is right */
	c.data[10] = 99;      /* minor version */
	put_crc(c.data + 28, c.data, 28);
	save(path, &c);
	check_read(path, 60);
	c.data[8] = 2; /* major version */
	put_crc(c.data + 28, c.data, 28);
	save(path, &c);
	check_refused(path, "part version 2 was written by a newer firn");
	buf_deinit(&c);
	with_section(&b, 999, 0, STR("what nobody knows"), &c);
	save(path, &c);
	check_read(path, 60);
	buf_deinit(&c);
	with_section(&b, 999, 1, STR("what must be known"), &c);
	save(path, &c);
	check_refused(path, "section 999 was written by a newer firn");
	buf_deinit(&c);
	with_section(&b, 18, 1, STR("\1"), &c); /* NEEDS, of versions before the first release */
	save(path, &c);
	check_refused(path, "section 18 was written by a newer firn");
	buf_deinit(&c);
	buf_deinit(&b);
	fixture_clean(dir);
}

static void later_meta(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct buf b, c, meta;
	struct part *p;
	struct err e = { 0 };
	size_t n;
	fixture_dir(dir);
	make_part(dir, &b);
	snprintf(path, sizeof(path), "%s/part", dir);
	save(path, &b);
	CHECK_OK(part_open(path, &p, &e), &e);
	const struct part_section_entry *x = part_sections(p, &n);
	buf_init(&meta, 1 << 16);
	for (size_t i = 0; i < n; i++)
		if (x[i].kind == PART_META)
			buf_put(&meta, b.data + x[i].offset, x[i].length);
	part_unref(p);
	buf_varint(&meta, 500); /* a tag of a later version */
	buf_varint(&meta, 3);
	buf_cstr(&meta, "abc");
	with_section(&b, PART_META, 0, buf_view(&meta), &c);
	save(path, &c);
	check_read(path, 60);
	buf_deinit(&meta);
	buf_deinit(&c);
	buf_deinit(&b);
	fixture_clean(dir);
}

enum { TEXTS_MAX = 300 };

/* A section of strings: lengths, how much each has in common with the one before it, the rest. */
static void strings_section(
	const int64_t *lens, const int64_t *shared, size_t n, struct str rest, struct buf *out)
{
	struct column_writer w;
	struct column c;
	struct buf header, data;
	buf_init(&header, 1 << 16);
	buf_init(&data, 1 << 16);
	column_writer_init(&w);
	CHECK(column_encode(&w, 1, lens, n, COLUMN_PLAIN, &data, &c) == OK);
	column_write_header(&header, &c);
	CHECK(column_encode(&w, 3, shared, n, COLUMN_PLAIN, &data, &c) == OK);
	column_write_header(&header, &c);
	CHECK(column_encode_bytes(&w, 2, rest, &data, &c) == OK);
	column_write_header(&header, &c);
	buf_varint(out, n);
	buf_varint(out, 3);
	buf_str(out, buf_view(&header));
	buf_str(out, buf_view(&data));
	CHECK(buf_status(out) == OK);
	column_writer_deinit(&w);
	buf_deinit(&data);
	buf_deinit(&header);
}

/* One row of sets: the empty one. */
static const char no_sets[] = { 1, 0 };

static enum status read_strings(const char *path, struct buf *out, struct err *e)
{
	struct part *p;
	struct tabs t;
	enum status s = part_open(path, &p, e);
	CHECK_OK(s, e);
	s = part_pin(p, PART_LOAD_TEXTS | PART_LOAD_SETS, 1 << 20, &t, e);
	if (s == OK) {
		for (uint32_t i = 0; i < t.sample_string_count; i++)
			buf_printf(out, "%.*s,", STR_ARG(t.sample_strings[i]));
		part_unpin(p, PART_LOAD_TEXTS | PART_LOAD_SETS);
	}
	part_unref(p);
	return s;
}

static void texts_that_share(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t n;
		int64_t lens[4], shared[4];
		const char *rest, *want; /* NULL: refused */
	} cases[] = {
		{ "none", 3, { 0, 1, 2 }, { 0 }, "abb", ",a,bb," },
		{ "a chain", 4, { 0, 1, 2, 3 }, { 0, 0, 1, 2 }, "abc", ",a,ab,abc," },
		{ "all of a text", 3, { 0, 2, 2 }, { 0, 0, 2 }, "ab", ",ab,ab," },
		{ "of the empty text", 3, { 0, 0, 1 }, { 0 }, "a", ",,a," },
		{ "more than the text before", 3, { 0, 2, 5 }, { 0, 0, 3 }, "abde", NULL },
		{ "more than it has itself", 3, { 0, 3, 2 }, { 0, 0, 3 }, "abc", NULL },
		{ "of nothing", 2, { 0, 2 }, { 0, 1 }, "b", NULL },
		{ "the first", 2, { 0, 2 }, { 1, 0 }, "ab", NULL },
		{ "a first text", 2, { 1, 2 }, { 0, 0 }, "abc", NULL },
		{ "less than none", 3, { 0, 2, 2 }, { 0, 0, -1 }, "ababa", NULL },
		{ "a length below none", 3, { 0, 2, -1 }, { 0, 0, -1 }, "ab", NULL },
		{ "the lowest number", 3, { 0, 2, 2 }, { 0, 0, INT64_MIN }, "ab", NULL },
		{ "the highest number", 3, { 0, INT64_MAX, INT64_MAX }, { 0, 0, INT64_MAX }, "ab",
			NULL },
		{ "bytes are missing", 3, { 0, 2, 2 }, { 0, 0, 1 }, "ab", NULL },
		{ "bytes are left", 3, { 0, 2, 2 }, { 0, 0, 1 }, "abcd", NULL },
	};
	char dir[64], path[128];
	struct buf b, sets;
	fixture_dir(dir);
	make_part(dir, &b);
	with_section(&b, PART_SAMPLE_SETS, 0, str_make(no_sets, sizeof(no_sets)), &sets);
	snprintf(path, sizeof(path), "%s/part", dir);
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf section, file, got;
		struct err e = { 0 };
		buf_init(&section, 1 << 16);
		buf_init(&got, 1 << 16);
		strings_section(c->lens, c->shared, c->n, str_of(c->rest), &section);
		with_section(&sets, PART_SAMPLE_STRINGS, 0, buf_view(&section), &file);
		save(path, &file);
		enum status s = read_strings(path, &got, &e);
		CHECK_CASE(c, s == (c->want ? OK : E_CORRUPT));
		CHECK_CASE(c, !c->want || str_eq(buf_view(&got), str_of(c->want)));
		CHECK_CASE(c, c->want || strstr(e.text, "strings in section 6"));
	}
	buf_deinit(&sets);
	buf_deinit(&b);
	fixture_clean(dir);
}

/* Each text has all of the one before it: little on disk must not become much in memory. */
static void long_chains(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t n; /* texts of 0, 1, … n - 1 bytes: n - 1 are on disk */
		enum status want;
	} cases[] = { { "64 times as much", 128, OK }, { "more", 129, E_CORRUPT } };
	char dir[64], path[128], rest[TEXTS_MAX];
	int64_t lens[TEXTS_MAX], shared[TEXTS_MAX];
	struct buf b, sets;
	memset(rest, 'x', sizeof(rest));
	for (int64_t i = 0; i < TEXTS_MAX; i++) {
		lens[i] = i;
		shared[i] = MAX(i - 1, (int64_t)0);
	}
	fixture_dir(dir);
	make_part(dir, &b);
	with_section(&b, PART_SAMPLE_SETS, 0, str_make(no_sets, sizeof(no_sets)), &sets);
	snprintf(path, sizeof(path), "%s/part", dir);
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf section, file, got;
		struct err e = { 0 };
		size_t n = (size_t)c->n;
		buf_init(&section, 1 << 16);
		buf_init(&got, 1 << 16);
		strings_section(lens, shared, n, str_make(rest, n - 1), &section);
		with_section(&sets, PART_SAMPLE_STRINGS, 0, buf_view(&section), &file);
		save(path, &file);
		CHECK_CASE(c, read_strings(path, &got, &e) == c->want);
		CHECK_CASE(c, c->want != OK || got.len == n * (n - 1) / 2 + n);
	}
	buf_deinit(&sets);
	buf_deinit(&b);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(later_versions), cmocka_unit_test(later_meta),
	cmocka_unit_test(each_section_once), cmocka_unit_test(texts_that_share),
	cmocka_unit_test(long_chains))
