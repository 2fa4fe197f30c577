/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Go's .gopclntab: names, files and lines of a Go program, which stripping does not remove. Calls
 * that Go inlined are not separate functions here (their lines are right, the function is the outer
 * one). Runs in the child only. Versions: Go 1.18 and 1.20 on.
 *
 * 	header          magic u32, 0 0, quantum u8, pointer size u8, then one pointer each: functions,
 * 	                files, text start, and offsets of names, units, files, pc tables, functions
 * 	function table  {entry u32 from text start, offset of struct u32} …, one entry more at the end
 * 	struct          entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, unit, start line
 * 	                (1.20)
 * 	pc table        pairs of varints (zigzag of value, pc / quantum) until a value of 0, from -1
 *
 * Source: Go, src/runtime/symtab.go (pcHeader, _func), src/internal/abi/symtab.go,
 * src/debug/gosym/pclntab.go.
 */
/* clang-format on */
#include "debuginfo/symtab/readers.h"

#include "base/reader.h"

#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1
#define FUNCTIONS_MAX (1u << 24)
/* The most steps through all pc tables together, against files in which many tables share bytes. */
#define STEPS_MAX (1u << 27)

struct pclntab {
	struct debuginfo_builder *b;
	const uint8_t *bytes;
	size_t len;
	uint32_t magic;
	uint32_t quantum;
	uint64_t count; /* functions */
	uint64_t text;
	uint64_t names, units, files, pcs, functions; /* offsets */
	uint64_t steps;
};

/* A position in a pc table: `value` holds for addresses below `end`, relative to the function. */
struct walk {
	struct reader r;
	uint32_t quantum;
	int64_t value;
	uint64_t end;
	bool first, done;
};

static struct reader at(const struct pclntab *t, uint64_t offset)
{
	struct reader r = reader_over(t->bytes, t->len);
	if (offset > t->len)
		r.failed = true;
	else
		reader_seek(&r, (size_t)offset);
	return r;
}

/* The u32 at base + index * 4; false: it is outside of the file. */
static bool u32_at(const struct pclntab *t, uint64_t base, uint64_t index, uint32_t *out)
{
	struct reader r = at(t, base + index * 4);
	*out = reader_u32(&r);
	return !r.failed && index < UINT32_MAX;
}

static const char *text_at(const struct pclntab *t, uint64_t base, uint32_t offset)
{
	struct reader r = at(t, base + offset);
	struct str s = reader_cstr(&r);
	return r.failed ? NULL : s.p;
}

static struct walk walk_begin(const struct pclntab *t, uint32_t offset)
{
	return (struct walk){
		.r = at(t, t->pcs + offset), .quantum = t->quantum, .value = -1, .first = true
	};
}

static void walk_step(struct pclntab *t, struct walk *w)
{
	uint64_t delta = reader_varint(&w->r);
	if ((delta == 0 && !w->first) || w->r.failed || ++t->steps > STEPS_MAX) {
		w->done = true;
		w->end = UINT64_MAX;
		return;
	}
	w->first = false;
	w->value += (int64_t)(delta >> 1) ^ -(int64_t)(delta & 1);
	uint64_t pc = reader_varint(&w->r);
	if (w->r.failed || pc > UINT32_MAX) {
		w->done = true;
		w->end = UINT64_MAX;
		return;
	}
	w->end += pc * w->quantum;
}

struct go_function {
	uint64_t start, end;
	uint32_t id; /* in the builder */
	uint32_t pcfile, pcln, unit;
};

static enum status file_of(
	struct pclntab *t, const struct go_function *f, int64_t number, uint32_t *out)
{
	uint32_t offset;
	*out = 0;
	if (number < 0 || number > UINT32_MAX ||
		!u32_at(t, t->units, (uint64_t)f->unit + (uint64_t)number, &offset) ||
		offset == UINT32_MAX)
		return OK;
	return debuginfo_builder_text(t->b, text_at(t, t->files, offset), out);
}

