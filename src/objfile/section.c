/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compressed section states its uncompressed size. Before memory is allocated, this size is
 * compared with the limit, and with the most to which its compressed bytes can expand.
 */
#include "base/reader.h"
#include "codec/codec.h"
#include "objfile/internal.h"

#include <libdeflate.h>
#include <stdlib.h>

/* One byte of DEFLATE gives at most 1032. */
#define ZLIB_RATIO_MAX 1032

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

static enum status zlib_decompress(const uint8_t *in, size_t len, uint8_t *out, size_t out_len,
	const char *name, struct err *e)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	if (!d)
		return err_set(e, E_NOMEM, "%s", name);
	enum libdeflate_result r = libdeflate_zlib_decompress(d, in, len, out, out_len, NULL);
	libdeflate_free_decompressor(d);
	if (r != LIBDEFLATE_SUCCESS)
		return err_set(e, E_INVALID, "%s: broken zlib data", name);
	return OK;
}

static enum status decompress(const struct objfile *obj, const struct objfile_section *s,
	const uint8_t *in, size_t len, struct buf *out, struct err *e)
{
	struct reader r = reader_over(in, len);
	uint32_t type = reader_u32(&r);
	reader_skip(&r, 4);
	uint64_t size = reader_u64(&r);
	reader_skip(&r, 8); /* alignment */
	if (r.failed)
		return err_set(e, E_INVALID, "%s: %.*s: compression header cut short", obj->name,
			STR_ARG(s->name));
	if (size > OBJFILE_SECTION_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: %.*s: %llu bytes, at most %llu", obj->name,
			STR_ARG(s->name), (unsigned long long)size,
			(unsigned long long)OBJFILE_SECTION_BYTES_MAX);
	if (type == ELFCOMPRESS_ZLIB && size / ZLIB_RATIO_MAX > reader_left(&r))
		return err_set(e, E_INVALID, "%s: %.*s: %llu bytes cannot come from %zu", obj->name,
			STR_ARG(s->name), (unsigned long long)size, reader_left(&r));
	if (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD)
		return err_set(e, E_UNSUPPORTED, "%s: %.*s: compression type %u", obj->name,
			STR_ARG(s->name), type);
	uint8_t *to = buf_reserve(out, size);
	if (!to)
		return err_set(e, buf_status(out), "%s: %.*s", obj->name, STR_ARG(s->name));
	enum status st = type == ELFCOMPRESS_ZLIB
				 ? zlib_decompress(r.at, reader_left(&r), to, size, obj->name, e)
				 : codec_zstd_decompress_exact(r.at, reader_left(&r), to, size, e);
	if (st == E_CORRUPT) /* the data is damaged */
		st = e ? (e->status = E_INVALID) : E_INVALID;
	if (st == OK)
		out->len += size;
	return st;
}

enum status objfile_read_section(
	const struct objfile *obj, const struct objfile_section *s, struct buf *out, struct err *e)
{
	if (s->type == SHT_NOBITS || s->size == 0)
		return OK;
	if (s->offset > obj->size || s->size > obj->size - s->offset)
		return err_set(e, E_INVALID, "%s: %.*s at +%llu passes the end of the file",
			obj->name, STR_ARG(s->name), (unsigned long long)s->offset);
	if (s->size > OBJFILE_SECTION_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: %.*s: %llu bytes, at most %llu", obj->name,
			STR_ARG(s->name), (unsigned long long)s->size,
			(unsigned long long)OBJFILE_SECTION_BYTES_MAX);
	if (s->flags & SHF_COMPRESSED) {
		CLEANUP(free_cleanup) uint8_t *in = malloc(s->size);
		if (!in)
			return err_set(e, E_NOMEM, "%s: %.*s", obj->name, STR_ARG(s->name));
		enum status st = objfile_read(obj, s->offset, in, s->size, e);
		if (st != OK)
			return st;
		return decompress(obj, s, in, s->size, out, e);
	}
	uint8_t *to = buf_reserve(out, s->size);
	if (!to)
		return err_set(e, buf_status(out), "%s: %.*s", obj->name, STR_ARG(s->name));
	enum status st = objfile_read(obj, s->offset, to, s->size, e);
	if (st == OK)
		out->len += s->size;
	return st;
}
