/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a compressed tar once, up to the wanted file. An entry is a header of 512 bytes and its
 * content, padded to 512; a header of kind 'L' (GNU) or 'x' (POSIX) gives the path of the next
 * entry, 'x' also its size. Source: POSIX.1-2017 pax; GNU tar's manual, "Basic Tar Format".
 */
#include "debuginfo/uploads/uploads.h"

#include "base/reader.h"
#include "codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK 512
#define IN_BYTES 65536
#define OUT_BYTES 65536
#define PAX_BYTES_MAX 65536

struct archive {
	int fd;
	uint64_t offset; /* bytes of the file that were read */
	struct codec_unpack *unpack;
	struct str rest; /* of `in` */
	size_t at, len;  /* of `out` */
	uint64_t unpacked;
	uint32_t entries;
	debuginfo_cancel_fn *cancel;
	void *cancel_ctx;
	uint8_t in[IN_BYTES];
	uint8_t out[OUT_BYTES];
};

struct entry {
	char path[DEBUGINFO_ARCHIVE_PATH_MAX + 1];
	uint64_t size, given_size;
	char kind;
	bool has_path, has_size; /* given by a header before the entry */
};

static void archive_free(struct archive **a)
{
	if (*a)
		codec_unpack_free((*a)->unpack);
	free(*a);
}

static unsigned long long place(const struct archive *a)
{
	return (unsigned long long)(a->unpacked - (a->len - a->at));
}

/* ---- bytes ---- */

