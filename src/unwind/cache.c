/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache file of docs/formats/unwind.md. The checksum is for damage; a file that another program
 * wrote to harm us has a right checksum, so everything else is checked too. At last each blob is
 * checked as one that was just built.
 */
#include "base/reader.h"
#include "codec/codec.h"
#include "unwind/pages.h"

#include <stdlib.h>

#define CACHE_MAGIC STR("firnunw\n")
#define CACHE_VERSION 12
#define HEADER_BYTES 64
#define DIRECTORY_ENTRY_BYTES 8
#define TRAILER_BYTES 4
#define BLOB_ALIGN 8
#define PAGES_MAX (OBJFILE_BYTES_MAX >> UNWIND_PAGE_SHIFT)

static void table_cleanup(struct unwind_table **t)
{
	unwind_table_free(*t);
}

/* The bytes of all blobs, which lie in memory as they do in the file. */
static struct str blobs_of(const struct unwind_table *t)
{
	const uint8_t *begin = NULL, *end = NULL;
	for (uint32_t i = 0; i < t->page_count; i++) {
		const struct unwind_table_page *p = &t->pages[i];
		if (!p->blob)
			continue;
		begin = begin ? begin : p->blob;
		end = p->blob + p->blob_len;
	}
	return begin ? str_make(begin, (size_t)(end - begin)) : STR("");
}

enum status unwind_table_encode_parts(
	const struct unwind_table *t, struct buf *head, struct str *out_blobs, struct buf *tail)
{
	struct str blobs = blobs_of(t);
	static const uint8_t zeros[BLOB_ALIGN];
	size_t begin = head->len, padding = -blobs.len & (BLOB_ALIGN - 1);
	buf_str(head, CACHE_MAGIC);
	buf_u32(head, CACHE_VERSION);
	buf_u32(head, t->first_page);
	buf_u32(head, t->page_count);
	buf_u32(head, 0);
	buf_u64(head, t->blob_bytes);
	buf_u64(head, t->row_count);
	buf_u64(head, t->fde_count);
	buf_u64(head, t->unsupported_rows);
	buf_u64(head, t->bad_fdes);
	for (uint32_t i = 0; i < t->page_count; i++) {
		buf_u32(head, t->pages[i].blob_len);
		buf_u16(head, t->pages[i].rule_count);
		buf_u16(head, t->pages[i].row_count);
	}
	if (buf_status(head) != OK)
		return buf_status(head);
	uint32_t crc = codec_crc32c(0, head->data + begin, head->len - begin);
	crc = codec_crc32c(crc, blobs.p, blobs.len);
	crc = codec_crc32c(crc, zeros, padding);
	buf_put(tail, zeros, padding);
	buf_u32(tail, crc);
	*out_blobs = blobs;
	return buf_status(tail);
}

enum status unwind_table_encode(const struct unwind_table *t, struct buf *out)
{
	CLEANUP(buf_deinit) struct buf tail;
	buf_init(&tail, BLOB_ALIGN + TRAILER_BYTES);
	struct str blobs;
	enum status s = unwind_table_encode_parts(t, out, &blobs, &tail);
	if (s != OK)
		return s;
	buf_str(out, blobs);
	buf_str(out, buf_view(&tail));
	return buf_status(out);
}

static enum status broken(const char *what, struct err *e)
{
	return err_set(e, E_CORRUPT, "unwind cache: %s", what);
}

static enum status decode_header(struct reader *r, struct unwind_table *t, struct err *e)
{
	struct str magic = reader_str(r, CACHE_MAGIC.len);
	uint32_t version = reader_u32(r);
	t->first_page = reader_u32(r);
	t->page_count = reader_u32(r);
	uint32_t zero = reader_u32(r);
	t->blob_bytes = reader_u64(r);
	t->row_count = reader_u64(r);
	t->fde_count = reader_u64(r);
	t->unsupported_rows = reader_u64(r);
	t->bad_fdes = reader_u64(r);
	if (r->failed || !str_eq(magic, CACHE_MAGIC) || zero != 0)
		return broken("not an unwind table", e);
	if (version != CACHE_VERSION)
		return err_set(e, E_UNSUPPORTED, "unwind cache: version %u, not %u", version,
			CACHE_VERSION);
	if (t->page_count > PAGES_MAX || t->first_page > PAGES_MAX - t->page_count)
		return broken("more pages than a file has", e);
	if (t->page_count > reader_left(r) / DIRECTORY_ENTRY_BYTES)
		return broken("cut short in its directory", e);
	return OK;
}

