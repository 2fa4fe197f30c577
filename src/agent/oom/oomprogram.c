/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From 1.21 on Go's runtime records an address for each inlined call, too: behind that of the call
 * itself those of marks in the same function, none of them twice. So of addresses that follow one
 * another in one function the first stands for all, until one comes again: then the function has
 * called itself. (What calls itself at several places may be shown less deep than it was.)
 *
 * Source: Go, src/runtime/traceback.go (tracebackPCs), src/runtime/pprof/protomem.go.
 */
#include "agent/oom/oomprogram.h"

#include "base/reader.h"
#include "base/vec.h"

#include <elf.h>
#include <stdlib.h>

#define NO_FUNCTION UINT32_MAX

struct symbols {
	struct buf table;
	struct buf names;
	VEC(uint32_t) functions;
};

static void symbols_cleanup(struct symbols *s)
{
	buf_deinit(&s->table);
	buf_deinit(&s->names);
	VEC_FREE(&s->functions);
}

static bool is_go(const struct objfile *obj)
{
	return objfile_section(obj, ".go.buildinfo") || objfile_section(obj, ".gopclntab") ||
	       objfile_section(obj, ".data.rel.ro.gopclntab");
}

static enum status read_segments(const struct objfile *obj, struct oomprogram *p, struct err *e)
{
	uint32_t count;
	const struct objfile_segment *s = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (!(s[i].flags & PF_X))
			continue;
		p->first_offset = s[0].offset;
		p->first_vaddr = s[0].vaddr;
		p->code_offset = s[i].offset;
		p->code_vaddr = s[i].vaddr;
		p->code_bytes = s[i].mem_size;
		return OK;
	}
	return err_set(e, E_INVALID, "%s: no segment has code", objfile_name(obj));
}

static struct str name_at(const struct symbols *s, uint32_t at)
{
	struct reader r = reader_over(s->names.data, s->names.len);
	reader_seek(&r, at);
	struct str name = reader_cstr(&r);
	return r.failed ? STR("") : name;
}

/* The same rule as in Go's own profiles. */
static bool is_runtime(struct str name)
{
	return str_starts(name, STR("runtime.")) || str_starts(name, STR("internal/runtime/"));
}

static enum status take_symbol(
	struct symbols *all, const Elf64_Sym *s, struct oomprogram *p, struct err *e)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	struct str name = name_at(all, s->st_name);
	if (type == STT_OBJECT && str_eq(name, STR("runtime.mbuckets")))
		p->buckets = s->st_value;
	if (type == STT_OBJECT && str_eq(name, STR("runtime.MemProfileRate")))
		p->rate = s->st_value;
	uint64_t at = s->st_value - p->code_vaddr;
	if (type != STT_FUNC || at >= p->code_bytes || at > UINT32_MAX / 2)
		return OK;
	if (all->functions.len >= OOMPROGRAM_FUNCTIONS_MAX)
		return err_set(e, E_LIMIT, "more than %u functions", OOMPROGRAM_FUNCTIONS_MAX);
	if (!VEC_PUSH(&all->functions, (uint32_t)at << 1 | is_runtime(name)))
		return err_set(e, E_NOMEM, "functions");
	return OK;
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static enum status keep_functions(struct symbols *s, struct oomprogram *p, struct err *e)
{
	if (s->functions.len == 0)
		return OK;
	qsort(s->functions.v, s->functions.len, sizeof(uint32_t), compare);
	p->functions = malloc(s->functions.len * sizeof(uint32_t));
	if (!p->functions)
		return err_set(e, E_NOMEM, "functions");
	for (size_t i = 0; i < s->functions.len; i++) {
		/* Several names of one place are one function. */
		uint32_t x = s->functions.v[i];
		if (p->function_count && p->functions[p->function_count - 1] >> 1 == x >> 1)
			p->functions[p->function_count - 1] |= x & 1;
		else
			p->functions[p->function_count++] = x;
	}
	return OK;
}

