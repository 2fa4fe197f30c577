/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache file of docs/formats/unwind.md. The checksum is for damage; a file that another program
 * wrote to harm us has a right checksum, so everything else is checked too, last each blob as if it
 * had been built.
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

enum status unwind_table_encode(const struct unwind_table *t, struct buf *out)
{
	size_t begin = out->len;
	buf_str(out, CACHE_MAGIC);
	buf_u32(out, CACHE_VERSION);
	buf_u32(out, t->first_page);
	buf_u32(out, t->page_count);
	buf_u32(out, 0);
	buf_u64(out, t->blob_bytes);
	buf_u64(out, t->row_count);
	buf_u64(out, t->fde_count);
	buf_u64(out, t->unsupported_rows);
	buf_u64(out, t->bad_fdes);
	for (uint32_t i = 0; i < t->page_count; i++) {
		buf_u32(out, t->pages[i].blob_len);
		buf_u16(out, t->pages[i].rule_count);
		buf_u16(out, t->pages[i].row_count);
	}
	for (uint32_t i = 0; i < t->page_count; i++) {
		const struct unwind_table_page *p = &t->pages[i];
		if (!p->blob)
			continue;
		buf_put(out, p->blob, p->blob_len);
		buf_zero(out, -(size_t)p->blob_len & (BLOB_ALIGN - 1));
	}
	if (buf_status(out) != OK)
		return buf_status(out);
	buf_u32(out, codec_crc32c(0, out->data + begin, out->len - begin));
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

/* Fill t->pages by the directory; the reader is then at the blobs, which must be all that is left.
 */
static enum status decode_directory(struct reader *r, struct unwind_table *t, struct err *e)
{
	size_t blobs = reader_offset(r) + (size_t)t->page_count * DIRECTORY_ENTRY_BYTES;
	size_t left = reader_left(r) - (size_t)t->page_count * DIRECTORY_ENTRY_BYTES;
	t->memory = malloc(left + 1);
	t->pages = calloc((size_t)t->page_count + 1, sizeof(*t->pages));
	if (!t->memory || !t->pages)
		return err_set(e, E_NOMEM, "unwind cache");
	memcpy(t->memory, r->begin + blobs, left);
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
			p->blob = (const uint8_t *)t->memory + at;
		blob_bytes += p->blob_len;
		at += p->blob_len;
		for (; at % BLOB_ALIGN; at++) {
			if (at == left || ((const uint8_t *)t->memory)[at] != 0)
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

enum status unwind_table_decode(struct str bytes, struct unwind_table **out, struct err *e)
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
