/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three tables (program headers, section headers, section names) are read and checked when the
 * file is opened; nothing else is. Their counts and sizes are checked against the named limits and
 * the size of the file before memory is taken for them. Contents are read and checked only when
 * they are needed: headers of a valid separate debug file may point beyond its end.
 */
#include "objfile/objfile.h"

#include "objfile/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTION_NAMES_BYTES_MAX (16u << 20)

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

void objfile_close(struct objfile *obj)
{
	if (!obj)
		return;
	if (obj->fd >= 0)
		close(obj->fd);
	free(obj->name);
	free(obj->program_headers);
	free(obj->segments);
	free(obj->sections);
	free(obj->section_names);
	free(obj);
}

/* Reads `count` records of `size` bytes each at `offset`. */
static enum status table_load(const struct objfile *obj, const char *what, uint64_t offset,
	uint64_t count, size_t size, void *out, struct err *e)
{
	if (offset > obj->size || count > (obj->size - offset) / size)
		return err_set(e, E_INVALID, "%s: %s at +%llu pass the end of the file", obj->name,
			what, (unsigned long long)offset);
	CLEANUP(free_cleanup) void *table = calloc(count ? count : 1, size);
	if (!table)
		return err_set(e, E_NOMEM, "%s: %s", obj->name, what);
	enum status s = objfile_read(obj, offset, table, count * size, e);
	if (s != OK)
		return s;
	*(void **)out = STEAL_PTR(table);
	return OK;
}