/* Reads more of the file into the empty `rest`. *out_end: the file has ended. */
static enum status read_file(struct archive *a, bool *out_end, struct err *e)
{
	ssize_t n;
	do {
		n = pread(a->fd, a->in, sizeof(a->in), (off_t)a->offset);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_os(e, "read the archive");
	a->offset += (uint64_t)n;
	a->rest = str_make(a->in, (size_t)n);
	*out_end = n == 0;
	return OK;
}

/* Unpacks more bytes into the empty `out`; none: the archive ends here. */
static enum status fill(struct archive *a, struct err *e)
{
	bool end = false;
	a->at = a->len = 0;
	while (a->len == 0) {
		if (a->cancel && a->cancel(a->cancel_ctx))
			return err_set(e, E_CANCELED, "%s", status_text(E_CANCELED));
		enum status s = a->rest.len ? OK : read_file(a, &end, e);
		if (s != OK)
			return s;
		s = codec_unpack_step(a->unpack, &a->rest, a->out, sizeof(a->out), &a->len, e);
		if (s != OK)
			return s == E_INVALID
				       ? err_prefix(e, E_CORRUPT, "after %llu bytes", place(a))
				       : s;
		if (end && a->len == 0)
			return codec_unpack_may_end(a->unpack)
				       ? OK
				       : err_set(e, E_CORRUPT,
						 "it ends too early, after %llu bytes", place(a));
	}
	a->unpacked += a->len;
	return a->unpacked <= DEBUGINFO_ARCHIVE_BYTES_MAX
		       ? OK
		       : err_set(e, E_LIMIT, "it unpacks to more than %llu bytes",
				 (unsigned long long)DEBUGINFO_ARCHIVE_BYTES_MAX);
}

/* The next bytes, at most `most`; none at the end. */
static enum status next(struct archive *a, uint64_t most, struct str *out, struct err *e)
{
	enum status s = a->at == a->len ? fill(a, e) : OK;
	if (s != OK)
		return s;
	size_t n = (size_t)MIN((uint64_t)(a->len - a->at), most);
	*out = str_make(a->out + a->at, n);
	a->at += n;
	return OK;
}

/* Reads `len` bytes into `to` (NULL: skips them). *out_got: fewer if the archive ends before. */
static enum status take(struct archive *a, void *to, uint64_t len, uint64_t *out_got, struct err *e)
{
	uint64_t done = 0;
	while (done < len) {
		struct str piece;
		enum status s = next(a, len - done, &piece, e);
		if (s != OK)
			return s;
		if (piece.len == 0)
			break;
		if (to)
			memcpy((uint8_t *)to + done, piece.p, piece.len);
		done += piece.len;
	}
	*out_got = done;
	return OK;
}

static enum status take_all(struct archive *a, void *to, uint64_t len, struct err *e)
{
	uint64_t got = 0;
	enum status s = take(a, to, len, &got, e);
	if (s == OK && got < len)
		return err_set(e, E_CORRUPT, "it ends too early, after %llu bytes", place(a));
	return s;
}

static uint64_t padding(uint64_t size)
{
	return (BLOCK - size % BLOCK) % BLOCK;
}

/* ---- headers ---- */

/* Octal digits, or a big-endian binary number if the first bit is set. */
static bool number(const uint8_t *p, size_t len, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;
	if (p[0] & 0x80) {
		v = p[0] & 0x7F;
		for (i = 1; i < len; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | p[i];
		}
		*out = v;
		return true;
	}
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	*out = v;
	return i == len || p[i] == ' ' || p[i] == 0;
}

static bool checksum_holds(const uint8_t header[BLOCK])
{
	uint64_t want, sum = 0;
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : header[i];
	return number(header + 148, 8, &want) && want == sum;
}

static bool is_zero(const uint8_t header[BLOCK])
{
	for (size_t i = 0; i < BLOCK; i++)
		if (header[i])
			return false;
	return true;
}

static struct str text_in(const uint8_t *p, size_t len)
{
	return str_make(p, strnlen((const char *)p, len));
}

static void set_path(struct entry *en, struct str before, struct str name)
{
	size_t n = 0;
	if (before.len) {
		memcpy(en->path, before.p, before.len);
		n = before.len;
		en->path[n++] = '/';
	}
	memcpy(en->path + n, name.p, name.len);
	en->path[n + name.len] = 0;
}

/* Reads the content of an entry of kind 'L' (a text) or 'x' (records). */
static enum status read_extra(
	struct archive *a, uint64_t size, uint8_t bytes[PAX_BYTES_MAX], struct err *e)
{
	if (size > PAX_BYTES_MAX)
		return err_set(e, E_LIMIT, "a header of %llu bytes", (unsigned long long)size);
	enum status s = take_all(a, bytes, size, e);
	return s == OK ? take_all(a, NULL, padding(size), e) : s;
}

static enum status take_name(struct archive *a, struct entry *en, struct str name, struct err *e)
{
	if (name.len > DEBUGINFO_ARCHIVE_PATH_MAX)
		return err_set(e, E_LIMIT, "a path of %zu bytes before +%llu", name.len, place(a));
	set_path(en, STR(""), name);
	en->has_path = true;
	return OK;
}

/* Reads records "LENGTH KEY=VALUE\n"; LENGTH counts the whole record. */
static enum status take_pax(struct archive *a, struct entry *en, struct str records, struct err *e)
{
	while (records.len) {
		uint64_t len = 0;
		struct str digits = str_sub(records, 0, str_index(records, ' '));
		if (!str_parse_u64(digits, 10, &len) || len > records.len || len < digits.len + 3 ||
			records.p[len - 1] != '\n')
			return err_set(e, E_CORRUPT, "a damaged header before +%llu", place(a));
		struct str record = str_sub(records, digits.len + 1, len - digits.len - 2);
		struct str value = record, key;
		if (!str_split(&value, '=', &key))
			key = STR("");
		records = str_sub(records, len, records.len);
		enum status s = OK;
		if (str_eq(key, STR("path")))
			s = take_name(a, en, value, e);
		else if (str_eq(key, STR("size")) && !str_parse_u64(value, 10, &en->given_size))
			s = err_set(e, E_CORRUPT, "a damaged size before +%llu", place(a));
		else if (str_eq(key, STR("size")))
			en->has_size = true;
		if (s != OK)
			return s;
	}
	return OK;
}

/* Takes kind, size and path from an entry's header; values of an extended header before it win. */
static enum status take_header(
	struct archive *a, const uint8_t h[BLOCK], struct entry *en, struct err *e)
{
	uint64_t size;
	if (!checksum_holds(h))
		return err_set(e, E_CORRUPT, "no tar header before +%llu", place(a));
	if (!number(h + 124, 12, &size))
		return err_set(e, E_CORRUPT, "a damaged size before +%llu", place(a));
	en->kind = (char)h[156];
	bool extra = en->kind == 'L' || en->kind == 'x' || en->kind == 'g';
	en->size = en->has_size && !extra ? en->given_size : size;
	if (en->has_path || en->kind == 'L' || en->kind == 'x')
		return OK;
	bool posix = memcmp(h + 257, "ustar\0", 6) == 0;
	set_path(en, posix ? text_in(h + 345, 155) : STR(""), text_in(h, 100));
	return OK;
}

/* The next entry; *out_end: there is none. */
static enum status next_entry(
	struct archive *a, struct entry *en, uint8_t *extra, bool *out_end, struct err *e)
{
	*en = (struct entry){ 0 };
	for (;;) {
		uint8_t header[BLOCK];
		uint64_t got = 0;
		enum status s = take(a, header, BLOCK, &got, e);
		if (s != OK)
			return s;
		*out_end = got == 0 || (got == BLOCK && is_zero(header));
		if (*out_end)
			return OK;
		if (got < BLOCK)
			return err_set(
				e, E_CORRUPT, "it ends too early, after %llu bytes", place(a));
		if (++a->entries > DEBUGINFO_ARCHIVE_ENTRIES_MAX)
			return err_set(
				e, E_LIMIT, "more than %d files", DEBUGINFO_ARCHIVE_ENTRIES_MAX);
		s = take_header(a, header, en, e);
		if (s != OK || (en->kind != 'L' && en->kind != 'x'))
			return s;
		uint64_t size = en->size;
		s = read_extra(a, size, extra, e);
		if (s == OK && en->kind == 'L')
			s = take_name(a, en, text_in(extra, size), e);
		else if (s == OK)
			s = take_pax(a, en, str_make(extra, size), e);
		if (s != OK)
			return s;
	}
}

/* ---- the wanted file ---- */

static struct str without_root(struct str path)
{
	if (str_starts(path, STR("/")))
		return str_sub(path, 1, path.len);
	if (str_starts(path, STR("./")))
		return str_sub(path, 2, path.len);
	return path;
}

static enum status copy(struct archive *a, const struct entry *en, struct buf *out, struct err *e)
{
	if (en->size > DEBUGINFO_SOURCE_BYTES_MAX || en->size > out->max - out->len)
		return err_set(e, E_LIMIT, "the file has %llu bytes, %zu are the limit",
			(unsigned long long)en->size, DEBUGINFO_SOURCE_BYTES_MAX);
	uint8_t *to = en->size ? buf_reserve(out, en->size) : out->data;
	if (en->size && !to)
		return err_set(e, buf_status(out), "a text");
	enum status s = take_all(a, to, en->size, e);
	if (s == OK)
		out->len += en->size;
	return s;
}

static enum status look_for(
	struct archive *a, struct str path, uint8_t *extra, struct buf *out, struct err *e)
{
	struct entry en;
	path = without_root(path);
	for (;;) {
		bool end = false;
		enum status s = next_entry(a, &en, extra, &end, e);
		if (s != OK)
			return s;
		if (end)
			return err_set(e, E_NOTFOUND, "the archive has no %.*s",
				STR_ARG(str_sub(path, 0, 200)));
		bool file = en.kind == '0' || en.kind == 0 || en.kind == '7';
		if (file && str_eq(without_root(str_of(en.path)), path))
			return copy(a, &en, out, e);
		uint64_t skip;
		if (__builtin_add_overflow(en.size, padding(en.size), &skip))
			return err_set(e, E_CORRUPT, "a damaged size before +%llu", place(a));
		s = take_all(a, NULL, skip, e);
		if (s != OK)
			return s;
	}
}

enum status debuginfo_archive_find(int fd, struct str path, debuginfo_cancel_fn *cancel,
	void *cancel_ctx, struct buf *out, struct err *e)
{
	CLEANUP(archive_free) struct archive *a = calloc(1, sizeof(*a));
	CLEANUP(free_cleanup) uint8_t *extra = malloc(PAX_BYTES_MAX);
	bool end = false;
	if (!a || !extra)
		return err_set(e, E_NOMEM, "archive");
	a->fd = fd;
	a->cancel = cancel;
	a->cancel_ctx = cancel_ctx;
	enum status s = read_file(a, &end, e);
	if (s == OK)
		s = codec_unpack_new(a->rest, &a->unpack, e);
	if (s == E_INVALID)
		return err_set(e, E_CORRUPT, "neither gzip nor zstd");
	return s == OK ? look_for(a, path, extra, out, e) : s;
}
