/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file has the sections of the first one, in the same order and under the same numbers, so that
 * links between them hold; what gives no names is a section without bytes (SHT_NOBITS). Program
 * headers stay as they were: symbol tables turn offsets of the whole file into addresses by them.
 * Only those of notes move with their bytes. Source: gABI ch. 4-5; elfutils' strip -f does the
 * same.
 */
#include "debuginfo/debuginfo.h"
#include "objfile/objfile.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES 65536

struct extract {
	const struct objfile *obj;
	int fd;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	bool *moved; /* of segments */
	Elf64_Shdr *sections;
	const struct objfile_section *parsed;
	uint64_t *from; /* where the bytes of a section are in the first file */
	uint32_t segment_count, section_count;
	bool has_symtab;
	uint64_t at; /* written so far */
	uint8_t piece[COPY_BYTES];
};

static void extract_free(struct extract **x)
{
	if (*x) {
		free((*x)->segments);
		free((*x)->moved);
		free((*x)->sections);
		free((*x)->from);
	}
	free(*x);
}

/* Names, and what symbol tables read beside them: jumps of the PLT, Go's own tables, and where
 * functions begin when nothing else tells. */
static bool gives_names(const struct extract *x, const struct objfile_section *s)
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

static enum status load(struct extract *x, struct err *e)
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
	if (!x->sections || !x->from)
		return err_set(e, E_NOMEM, "%s: %u sections", name, x->section_count);
	s = objfile_read(
		x->obj, x->header.e_shoff, x->sections, x->section_count * sizeof(*x->sections), e);
	if (s != OK)
		return s;
	x->segment_count =
		x->header.e_phnum == PN_XNUM ? x->sections[0].sh_info : x->header.e_phnum;
	if (x->segment_count > OBJFILE_SEGMENTS_MAX) /* it was less when the file was opened */
		return err_set(e, E_INVALID, "%s: it changes while it is read", name);
	x->segments = calloc(x->segment_count + 1, sizeof(*x->segments));
	x->moved = calloc(x->segment_count + 1, sizeof(*x->moved));
	if (!x->segments || !x->moved)
		return err_set(e, E_NOMEM, "%s: %u program headers", name, x->segment_count);
	return objfile_read(
		x->obj, x->header.e_phoff, x->segments, x->segment_count * sizeof(*x->segments), e);
}

/* Notes alone are where their program header says: it goes with the first of them, and the others
 * follow as before. */
static void move_notes(struct extract *x, uint64_t from, uint64_t size, uint64_t to)
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

/* Where everything will lie. */
static enum status lay_out(struct extract *x, struct err *e)
{
	const char *name = objfile_name(x->obj);
	uint64_t at = sizeof(x->header) + x->segment_count * sizeof(*x->segments);
	uint64_t kept = 0, size = objfile_size(x->obj);
	for (uint32_t i = 0; i < x->section_count; i++)
		x->has_symtab |= x->parsed[i].type == SHT_SYMTAB;
	for (uint32_t i = 1; i < x->section_count; i++) {
		Elf64_Shdr *sh = &x->sections[i];
		uint64_t align = sh->sh_addralign;
		/* By what was read now, as what is written goes: the file may have changed. */
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
		if (sh->sh_type == SHT_NOTE)
			move_notes(x, x->from[i], sh->sh_size, at);
		at += sh->sh_size;
	}
	x->header.e_phoff = x->segment_count ? sizeof(x->header) : 0;
	x->header.e_shoff = (at + 7) & ~(uint64_t)7;
	return OK;
}

static enum status put(struct extract *x, const void *bytes, size_t len, struct err *e)
{
	x->at += len;
	return os_write_full(x->fd, bytes, len, "debug file", e);
}

static enum status pad_to(struct extract *x, uint64_t at, struct err *e)
{
	static const uint8_t zeros[4096];
	assert(at >= x->at && at - x->at <= sizeof(zeros));
	return put(x, zeros, (size_t)(at - x->at), e);
}

static enum status copy_section(struct extract *x, uint32_t i, struct err *e)
{
	uint64_t left = x->sections[i].sh_size, from = x->from[i];
	enum status s = pad_to(x, x->sections[i].sh_offset, e);
	while (s == OK && left > 0) {
		size_t n = (size_t)MIN(left, (uint64_t)sizeof(x->piece));
		s = objfile_read(x->obj, from, x->piece, n, e);
		if (s == OK)
			s = put(x, x->piece, n, e);
		from += n;
		left -= n;
	}
	return s;
}

static enum status write_all(struct extract *x, struct err *e)
{
	enum status s = put(x, &x->header, sizeof(x->header), e);
	if (s == OK)
		s = put(x, x->segments, x->segment_count * sizeof(*x->segments), e);
	for (uint32_t i = 1; s == OK && i < x->section_count; i++)
		if (x->sections[i].sh_type != SHT_NOBITS && x->sections[i].sh_type != SHT_NULL)
			s = copy_section(x, i, e);
	if (s == OK)
		s = pad_to(x, x->header.e_shoff, e);
	if (s == OK)
		s = put(x, x->sections, x->section_count * sizeof(*x->sections), e);
	return s;
}

enum status debuginfo_extract(const struct objfile *obj, int fd, struct err *e)
{
	CLEANUP(extract_free) struct extract *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "debug file");
	x->obj = obj;
	x->fd = fd;
	enum status s = load(x, e);
	if (s == OK)
		s = lay_out(x, e);
	return s == OK ? write_all(x, e) : s;
}
