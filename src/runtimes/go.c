/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Go program is known by its section .go.buildinfo, which has the version. Its frames are native.
 * This file finds where a goroutine has the labels that runtime/pprof sets. Offsets are fixed
 * within a minor version.
 *
 * A thread's g is in a thread-local variable. The variable's offset is found only in instructions,
 * into which the linker writes it. It is taken from the first instruction that loads g into its
 * register; wrappers of functions in assembly have such instructions.
 *
 * Source: Go, src/debug/buildinfo, src/runtime/runtime2.go, src/runtime/pprof/label.go,
 * proflabel.go; DWARF of 1.23, 1.25 and 1.26; OpenTelemetry's profiler has the offsets of the
 * others.
 */
#include "runtimes/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\xff Go buildinf:"
#define HEADER_BYTES 32
#define FLAGS_AT 15
#define FLAG_INLINE 2 /* the version's text follows the header (1.18) */
#define POINTER_AT 16 /* before 1.18: the address of the version's string */
#define VERSION_BYTES_MAX 15
#define MINOR_FIRST 17
#define MINOR_SLICE 24 /* labels are a slice of pairs; before, a map */
#define TEXT_BYTES_MAX ((size_t)4 << 20)

static const struct row {
	uint8_t minor; /* the first minor version with these offsets */
	uint16_t curg, labels;
} rows[] = {
	{ MINOR_FIRST, 192, 360 }, { 21, 192, 344 }, { 23, 192, 352 }, { 25, 184, 344 },
	{ 26, 184, 352 }, { 27, 0, 0 }, /* not known */
};

static bool read_inline(const uint8_t *header, size_t len, char out[VERSION_BYTES_MAX + 1])
{
	size_t n = header[HEADER_BYTES];
	n = MIN(n, MIN(len - HEADER_BYTES - 1, (size_t)VERSION_BYTES_MAX));
	memcpy(out, header + HEADER_BYTES + 1, n);
	out[n] = 0;
	return true;
}

/* "go1.26.8" */
static bool read_version(const struct objfile *obj, char out[VERSION_BYTES_MAX + 1])
{
	const struct objfile_section *s = objfile_section(obj, ".go.buildinfo");
	uint8_t header[HEADER_BYTES + 1 + VERSION_BYTES_MAX];
	uint64_t at, string[2];
	if (!s)
		return false;
	size_t len = (size_t)MIN(s->size, (uint64_t)sizeof(header));
	if (len < HEADER_BYTES || objfile_read(obj, s->offset, header, len, NULL) != OK ||
		memcmp(header, MAGIC, sizeof(MAGIC) - 1) != 0)
		return false;
	if (header[FLAGS_AT] & FLAG_INLINE)
		return len > HEADER_BYTES && read_inline(header, len, out);
	memcpy(&at, header + POINTER_AT, sizeof(at));
	if (bytes_at(obj, at, string, sizeof(string), NULL) != OK)
		return false;
	size_t n = (size_t)MIN(string[1], (uint64_t)VERSION_BYTES_MAX);
	out[n] = 0;
	return bytes_at(obj, string[0], out, n, NULL) == OK;
}

/* mov %fs:OFFSET, %r14 */
static int32_t find_g(const struct objfile *obj, const struct objfile_section *text)
{
	static const uint8_t form[] = { 0x64, 0x4c, 0x8b, 0x34, 0x25 };
	size_t len = (size_t)MIN(text->size, (uint64_t)TEXT_BYTES_MAX);
	uint8_t *code = malloc(len + 1);
	int32_t found = 0;
	if (code && objfile_read(obj, text->offset, code, len, NULL) == OK) {
		const uint8_t *at = memmem(code, len, form, sizeof(form));
		if (at && (size_t)(code + len - at) >= sizeof(form) + sizeof(found))
			memcpy(&found, at + sizeof(form), sizeof(found));
	}
	free(code);
	return found < 0 ? found : 0;
}

enum status go_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	char version[VERSION_BYTES_MAX + 1];
	unsigned major = 0, minor = 0;
	struct runtime_record r = { .kind = RUNTIME_GO };
	const struct objfile_section *text = objfile_section(obj, ".text");
	if (!text || !read_version(obj, version) ||
		sscanf(version, "go%3u.%3u", &major, &minor) != 2 || major != 1 ||
		minor < MINOR_FIRST || minor >= rows[ARRAY_COUNT(rows) - 1].minor)
		return err_set(
			e, E_NOTFOUND, "%s: no Go whose labels are known", objfile_name(obj));
	const struct row *row = rows;
	while (row[1].minor <= minor)
		row++;
	r.version = (uint16_t)(major << 8 | minor);
	r.text_bytes = UINT32_MAX; /* the whole file, so that many programs share one record */
	r.layout.go = (struct go_layout){ .g_at = find_g(obj, text),
		.m_curg = row->curg,
		.g_labels = row->labels,
		.is_slice = minor >= MINOR_SLICE };
	*out = r;
	return OK;
}

bool runtimes_label(struct str table, uint32_t i, struct buf *name, struct buf *value)
{
	struct runtime_label x;
	if (i >= RUNTIME_LABELS_MAX || (size_t)i * sizeof(x) + sizeof(x) > table.len)
		return false;
	memcpy(&x, table.p + (size_t)i * sizeof(x), sizeof(x));
	size_t key_bytes = MIN((size_t)x.key_bytes, sizeof(x.key));
	size_t value_bytes = MIN((size_t)x.value_bytes, sizeof(x.value));
	return runtimes_text(name, str_make(x.key, key_bytes), RUNTIME_TEXT_UTF8) &&
	       runtimes_text(value, str_make(x.value, value_bytes), RUNTIME_TEXT_UTF8);
}