/* Fill t->pages by the directory; the blobs behind it, which must be all that is left, stay where
 * they are. */
static enum status decode_directory(struct reader *r, struct unwind_table *t, struct err *e)
{
	size_t directory = (size_t)t->page_count * DIRECTORY_ENTRY_BYTES;
	const uint8_t *blobs = r->begin + reader_offset(r) + directory;
	size_t left = reader_left(r) - directory;
	t->pages = calloc((size_t)t->page_count + 1, sizeof(*t->pages));
	if (!t->pages)
		return err_set(e, E_NOMEM, "unwind cache");
	size_t at = 0;
	uint64_t blob_bytes = 0;
	for (uint32_t i = 0; i < t->page_count; i++) {
		struct unwind_table_page *p = &t->pages[i];
		p->blob_len = reader_u32(r);
		p->rule_count = reader_u16(r);
		p->row_count = reader_u16(r);
		if (p->blob_len > UNWIND_BLOB_BYTES_MAX || p->blob_len > left - at)
			return broken("a blob passes the end", e);
		if (p->blob_len)
			p->blob = blobs + at;
		blob_bytes += p->blob_len;
		at += p->blob_len;
		for (; at % BLOB_ALIGN; at++) {
			if (at == left || blobs[at] != 0)
				return broken("padding is not there, or not zero", e);
		}
	}
	if (at != left || blob_bytes != t->blob_bytes)
		return broken("its blobs are not as long as it says", e);
	return OK;
}

static uint64_t count_rows(const struct unwind_table *t)
{
	uint64_t rows = 0;
	for (uint32_t i = 0; i < t->page_count; i++) {
		const struct unwind_table_page *p = &t->pages[i];
		if (!p->blob)
			continue;
		const uint8_t *last = p->blob + (UNWIND_DENSE_STARTS - 1) * 2;
		rows += p->row_count ? p->row_count : last[0] | (uint32_t)last[1] << 8;
	}
	return rows;
}

/* The table's blobs lie in the bytes, and it owns them only once the caller says so. */
static enum status decode(struct str bytes, struct unwind_table **out, struct err *e)
{
	if (bytes.len < HEADER_BYTES + TRAILER_BYTES)
		return broken("cut short", e);
	size_t len = bytes.len - TRAILER_BYTES;
	struct reader trailer = reader_over(bytes.p + len, TRAILER_BYTES);
	if (reader_u32(&trailer) != codec_crc32c(0, bytes.p, len))
		return broken("wrong checksum", e);
	CLEANUP(table_cleanup) struct unwind_table *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "unwind cache");
	struct reader r = reader_over(bytes.p, len);
	enum status s = decode_header(&r, t, e);
	if (s == OK)
		s = decode_directory(&r, t, e);
	if (s == OK)
		s = unwind_table_check(t, e);
	if (s == OK && (count_rows(t) != t->row_count || t->row_count > UNWIND_ROWS_MAX * 2))
		s = broken("number of rows", e);
	if (s != OK)
		return s;
	*out = STEAL_PTR(t);
	return OK;
}

enum status unwind_table_decode_take(struct buf *bytes, struct unwind_table **out, struct err *e)
{
	struct unwind_table *t = NULL;
	enum status s = decode(buf_view(bytes), &t, e);
	if (s != OK)
		return s;
	size_t len;
	t->memory = buf_steal(bytes, &len);
	*out = t;
	return OK;
}

enum status unwind_table_decode(struct str bytes, struct unwind_table **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf copy;
	buf_init(&copy, bytes.len);
	buf_str(&copy, bytes);
	if (buf_status(&copy) != OK)
		return err_set(e, buf_status(&copy), "unwind cache");
	return unwind_table_decode_take(&copy, out, e);
}
