/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of code, by libelf. Runs in the child only.
 *
 * Many symbols share or overlap addresses. debuginfo_symbols_settle() turns them into disjoint
 * ranges: it chooses the best symbol of each address (better()) and gives unsized ones an end; then
 * one sweep with a stack of open symbols assigns each address to the innermost symbol, so that an
 * outer function continues after an inner one.
 */
#include "debuginfo/symtab/readers.h"

#include <elfutils/libdwelf.h>
#include <stdlib.h>

static enum status add_code(struct debuginfo_builder *b, uint64_t start, uint64_t size)
{
	if (size == 0 || start + size < start || b->code.len >= DEBUGINFO_SPANS_MAX)
		return OK;
	struct debuginfo_span span = { start, start + size };
	return VEC_PUSH(&b->code, span) ? OK : E_NOMEM;
}

static void join_code(struct debuginfo_builder *b)
{
	if (b->code.len == 0)
		return;
	qsort(b->code.v, b->code.len, sizeof(*b->code.v), debuginfo_span_cmp);
	size_t n = 0;
	for (size_t i = 1; i < b->code.len; i++) {
		/* Only overlapping spans are joined: a symbol does not go beyond its section. */
		if (b->code.v[i].start < b->code.v[n].end)
			b->code.v[n].end = MAX(b->code.v[n].end, b->code.v[i].end);
		else
			b->code.v[++n] = b->code.v[i];
	}
	b->code.len = n + 1;
}

static int segment_cmp(const void *pa, const void *pb)
{
	const struct symtab_segment *a = pa, *b = pb;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static enum status read_segments(struct debuginfo_builder *b, Elf *elf, bool code_too)
{
	size_t count = 0;
	if (elf_getphdrnum(elf, &count) != 0)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (ph.p_filesz && !code_too) {
			struct symtab_segment seg = { ph.p_offset, ph.p_vaddr, ph.p_filesz };
			if (!VEC_PUSH(&b->segments, seg))
				return E_NOMEM;
		}
		if (code_too && (ph.p_flags & PF_X) && add_code(b, ph.p_vaddr, ph.p_memsz) != OK)
			return E_NOMEM;
	}
	if (b->segments.len)
		qsort(b->segments.v, b->segments.len, sizeof(*b->segments.v), segment_cmp);
	return OK;
}

struct places {
	VEC(struct debuginfo_span) v;
};

static void places_deinit(struct places *p)
{
	VEC_FREE(&p->v);
}

/* Debug files of Parca's agent keep the section headers of code, but not their sizes (SHT_NOBITS,
 * sh_size 0), and no PT_LOAD: each such section reaches up to the next one of the program. */
static enum status add_unsized_code(struct debuginfo_builder *b, Elf *elf)
{
	CLEANUP(places_deinit) struct places places = { 0 };
	bool any = false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_ALLOC) || sh.sh_addr == 0)
			continue;
		bool unsized = (sh.sh_flags & SHF_EXECINSTR) && sh.sh_type == SHT_NOBITS &&
			       sh.sh_size == 0;
		/* An empty span only marks where another section begins. */
		struct debuginfo_span place = { sh.sh_addr, sh.sh_addr + unsized };
		any |= unsized;
		if (!VEC_PUSH(&places.v, place))
			return E_NOMEM;
	}
	if (!any)
		return OK;
	qsort(places.v.v, places.v.len, sizeof(*places.v.v), debuginfo_span_cmp);
	uint64_t next = UINT64_MAX;
	enum status s = OK;
	for (size_t i = places.v.len; s == OK && i-- > 0;) {
		struct debuginfo_span at = places.v.v[i];
		if (i + 1 < places.v.len && places.v.v[i + 1].start > at.start)
			next = places.v.v[i + 1].start;
		if (at.end > at.start)
			s = add_code(b, at.start, MIN(next - at.start, SYMTAB_REGION_BYTES_MAX));
	}
	return s;
}

