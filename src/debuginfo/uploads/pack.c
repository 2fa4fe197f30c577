/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive of sources: entries of tar in POSIX' ustar form, GNU's 'L' before a path of more than
 * 100 bytes. Each time enough bytes are collected they are compressed as a zstd frame of their own;
 * consecutive frames are one stream. Source: as archive.c.
 */
#include "debuginfo/uploads/uploads.h"

#include "codec/codec.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK 512
#define FRAME_BYTES ((size_t)4 << 20) /* more if a text is longer */
#define ZSTD_LEVEL 9
#define NAME_BYTES 100

struct debuginfo_pack {
	int fd;
	uint32_t entries;
	struct buf plain;
	struct buf packed;
};

enum status debuginfo_pack_new(int fd, struct debuginfo_pack **out, struct err *e)
{
	struct debuginfo_pack *p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, E_NOMEM, "archive");
	p->fd = fd;
	buf_init(&p->plain, DEBUGINFO_SOURCE_BYTES_MAX + 2 * FRAME_BYTES);
	buf_init(&p->packed, DEBUGINFO_SOURCE_BYTES_MAX + 3 * FRAME_BYTES);
	*out = p;
	return OK;
}

void debuginfo_pack_free(struct debuginfo_pack *p)
{
	if (!p)
		return;
	buf_deinit(&p->plain);
	buf_deinit(&p->packed);
	free(p);
}

static enum status flush(struct debuginfo_pack *p, struct err *e)
{
	enum status s = buf_status(&p->plain);
	if (s == OK)
		s = codec_zstd_compress(p->plain.data, p->plain.len, ZSTD_LEVEL, &p->packed);
	if (s != OK)
		return err_set(e, s, "archive: %s", status_text(s));
	s = os_write_full(p->fd, p->packed.data, p->packed.len, "archive", e);
	buf_clear(&p->plain);
	buf_clear(&p->packed);
	return s;
}

/* Writes octal digits, which fill the field up to its NUL. */
static void put_octal(uint8_t *field, size_t len, uint64_t v)
{
	for (size_t i = len - 1; i-- > 0; v >>= 3)
		field[i] = (uint8_t)('0' + (v & 7));
}

static void put_header(struct buf *b, struct str name, char kind, uint64_t size)
{
	uint8_t h[BLOCK] = { 0 };
	memcpy(h, name.p, MIN(name.len, (size_t)NAME_BYTES));
	put_octal(h + 100, 8, 0644); /* mode, uid, gid, size, mtime */
	put_octal(h + 108, 8, 0);
	put_octal(h + 116, 8, 0);
	put_octal(h + 124, 12, size);
	put_octal(h + 136, 12, 0);
	h[156] = (uint8_t)kind;
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8); /* the checksum counts as blanks while it is computed */
	uint64_t sum = 0;
	for (size_t i = 0; i < BLOCK; i++)
		sum += h[i];
	put_octal(h + 148, 7, sum);
	buf_put(b, h, BLOCK);
}

static void put_content(struct buf *b, struct str bytes, size_t zeros)
{
	buf_str(b, bytes);
	buf_zero(b, zeros);
	buf_zero(b, (size_t)(-(uint64_t)(bytes.len + zeros) & (BLOCK - 1)));
}

enum status debuginfo_pack_add(
	struct debuginfo_pack *p, struct str path, struct str text, struct err *e)
{
	if (path.len > DEBUGINFO_ARCHIVE_PATH_MAX || text.len > DEBUGINFO_SOURCE_BYTES_MAX)
		return err_set(e, E_LIMIT,
			"%.*s: %zu bytes under a path of %zu; at most %zu and %d",
			STR_ARG(str_sub(path, 0, 256)), text.len, path.len,
			DEBUGINFO_SOURCE_BYTES_MAX, DEBUGINFO_ARCHIVE_PATH_MAX);
	if (p->entries++ == DEBUGINFO_ARCHIVE_ENTRIES_MAX / 2) /* a long path takes an entry too */
		return err_set(e, E_LIMIT, "more than %d files", DEBUGINFO_ARCHIVE_ENTRIES_MAX / 2);
	if (path.len > NAME_BYTES) {
		put_header(&p->plain, STR("././@LongLink"), 'L', path.len + 1);
		put_content(&p->plain, path, 1);
	}
	put_header(&p->plain, path, '0', text.len);
	put_content(&p->plain, text, 0);
	return p->plain.len < FRAME_BYTES ? OK : flush(p, e);
}

enum status debuginfo_pack_end(struct debuginfo_pack *p, struct err *e)
{
	buf_zero(&p->plain, 2 * BLOCK);
	return flush(p, e);
}