static enum status read_symbols(const struct objfile *obj, struct oomprogram *p, struct err *e)
{
	const struct objfile_section *table = objfile_section(obj, ".symtab");
	uint32_t count;
	const struct objfile_section *sections = objfile_sections(obj, &count);
	if (!table || table->type != SHT_SYMTAB)
		return OK; /* it is stripped */
	if (table->link >= count)
		return err_set(e, E_INVALID, "%s: .symtab has its names in section %u of %u",
			objfile_name(obj), table->link, count);
	CLEANUP(symbols_cleanup) struct symbols s = { 0 };
	buf_init(&s.table, OOMPROGRAM_SYMBOLS_BYTES_MAX);
	buf_init(&s.names, OOMPROGRAM_SYMBOLS_BYTES_MAX);
	enum status st = objfile_read_section(obj, table, &s.table, e);
	if (st == OK)
		st = objfile_read_section(obj, &sections[table->link], &s.names, e);
	struct reader r = reader_over(s.table.data, s.table.len);
	while (st == OK && reader_left(&r) >= sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, reader_bytes(&r, sizeof(symbol)), sizeof(symbol));
		st = take_symbol(&s, &symbol, p, e);
	}
	return st == OK ? keep_functions(&s, p, e) : st;
}

enum status oomprogram_read(const struct objfile *obj, struct oomprogram *out, struct err *e)
{
	struct oomprogram p = { 0 };
	if (!is_go(obj))
		return err_set(e, E_NOTFOUND, "%s: no Go program", objfile_name(obj));
	enum status s = read_segments(obj, &p, e);
	if (s == OK)
		s = read_symbols(obj, &p, e);
	if (s != OK) {
		oomprogram_deinit(&p);
		return s;
	}
	*out = p;
	return OK;
}

void oomprogram_deinit(struct oomprogram *p)
{
	free(p->functions);
	p->functions = NULL;
	p->function_count = 0;
}

bool oomprogram_has(const struct oomprogram *p, uint64_t vaddr)
{
	return vaddr - p->code_vaddr < p->code_bytes;
}

/* The function that an address lies in. */
static uint32_t function_of(const struct oomprogram *p, uint64_t vaddr)
{
	uint64_t at = vaddr - p->code_vaddr;
	if (!oomprogram_has(p, vaddr))
		return NO_FUNCTION;
	uint32_t low = 0, high = p->function_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (p->functions[middle] >> 1 <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : NO_FUNCTION;
}

static bool is_in_runtime(const struct oomprogram *p, uint64_t vaddr)
{
	uint32_t f = function_of(p, vaddr);
	return f != NO_FUNCTION && (p->functions[f] & 1);
}

static uint32_t hide_runtime(const struct oomprogram *p, uint64_t *stack, uint32_t count)
{
	uint32_t first = 0;
	while (first < count && is_in_runtime(p, stack[first]))
		first++;
	if (first == 0 || first == count)
		return count;
	memmove(stack, stack + first, (count - first) * sizeof(*stack));
	return count - first;
}

static bool occurs(const uint64_t *stack, uint32_t first, uint32_t end, uint64_t address)
{
	for (uint32_t i = first; i < end; i++)
		if (stack[i] == address)
			return true;
	return false;
}

uint32_t oomprogram_frames(
	const struct oomprogram *p, uint64_t bias, uint64_t *stack, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (oomprogram_has(p, stack[i] - 1 - bias))
			stack[i] -= 1 + bias;
	count = hide_runtime(p, stack, count);
	uint32_t kept = 0, last = NO_FUNCTION;
	/* Frames are read ahead of the place that is written, so none is lost before it is read. */
	for (uint32_t i = 0, group = 0; i < count; i++) {
		uint32_t f = function_of(p, stack[i]);
		bool is_inlined =
			f != NO_FUNCTION && f == last && !occurs(stack, group, i, stack[i]);
		last = f;
		if (is_inlined)
			continue;
		group = i;
		stack[kept++] = stack[i];
	}
	return kept;
}