enum status debuginfo_read_headers(struct debuginfo_builder *b, Elf *elf, struct err *e)
{
	GElf_Ehdr eh;
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return err_set(e, E_INVALID, "not an ELF file: %s", elf_errmsg(-1));
	if (eh.e_type == ET_REL)
		return err_set(e, E_UNSUPPORTED, "a relocatable file (ET_REL) has no addresses");
	enum status s = read_segments(b, elf, false);
	for (Elf_Scn *scn = NULL; s == OK && (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR) &&
			(sh.sh_flags & SHF_ALLOC))
			s = add_code(b, sh.sh_addr, sh.sh_size);
	}
	if (s == OK)
		s = add_unsized_code(b, elf);
	if (s == OK && b->code.len == 0)
		s = read_segments(b, elf, true);
	if (s != OK)
		return err_set(e, s, "headers");
	join_code(b);
	const void *id = NULL;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);
	if (len > 0) {
		b->build_id_len = (uint32_t)MIN((size_t)len, sizeof(b->build_id));
		memcpy(b->build_id, id, b->build_id_len);
	}
	return OK;
}

/* ---- symbol tables ---- */

/* $a, $d, $t, $x with or without ".suffix": where ARM code and data begin. */
static bool is_mapping(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (name[2] == '\0' || name[2] == '.');
}

static bool is_code_symbol(const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);
	if (sym->st_shndx == SHN_UNDEF || !name || name[0] == '\0')
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && sym->st_shndx != SHN_ABS && !is_mapping(name) &&
	       !(name[0] == '.' && name[1] == 'L');
}

static enum status add_symbol(
	struct debuginfo_builder *b, const GElf_Sym *sym, const char *name, bool arm)
{
	if (!is_code_symbol(sym, name))
		return OK;
	uint64_t start = arm ? sym->st_value & ~(uint64_t)1 : sym->st_value;
	const struct debuginfo_span *code = debuginfo_builder_code(b, start);
	if (!code)
		return OK;
	bool typed = GELF_ST_TYPE(sym->st_info) != STT_NOTYPE;
	bool local = GELF_ST_BIND(sym->st_info) == STB_LOCAL;
	struct debuginfo_symbol s = {
		.start = start,
		.end = start + MIN(sym->st_size, code->end - start),
		.name = name,
		.rank = (uint8_t)((typed ? 0 : 4) | (sym->st_size ? 0 : 2) | (local ? 1 : 0)),
		.local = local,
		.sized = sym->st_size != 0,
		.typed = typed,
	};
	return VEC_PUSH(&b->symbols, s) ? OK : E_NOMEM;
}

static enum status read_symbol_section(
	struct debuginfo_builder *b, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	GElf_Ehdr eh;
	Elf_Data *data = elf_getdata(scn, NULL);
	if (!data || !gelf_getehdr(elf, &eh) || sh->sh_entsize == 0)
		return OK;
	size_t count = MIN(data->d_size / sh->sh_entsize, (size_t)INT32_MAX);
	for (size_t i = 1; i < count; i++) {
		GElf_Sym sym;
		if (!gelf_getsym(data, (int)i, &sym))
			continue;
		const char *name = elf_strptr(elf, sh->sh_link, sym.st_name);
		enum status s = add_symbol(b, &sym, name, eh.e_machine == EM_ARM);
		if (s != OK)
			return s;
	}
	return OK;
}

enum status debuginfo_read_symbols(struct debuginfo_builder *b, Elf *elf, enum symtab_flag flag)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		if (!gelf_getshdr(scn, &sh) ||
			(sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM))
			continue;
		size_t before = b->symbols.len;
		enum status s = read_symbol_section(b, elf, scn, &sh);
		if (s != OK)
			return s;
		if (b->symbols.len > before)
			b->flags |= sh.sh_type == SHT_DYNSYM ? SYMTAB_DYNSYM : flag;
	}
	return OK;
}

/* ---- from many symbols to disjoint ranges ---- */

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* The length up to the '@' in names like Crystal's "*Array(Int32)@Array(T)#push": linkers take the
 * rest for a version, and the dynamic symbol ends there. */
