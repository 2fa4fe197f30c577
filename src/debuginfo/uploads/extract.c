/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extracted file never exists as a whole: its headers are made in memory, and the rest are
 * pieces of the original file, read when they are asked for.
 *
 * The extracted file has all sections of the original, with the same numbers, so that links between
 * them stay valid; sections that give no names have no bytes (SHT_NOBITS). Program headers stay as
 * they were, since offsets in the original are turned into addresses by them. Only those of notes
 * move with their bytes. Source: gABI ch. 4-5; elfutils' strip -f does the same.
 */
#include "debuginfo/uploads/uploads.h"
#include "objfile/objfile.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES 65536

struct debuginfo_extract {
	const struct objfile *obj;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	bool *moved; /* of segments */
	Elf64_Shdr *sections;
	const struct objfile_section *parsed;
	uint64_t *from; /* by section: where its bytes are in the original */
	uint32_t *kept; /* sections with bytes, in their order */
	uint32_t segment_count, section_count, kept_count;
	bool has_symtab;
	bool has_names;
};

void debuginfo_extract_free(struct debuginfo_extract *x)
{
	if (!x)
		return;
	free(x->segments);
	free(x->moved);
	free(x->sections);
	free(x->from);
	free(x->kept);
	free(x);
}

static void extract_cleanup(struct debuginfo_extract **x)
{
	debuginfo_extract_free(*x);
}

/* Whether the symbol table is made from the section: names, jumps of the PLT, Go's own tables, and
 * the begins of functions, in case nothing else has them. */
static bool gives_names(const struct debuginfo_extract *x, const struct objfile_section *s)
{
	if (s->type == SHT_NOBITS || !(s->flags & SHF_ALLOC))
		return s->type != SHT_NOBITS;
	if (s->type == SHT_NOTE || s->type == SHT_DYNSYM || s->type == SHT_STRTAB ||
		s->type == SHT_RELA)
		return true;
	if (str_starts(s->name, STR(".plt")) || str_eq(s->name, STR(".gopclntab")) ||
		str_eq(s->name, STR(".data.rel.ro.gopclntab")))
		return true;
	return !x->has_symtab && str_starts(s->name, STR(".eh_frame"));
}

/* .eh_frame has no names, only the begins of functions. A symbol table begins with an empty
 * entry. */
static bool names_functions(const struct objfile_section *s, uint64_t size)
{
	static const char *const sections[] = { ".debug_info", ".zdebug_info", ".gnu_debugdata",
		".gopclntab", ".data.rel.ro.gopclntab" };
	if (s->type == SHT_SYMTAB || s->type == SHT_DYNSYM)
		return size > sizeof(Elf64_Sym);
	for (size_t i = 0; i < ARRAY_COUNT(sections); i++)
		if (str_eq(s->name, str_of(sections[i])))
			return true;
	return false;
}

static enum status load(struct debuginfo_extract *x, struct err *e)
{
	const char *name = objfile_name(x->obj);
	enum status s = objfile_read(x->obj, 0, &x->header, sizeof(x->header), e);
	if (s != OK)
		return s;
	x->parsed = objfile_sections(x->obj, &x->section_count);
	if (x->section_count == 0)
		return err_set(e, E_NOTFOUND, "%s: no sections, so no debug information", name);
	x->sections = calloc(x->section_count, sizeof(*x->sections));
	x->from = calloc(x->section_count, sizeof(*x->from));
	x->kept = calloc(x->section_count, sizeof(*x->kept));
	if (!x->sections || !x->from || !x->kept)
		return err_set(e, E_NOMEM, "%s: %u sections", name, x->section_count);
	s = objfile_read(
		x->obj, x->header.e_shoff, x->sections, x->section_count * sizeof(*x->sections), e);
	if (s != OK)
		return s;
	x->segment_count =
		x->header.e_phnum == PN_XNUM ? x->sections[0].sh_info : x->header.e_phnum;
	if (x->segment_count > OBJFILE_SEGMENTS_MAX) /* the file was changed since it was opened */
		return err_set(e, E_INVALID, "%s: it changes while it is read", name);
	x->segments = calloc(x->segment_count + 1, sizeof(*x->segments));
	x->moved = calloc(x->segment_count + 1, sizeof(*x->moved));
	if (!x->segments || !x->moved)
		return err_set(e, E_NOMEM, "%s: %u program headers", name, x->segment_count);
	return objfile_read(
		x->obj, x->header.e_phoff, x->segments, x->segment_count * sizeof(*x->segments), e);
}

/* Program headers of notes must point to their bytes: each moves with its first section, and the
 * other sections follow as before. */
static void move_notes(struct debuginfo_extract *x, uint64_t from, uint64_t size, uint64_t to)
{
	for (uint32_t i = 0; i < x->segment_count; i++) {
		uint64_t offset = x->segments[i].p_offset;
		if (x->segments[i].p_type != PT_NOTE || x->moved[i] || offset < from ||
			offset - from >= size || x->segments[i].p_filesz > objfile_size(x->obj))
			continue;
		x->segments[i].p_offset = to + (offset - from);
		x->moved[i] = true;
	}
}