static enum status header_load(struct objfile *obj, struct err *e)
{
	enum status s = objfile_read(obj, 0, &obj->header, sizeof(obj->header), e);
	if (s != OK)
		return s;
	const Elf64_Ehdr *h = &obj->header;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return err_set(e, E_INVALID, "%s: no ELF magic at +0", obj->name);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(e, E_INVALID, "%s: not 64-bit little-endian (class %u, data %u)",
			obj->name, h->e_ident[EI_CLASS], h->e_ident[EI_DATA]);
	if (h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(
			e, E_INVALID, "%s: program headers of %u bytes", obj->name, h->e_phentsize);
	if (h->e_shoff && h->e_shentsize != sizeof(Elf64_Shdr))
		return err_set(
			e, E_INVALID, "%s: section headers of %u bytes", obj->name, h->e_shentsize);
	return OK;
}

/* gABI ch. 4: a count or an index that does not fit into the header is in section 0. */
struct counts {
	uint64_t program_headers;
	uint64_t sections;
	uint32_t names; /* index of the section of names */
};

static enum status counts_load(const struct objfile *obj, struct counts *out, struct err *e)
{
	const Elf64_Ehdr *h = &obj->header;
	struct counts c = { h->e_phnum, h->e_shoff ? h->e_shnum : 0, h->e_shstrndx };
	bool extended = h->e_shnum == 0 || h->e_phnum == PN_XNUM || h->e_shstrndx == SHN_XINDEX;
	if (h->e_shoff && extended) {
		Elf64_Shdr first;
		enum status s = objfile_read(obj, h->e_shoff, &first, sizeof(first), e);
		if (s != OK)
			return err_prefix(e, s, "section header 0");
		if (h->e_shnum == 0)
			c.sections = first.sh_size;
		if (h->e_phnum == PN_XNUM)
			c.program_headers = first.sh_info;
		if (h->e_shstrndx == SHN_XINDEX)
			c.names = first.sh_link;
	}
	if (c.program_headers > OBJFILE_SEGMENTS_MAX)
		return err_set(e, E_LIMIT, "%s: %llu program headers, at most %u", obj->name,
			(unsigned long long)c.program_headers, OBJFILE_SEGMENTS_MAX);
	if (c.sections > OBJFILE_SECTIONS_MAX)
		return err_set(e, E_LIMIT, "%s: %llu sections, at most %u", obj->name,
			(unsigned long long)c.sections, OBJFILE_SECTIONS_MAX);
	*out = c;
	return OK;
}

static struct objfile_segment segment_of(const Elf64_Phdr *p)
{
	return (struct objfile_segment){ p->p_offset, p->p_vaddr, p->p_filesz, p->p_memsz,
		p->p_flags, p->p_align };
}

static enum status segments_load(struct objfile *obj, const struct counts *c, struct err *e)
{
	enum status s = table_load(obj, "program headers", obj->header.e_phoff, c->program_headers,
		sizeof(Elf64_Phdr), &obj->program_headers, e);
	if (s != OK)
		return s;
	obj->program_header_count = (uint32_t)c->program_headers;
	obj->segments = calloc(obj->program_header_count + 1, sizeof(*obj->segments));
	if (!obj->segments)
		return err_set(e, E_NOMEM, "%s: segments", obj->name);
	for (uint32_t i = 0; i < obj->program_header_count; i++) {
		const Elf64_Phdr *p = &obj->program_headers[i];
		if (p->p_offset > UINT64_MAX - p->p_filesz || p->p_vaddr > UINT64_MAX - p->p_memsz)
			return err_set(
				e, E_INVALID, "%s: program header %u passes 2^64", obj->name, i);
		if (p->p_type == PT_LOAD)
			obj->segments[obj->segment_count++] = segment_of(p);
	}
	return OK;
}

static enum status names_load(
	struct objfile *obj, const Elf64_Shdr *names, uint64_t *out_len, struct err *e)
{
	uint64_t len = names && names->sh_type != SHT_NOBITS ? names->sh_size : 0;
	if (len > SECTION_NAMES_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: section names of %llu bytes", obj->name,
			(unsigned long long)len);
	obj->section_names = calloc(len + 1, 1);
	if (!obj->section_names)
		return err_set(e, E_NOMEM, "%s: section names", obj->name);
	*out_len = len;
	if (len == 0)
		return OK;
	enum status s = objfile_read(obj, names->sh_offset, obj->section_names, len, e);
	return s == OK ? OK : err_prefix(e, s, "section names");
}

static enum status sections_load(struct objfile *obj, const struct counts *c, struct err *e)
{
	CLEANUP(free_cleanup) Elf64_Shdr *raw = NULL;
	enum status s = table_load(obj, "section headers", obj->header.e_shoff, c->sections,
		sizeof(Elf64_Shdr), &raw, e);
	if (s != OK)
		return s;
	uint64_t names_len = 0;
	s = names_load(
		obj, c->names < c->sections && c->names ? &raw[c->names] : NULL, &names_len, e);
	if (s != OK)
		return s;
	obj->sections = calloc(c->sections + 1, sizeof(*obj->sections));
	if (!obj->sections)
		return err_set(e, E_NOMEM, "%s: sections", obj->name);
	for (uint32_t i = 0; i < c->sections; i++) {
		const Elf64_Shdr *h = &raw[i];
		const char *name = h->sh_name < names_len ? obj->section_names + h->sh_name : "";
		obj->sections[i] = (struct objfile_section){ str_of(name), h->sh_type, h->sh_flags,
			h->sh_addr, h->sh_offset, h->sh_size, h->sh_link, h->sh_entsize };
	}
	obj->section_count = (uint32_t)c->sections;
	return OK;
}

static enum status tables_load(struct objfile *obj, struct err *e)
{
	enum status s = header_load(obj, e);
	if (s != OK)
		return s;
	struct counts c = { 0 };
	s = counts_load(obj, &c, e);
	if (s != OK)
		return s;
	s = segments_load(obj, &c, e);
	if (s != OK)
		return s;
	s = sections_load(obj, &c, e);
	if (s != OK)
		return s;
	objfile_build_id_load(obj);
	return OK;
}

static enum status objfile_new(const char *name, struct objfile **out, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = calloc(1, sizeof(*obj));
	if (!obj)
		return err_set(e, E_NOMEM, "%s", name);
	obj->fd = -1;
	obj->name = strdup(name);
	if (!obj->name)
		return err_set(e, E_NOMEM, "%s", name);
	*out = STEAL_PTR(obj);
	return OK;
}

static enum status check_size(const char *name, uint64_t bytes, struct err *e)
{
	if (bytes > OBJFILE_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: %llu bytes, at most %llu", name,
			(unsigned long long)bytes, (unsigned long long)OBJFILE_BYTES_MAX);
	return OK;
}

enum status objfile_open_fd(int fd, const char *name, struct objfile **out, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_os(e, "stat %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, E_INVALID, "%s: not a regular file", name);
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	enum status s = check_size(name, (uint64_t)st.st_size, e);
	if (s == OK)
		s = objfile_new(name, &obj, e);
	if (s != OK)
		return s;
	obj->fd = fd;
	obj->size = (uint64_t)st.st_size;
	s = tables_load(obj, e);
	if (s != OK) {
		obj->fd = -1; /* the caller keeps the descriptor */
		return s;
	}
	*out = STEAL_PTR(obj);
	return OK;
}

enum status objfile_open(const char *path, struct objfile **out, struct err *e)
{
	/* O_NONBLOCK: opening a FIFO would wait for a writer. */
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_os(e, "open %s", path);
	enum status s = objfile_open_fd(fd, path, out, e);
	if (s == OK)
		(void)STEAL_FD(fd);
	return s;
}

enum status objfile_open_source(
	const struct objfile_source *source, const char *name, struct objfile **out, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	enum status s = check_size(name, source->bytes, e);
	if (s == OK)
		s = objfile_new(name, &obj, e);
	if (s != OK)
		return s;
	obj->source = *source;
	obj->size = source->bytes;
	s = tables_load(obj, e);
	if (s != OK)
		return s;
	*out = STEAL_PTR(obj);
	return OK;
}

enum status objfile_open_bytes(
	const void *bytes, size_t len, const char *name, struct objfile **out, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	enum status s = objfile_new(name, &obj, e);
	if (s != OK)
		return s;
	obj->bytes = bytes ? bytes : (const uint8_t *)"";
	obj->size = len;
	s = tables_load(obj, e);
	if (s != OK)
		return s;
	*out = STEAL_PTR(obj);
	return OK;
}

const char *objfile_name(const struct objfile *obj)
{
	return obj->name;
}

uint16_t objfile_machine(const struct objfile *obj)
{
	return obj->header.e_machine;
}

uint16_t objfile_type(const struct objfile *obj)
{
	return obj->header.e_type;
}

uint64_t objfile_size(const struct objfile *obj)
{
	return obj->size;
}

struct vaddr objfile_entry(const struct objfile *obj)
{
	return (struct vaddr){ obj->header.e_entry };
}

const struct objfile_segment *objfile_segments(const struct objfile *obj, uint32_t *out_count)
{
	*out_count = obj->segment_count;
	return obj->segments;
}

bool objfile_program_header(const struct objfile *obj, uint32_t type, struct objfile_segment *out)
{
	for (uint32_t i = 0; i < obj->program_header_count; i++) {
		if (obj->program_headers[i].p_type != type)
			continue;
		*out = segment_of(&obj->program_headers[i]);
		return true;
	}
	return false;
}

const struct objfile_section *objfile_sections(const struct objfile *obj, uint32_t *out_count)
{
	*out_count = obj->section_count;
	return obj->sections;
}

const struct objfile_section *objfile_section(const struct objfile *obj, const char *name)
{
	struct str want = str_of(name);
	for (uint32_t i = 0; i < obj->section_count; i++) {
		if (str_eq(obj->sections[i].name, want))
			return &obj->sections[i];
	}
	return NULL;
}

const char *objfile_build_id(const struct objfile *obj)
{
	return obj->build_id;
}

bool objfile_vaddr_of(const struct objfile *obj, struct fileoff off, struct vaddr *out)
{
	for (uint32_t i = 0; i < obj->segment_count; i++) {
		const struct objfile_segment *g = &obj->segments[i];
		if (off.v < g->offset || off.v - g->offset >= g->file_size)
			continue;
		out->v = off.v - g->offset + g->vaddr;
		return true;
	}
	return false;
}

bool objfile_fileoff_of(const struct objfile *obj, struct vaddr addr, struct fileoff *out)
{
	for (uint32_t i = 0; i < obj->segment_count; i++) {
		const struct objfile_segment *g = &obj->segments[i];
		if (addr.v < g->vaddr || addr.v - g->vaddr >= MIN(g->file_size, g->mem_size))
			continue;
		out->v = addr.v - g->vaddr + g->offset;
		return true;
	}
	return false;
}