static size_t length_to_compare(const char *name)
{
	const char *at = strchr(name, '@');
	return at && !debuginfo_is_version(str_of(at)) ? (size_t)(at - name) : strlen(name);
}

/* <0: a is the better name of the address. */
static int better(const struct debuginfo_symbol *a, const struct debuginfo_symbol *b)
{
	if (a->rank != b->rank)
		return (int)a->rank - (int)b->rank;
	if (!a->name || !b->name)
		return (a->name == NULL) - (b->name == NULL);
	size_t ua = leading_underscores(a->name), ub = leading_underscores(b->name);
	if (ua != ub)
		return ua < ub ? -1 : 1;
	size_t la = length_to_compare(a->name), lb = length_to_compare(b->name);
	if (la != lb)
		return la < lb ? -1 : 1;
	la = strlen(a->name);
	lb = strlen(b->name);
	if (la != lb)
		return la > lb ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int symbol_cmp(const void *pa, const void *pb)
{
	const struct debuginfo_symbol *a = pa, *b = pb;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return better(a, b);
}

/* Keeps the best symbol of each address, drops labels inside a sized function, and gives symbols
 * without a size an end. */
static void choose(struct debuginfo_builder *b)
{
	struct debuginfo_symbol *v = b->symbols.v;
	size_t n = 0;
	uint64_t covered = 0; /* by sized functions so far */
	for (size_t i = 0; i < b->symbols.len; i++) {
		if (n && v[n - 1].start == v[i].start)
			continue;
		if (!v[i].typed && v[i].start < covered)
			continue;
		if (v[i].typed && v[i].sized)
			covered = MAX(covered, v[i].end);
		v[n++] = v[i];
	}
	b->symbols.len = n;
	uint64_t next = UINT64_MAX, next_typed = UINT64_MAX;
	for (size_t i = n; i-- > 0;) {
		if (!v[i].sized) {
			const struct debuginfo_span *code = debuginfo_builder_code(b, v[i].start);
			v[i].end = MIN(code->end, v[i].typed ? next_typed : next);
		}
		next = v[i].start;
		if (v[i].typed)
			next_typed = v[i].start;
	}
}

/* Assigns the addresses from *at up to `to` to the innermost symbols of the stack; pops those that
 * end before. */
static bool emit_open(struct debuginfo_builder *b, const struct debuginfo_symbol *sorted,
	uint32_t *stack, size_t *depth, uint64_t *at, uint64_t to)
{
	while (*depth) {
		struct debuginfo_symbol s = sorted[stack[*depth - 1]];
		uint64_t from = MAX(*at, s.start), end = MIN(s.end, to);
		if (from < end) {
			uint64_t whole_end = s.end;
			s.start = from;
			s.end = end;
			if (!VEC_PUSH(&b->symbols, s))
				return false;
			*at = end;
			if (whole_end > to)
				return true;
		} else if (s.end > to) {
			return true;
		}
		--*depth;
	}
	return true;
}

enum status debuginfo_symbols_settle(struct debuginfo_builder *b)
{
	if (b->symbols.len == 0)
		return OK;
	if (b->symbols.len > UINT32_MAX)
		return E_LIMIT;
	qsort(b->symbols.v, b->symbols.len, sizeof(*b->symbols.v), symbol_cmp);
	choose(b);
	__typeof__(b->symbols) in = b->symbols;
	memset(&b->symbols, 0, sizeof(b->symbols));
	CLEANUP(free_cleanup) uint32_t *stack = malloc(in.len * sizeof(*stack));
	size_t depth = 0;
	uint64_t at = 0;
	bool good = stack != NULL;
	for (size_t i = 0; good && i < in.len; i++) {
		good = emit_open(b, in.v, stack, &depth, &at, in.v[i].start);
		stack[depth++] = (uint32_t)i;
		at = MAX(at, in.v[i].start);
	}
	good = good && emit_open(b, in.v, stack, &depth, &at, UINT64_MAX);
	VEC_FREE(&in);
	return good ? OK : E_NOMEM;
}
