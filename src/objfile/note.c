/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The build id is searched for first in the note sections, then in the note segments: segments of a
 * separate debug file point to bytes that it does not have.
 */
#include "base/hash.h"
#include "base/reader.h"
#include "objfile/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* Notes have a few dozen bytes; longer ones are not searched. */
#define NOTE_BYTES_MAX (64u << 10)
#define NOTES_SEARCHED_MAX 64
#define CONTENT_END_BYTES 4096
/* How much of a file without a build id is hashed: 1 MiB. */
#define CONTENT_BLOCKS 64u
#define CONTENT_BLOCK_BYTES (16u << 10)

static bool note_find_build_id(struct str notes, uint64_t align, struct str *out)
{
	struct reader r = reader_over(notes.p, notes.len);
	while (!reader_done(&r)) {
		uint32_t name_len = reader_u32(&r);
		uint32_t desc_len = reader_u32(&r);
		uint32_t type = reader_u32(&r);
		struct str name = reader_str(&r, name_len);
		reader_skip(&r, -(uint64_t)name_len & 3);
		struct str desc = reader_str(&r, desc_len);
		if (!r.failed && type == NT_GNU_BUILD_ID && str_eq(name, STR("GNU\0"))) {
			*out = desc;
			return desc.len > 0 && desc.len <= OBJFILE_BUILD_ID_MAX;
		}
		/* The last one may lack its padding. */
		reader_skip(&r, MIN(-(uint64_t)desc_len & (align - 1), reader_left(&r)));
	}
	return false;
}

static bool build_id_load_at(struct objfile *obj, uint64_t offset, uint64_t len, uint64_t align)
{
	static const char digits[] = "0123456789abcdef";
	if (len == 0 || len > NOTE_BYTES_MAX)
		return false;
	CLEANUP(free_cleanup) uint8_t *bytes = malloc(len);
	struct str id;
	if (!bytes || objfile_read(obj, offset, bytes, len, NULL) != OK ||
		!note_find_build_id(str_make(bytes, len), align, &id))
		return false;
	for (size_t i = 0; i < id.len; i++) {
		uint8_t byte = (uint8_t)id.p[i];
		obj->build_id[2 * i] = digits[byte >> 4];
		obj->build_id[2 * i + 1] = digits[byte & 15];
	}
	obj->build_id[2 * id.len] = 0;
	return true;
}

void objfile_build_id_load(struct objfile *obj)
{
	uint32_t searched = 0;
	for (uint32_t i = 0; i < obj->section_count && searched < NOTES_SEARCHED_MAX; i++) {
		const struct objfile_section *s = &obj->sections[i];
		if (s->type != SHT_NOTE)
			continue;
		searched++;
		if (build_id_load_at(obj, s->offset, s->size, 4))
			return;
	}
	for (uint32_t i = 0; i < obj->program_header_count && searched < NOTES_SEARCHED_MAX; i++) {
		const Elf64_Phdr *p = &obj->program_headers[i];
		if (p->p_type != PT_NOTE)
			continue;
		searched++;
		if (build_id_load_at(obj, p->p_offset, p->p_filesz, p->p_align == 8 ? 8 : 4))
			return;
	}
}

/* A file of up to 1 MiB is hashed as a whole. A larger one is hashed in blocks at equal distances:
 * a change that makes anything longer moves all later bytes, so some block changes. */
static enum status add_blocks(const struct objfile *obj, struct hash_stream *h, struct err *e)
{
	CLEANUP(free_cleanup) uint8_t *block = malloc(CONTENT_BLOCK_BYTES);
	if (!block)
		return err_set(e, E_NOMEM, "content id");
	uint64_t step = MAX(obj->size / CONTENT_BLOCKS, (uint64_t)CONTENT_BLOCK_BYTES);
	uint64_t at = 0;
	for (uint32_t i = 0; i < CONTENT_BLOCKS && at < obj->size; i++, at += step) {
		size_t len = (size_t)MIN(obj->size - at, (uint64_t)CONTENT_BLOCK_BYTES);
		enum status s = objfile_read(obj, at, block, len, e);
		if (s != OK)
			return s;
		hash_stream_add(h, block, len);
	}
	return OK;
}

static void stream_cleanup(struct hash_stream **h)
{
	hash_stream_free(*h);
}

enum status objfile_content_id(const struct objfile *obj, char out[40], struct err *e)
{
	uint8_t ends[2 * CONTENT_END_BYTES];
	size_t part = MIN(obj->size, (uint64_t)CONTENT_END_BYTES);
	CLEANUP(stream_cleanup) struct hash_stream *h = hash_stream_new();
	if (!h)
		return err_set(e, E_NOMEM, "content id");
	enum status s = objfile_read(obj, 0, ends, part, e);
	if (s == OK)
		s = objfile_read(obj, obj->size - part, ends + part, part, e);
	if (s != OK)
		return s;
	hash_stream_add(h, ends, 2 * part);
	hash_stream_add(h, &obj->size, sizeof(obj->size));
	if (!obj->build_id[0])
		s = add_blocks(obj, h, e);
	struct hash128 id = hash_stream_end(h);
	snprintf(out, 40, "x%016llx%016llx", (unsigned long long)id.hi, (unsigned long long)id.lo);
	return s;
}