/* Assigns each part its place in the extracted file. */
static enum status lay_out(struct debuginfo_extract *x, struct err *e)
{
	const char *name = objfile_name(x->obj);
	uint64_t at = sizeof(x->header) + x->segment_count * sizeof(*x->segments);
	uint64_t kept = 0, size = objfile_size(x->obj);
	for (uint32_t i = 0; i < x->section_count; i++)
		x->has_symtab |= x->parsed[i].type == SHT_SYMTAB;
	for (uint32_t i = 1; i < x->section_count; i++) {
		Elf64_Shdr *sh = &x->sections[i];
		uint64_t align = sh->sh_addralign;
		/* This header is used, not the one parsed before: the file may have changed
		 * meanwhile. */
		bool has_bytes = sh->sh_type != SHT_NOBITS && sh->sh_type != SHT_NULL;
		bool keeps = has_bytes && sh->sh_size > 0 && gives_names(x, &x->parsed[i]);
		if (keeps && align > 1 && align <= 4096 && (align & (align - 1)) == 0)
			at = (at + align - 1) & ~(align - 1);
		x->from[i] = sh->sh_offset;
		sh->sh_offset = at;
		if (!keeps) {
			sh->sh_type = sh->sh_type == SHT_NULL ? SHT_NULL : SHT_NOBITS;
			continue;
		}
		if (sh->sh_size > size || x->from[i] > size - sh->sh_size)
			return err_set(e, E_INVALID, "%s: section %u (%.*s) passes the end of it",
				name, i, STR_ARG(x->parsed[i].name));
		kept += sh->sh_size;
		if (kept > size)
			return err_set(e, E_INVALID, "%s: sections lie over one another", name);
		x->kept[x->kept_count++] = i;
		x->has_names |= names_functions(&x->parsed[i], sh->sh_size);
		if (sh->sh_type == SHT_NOTE)
			move_notes(x, x->from[i], sh->sh_size, at);
		at += sh->sh_size;
	}
	x->header.e_phoff = x->segment_count ? sizeof(x->header) : 0;
	x->header.e_shoff = (at + 7) & ~(uint64_t)7;
	return OK;
}

uint64_t debuginfo_extract_bytes(const struct debuginfo_extract *x)
{
	return x->header.e_shoff + (uint64_t)x->section_count * sizeof(*x->sections);
}

bool debuginfo_extract_has_names(const struct debuginfo_extract *x)
{
	return x->has_names;
}

/* One piece: bytes in memory, bytes of a section, or zeros up to the next piece. */
struct piece {
	uint64_t begin, end; /* in the extracted file */
	const void *bytes;   /* NULL: bytes of the original, or zeros */
	bool is_section;
	uint64_t from; /* in the first file */
};

/* The section that holds `at`, or the zeros before the next one. */
static struct piece section_piece(const struct debuginfo_extract *x, uint64_t at)
{
	uint32_t low = 0, high = x->kept_count; /* the first section that begins after `at` */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (x->sections[x->kept[middle]].sh_offset <= at)
			low = middle + 1;
		else
			high = middle;
	}
	const Elf64_Shdr *before = low ? &x->sections[x->kept[low - 1]] : NULL;
	if (before && at - before->sh_offset < before->sh_size)
		return (struct piece){ before->sh_offset, before->sh_offset + before->sh_size, NULL,
			true, x->from[x->kept[low - 1]] };
	uint64_t next =
		low < x->kept_count ? x->sections[x->kept[low]].sh_offset : x->header.e_shoff;
	return (struct piece){ at, next, NULL, false, 0 };
}

static struct piece piece_at(const struct debuginfo_extract *x, uint64_t at)
{
	uint64_t segments = sizeof(x->header) + x->segment_count * sizeof(*x->segments);
	if (at < sizeof(x->header))
		return (struct piece){ 0, sizeof(x->header), &x->header, false, 0 };
	if (at < segments)
		return (struct piece){ sizeof(x->header), segments, x->segments, false, 0 };
	if (at >= x->header.e_shoff)
		return (struct piece){ x->header.e_shoff, debuginfo_extract_bytes(x), x->sections,
			false, 0 };
	return section_piece(x, at);
}

enum status debuginfo_extract_read(
	const struct debuginfo_extract *x, uint64_t at, void *out, size_t len, struct err *e)
{
	uint8_t *to = out;
	assert(at <= debuginfo_extract_bytes(x) && len <= debuginfo_extract_bytes(x) - at);
	while (len > 0) {
		struct piece p = piece_at(x, at);
		size_t n = (size_t)MIN(p.end - at, (uint64_t)len);
		enum status s = OK;
		if (p.bytes)
			memcpy(to, (const uint8_t *)p.bytes + (at - p.begin), n);
		else if (p.is_section)
			s = objfile_read(x->obj, p.from + (at - p.begin), to, n, e);
		else
			memset(to, 0, n);
		if (s != OK)
			return s;
		at += n;
		to += n;
		len -= n;
	}
	return OK;
}

enum status debuginfo_extract_new(
	const struct objfile *obj, struct debuginfo_extract **out, struct err *e)
{
	CLEANUP(extract_cleanup) struct debuginfo_extract *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "debug file");
	x->obj = obj;
	enum status s = load(x, e);
	if (s == OK)
		s = lay_out(x, e);
	if (s == OK)
		*out = STEAL_PTR(x);
	return s;
}

enum status debuginfo_extract(const struct objfile *obj, int fd, struct err *e)
{
	CLEANUP(extract_cleanup) struct debuginfo_extract *x = NULL;
	CLEANUP(free_cleanup) uint8_t *copy = malloc(COPY_BYTES);
	enum status s =
		copy ? debuginfo_extract_new(obj, &x, e) : err_set(e, E_NOMEM, "debug file");
	if (s != OK)
		return s;
	uint64_t bytes = debuginfo_extract_bytes(x);
	for (uint64_t at = 0; s == OK && at < bytes; at += COPY_BYTES) {
		size_t n = (size_t)MIN(bytes - at, (uint64_t)COPY_BYTES);
		s = debuginfo_extract_read(x, at, copy, n, e);
		if (s == OK)
			s = os_write_full(fd, copy, n, "debug file", e);
	}
	return s;
}