static enum status add_lines(struct pclntab *t, const struct go_function *f)
{
	struct walk files = walk_begin(t, f->pcfile), lines = walk_begin(t, f->pcln);
	int64_t file_number = -2;
	struct debuginfo_piece p = { .end = f->start };
	struct symtab_node node = { .function = f->id };
	walk_step(t, &files);
	walk_step(t, &lines);
	while (p.end < f->end) {
		enum status s = OK;
		if (files.value != file_number)
			s = file_of(t, f, file_number = files.value, &node.file);
		if (s == OK)
			s = debuginfo_builder_node(t->b, node, &p.node);
		p.start = p.end;
		p.end = MIN(f->end - f->start, MIN(files.end, lines.end)) + f->start;
		p.line = !lines.done && lines.value > 0 && lines.value <= INT32_MAX
				 ? (uint32_t)lines.value
				 : 0;
		if (s == OK && p.start < p.end)
			s = debuginfo_builder_add(t->b, p);
		if (s != OK)
			return s;
		if (files.end <= p.end - f->start)
			walk_step(t, &files);
		if (lines.end <= p.end - f->start)
			walk_step(t, &lines);
	}
	return OK;
}

static enum status add_function(struct pclntab *t, uint64_t start, uint64_t end, uint32_t offset)
{
	const struct debuginfo_span *code = debuginfo_builder_code(t->b, start);
	struct reader r = at(t, t->functions + offset);
	reader_skip(&r, 4); /* entry */
	uint32_t name = reader_u32(&r);
	reader_skip(&r, 12); /* args, deferreturn, pcsp */
	struct go_function f = { .start = start, .pcfile = reader_u32(&r), .pcln = reader_u32(&r) };
	reader_skip(&r, 4); /* npcdata */
	f.unit = reader_u32(&r);
	struct symtab_function sf = { 0 };
	if (t->magic == MAGIC_1_20)
		sf.line = reader_u32(&r);
	const char *text = text_at(t, t->names, name);
	if (r.failed || !text || !code || end <= start)
		return OK; /* a damaged entry costs only its own name */
	f.end = MIN(end, code->end);
	enum status s = debuginfo_builder_text(t->b, text, &sf.name);
	if (s == OK)
		s = debuginfo_builder_function(t->b, sf, &f.id);
	return s == OK ? add_lines(t, &f) : s;
}

static enum status add_functions(struct pclntab *t)
{
	struct reader r = at(t, t->functions);
	uint32_t entry = reader_u32(&r), offset = reader_u32(&r);
	for (uint64_t i = 0; i < t->count; i++) {
		uint32_t next = reader_u32(&r);
		if (r.failed)
			return OK;
		enum status s = add_function(t, t->text + entry, t->text + next, offset);
		if (s != OK)
			return s;
		entry = next;
		if (i + 1 < t->count)
			offset = reader_u32(&r);
	}
	return OK;
}

/* Where the text begins. The header says so up to Go 1.25, the runtime's moduledata in all
 * versions. It is found by its first two words, which point to the header and to the names; in a
 * position independent program these are relocations. A debug file may have neither: then the text
 * is taken to begin with section .text, unless C code lies before Go's. */
#define MODULE_NAMES 8       /* offset of the second word */
#define MODULE_TEXT (22 * 8) /* pcHeader, six slices, findfunctab, minpc, maxpc, text */

struct module {
	uint64_t header, names; /* addresses to find */
	uint64_t text;
};

