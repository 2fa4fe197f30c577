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
	pthread_mutex_lock(&s->merge_lock); /* the merging thread waits */
	model_append(&m, s, 60, T0, 100 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	buf_init(out, 1 << 20);
	CHECK_OK(os_read_file(part_path(s->parts.v[0]), out, &e), &e);
	pthread_mutex_unlock(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
}

/* The part with another section: kind 0 changes nothing, META (1) replaces what was there. */
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
	buf_u32(out, n + (kind > 1));
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *entry = from->data + offset + 4 + (size_t)24 * i;
		if (kind != PART_META || entry[0] != PART_META)
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

TEST_MAIN(cmocka_unit_test(later_versions), cmocka_unit_test(later_meta),
	cmocka_unit_test(each_section_once))