static bool find_in_relocations(Elf_Data *data, const GElf_Shdr *sh, struct module *m)
{
	size_t count = sh->sh_entsize ? MIN(data->d_size / sh->sh_entsize, (size_t)INT32_MAX) : 0;
	uint64_t header_at = 0, text_at = 0;
	bool names = false;
	GElf_Rela rela;
	/* Relocations are sorted by address, so one pass meets the three in order. */
	for (size_t i = 0; i < count && text_at == 0; i++) {
		if (!gelf_getrela(data, (int)i, &rela))
			continue;
		uint64_t addend = (uint64_t)rela.r_addend;
		if (addend == m->header) {
			header_at = rela.r_offset;
			names = false;
		} else if (header_at && rela.r_offset == header_at + MODULE_NAMES) {
			names = addend == m->names;
		} else if (names && rela.r_offset == header_at + MODULE_TEXT) {
			text_at = rela.r_offset;
			m->text = addend;
		}
	}
	return text_at != 0;
}

static bool find_in_data(Elf_Data *data, struct module *m)
{
	const uint8_t *p = data->d_buf;
	for (size_t at = 0; at + MODULE_TEXT + 8 <= data->d_size; at += 8) {
		uint64_t header, names;
		memcpy(&header, p + at, 8);
		memcpy(&names, p + at + MODULE_NAMES, 8);
		if (header != m->header || names != m->names)
			continue;
		memcpy(&m->text, p + at + MODULE_TEXT, 8);
		return m->text != 0;
	}
	return false;
}

static uint64_t find_text(Elf *elf, uint64_t header, uint64_t names)
{
	struct module m = { header, names, 0 };
	GElf_Shdr sh;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		if (!gelf_getshdr(scn, &sh))
			continue;
		bool data = sh.sh_type == SHT_PROGBITS && (sh.sh_flags & SHF_WRITE);
		if (!data && sh.sh_type != SHT_RELA)
			continue;
		Elf_Data *d = data ? elf_rawdata(scn, NULL) : elf_getdata(scn, NULL);
		if (d && d->d_buf && (data ? find_in_data(d, &m) : find_in_relocations(d, &sh, &m)))
			return m.text;
	}
	return 0;
}

static uint64_t section_text(Elf *elf)
{
	size_t names;
	GElf_Shdr sh;
	uint64_t text = 0;
	if (elf_getshdrstrndx(elf, &names) != 0)
		return 0;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (name && strcmp(name, ".init") == 0)
			return 0;
		if (name && strcmp(name, ".text") == 0)
			text = sh.sh_addr;
	}
	return text;
}

static bool read_header(struct pclntab *t, Elf *elf, uint64_t vaddr)
{
	struct reader r = at(t, 0);
	t->magic = reader_u32(&r);
	uint16_t zero = reader_u16(&r);
	t->quantum = reader_u8(&r);
	uint8_t pointer = reader_u8(&r);
	if (r.failed || (t->magic != MAGIC_1_18 && t->magic != MAGIC_1_20) || zero != 0 ||
		pointer != 8 || t->quantum == 0)
		return false;
	t->count = reader_u64(&r);
	reader_u64(&r); /* files */
	t->text = reader_u64(&r);
	uint64_t *offsets[] = { &t->names, &t->units, &t->files, &t->pcs, &t->functions };
	for (size_t i = 0; i < ARRAY_COUNT(offsets); i++) {
		*offsets[i] = reader_u64(&r);
		if (*offsets[i] > t->len)
			return false;
	}
	uint64_t text = find_text(elf, vaddr, vaddr + t->names);
	t->text = text ? text : t->text ? t->text : section_text(elf);
	return !r.failed && t->count <= FUNCTIONS_MAX && t->text != 0;
}

enum status debuginfo_read_gopclntab(struct debuginfo_builder *b, Elf *elf)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names) != 0)
		return OK;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || sh.sh_type == SHT_NOBITS ||
			(strcmp(name, ".gopclntab") != 0 &&
				strcmp(name, ".data.rel.ro.gopclntab") != 0))
			continue;
		Elf_Data *data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		struct pclntab t = { .b = b, .bytes = data->d_buf, .len = data->d_size };
		if (!read_header(&t, elf, sh.sh_addr))
			continue;
		b->flags |= SYMTAB_GOPCLNTAB;
		return add_functions(&t);
	}
	return OK;
}
