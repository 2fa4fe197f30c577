/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is built in two passes over the section. The first makes an index of the functions, pairs
 * of file offset and entry, 16 bytes each; the second goes through them in order of file offset, so
 * that rows come out ascending and go straight into pages: there is never a list of rows. An entry
 * is read twice, which is cheaper than keeping and sorting its rows.
 *
 * Only a little of a large section is in memory, except at the first reading: the memory of a piece
 * is freed once its entries are in the index, the piece is read again from the file for the first
 * of its functions, and freed after the last one. Functions mostly have the order of their entries.
 * The index is freed in the same way while the rows grow. A compressed section cannot be read in
 * pieces, and stays in memory to the end.
 *
 * If two functions claim the same text, the later one has it from its beginning on; of two that
 * begin together, the longer one counts.
 */
#include "unwind/cfi.h"
#include "unwind/code.h"
#include "unwind/golang.h"
#include "unwind/machine.h"
#include "unwind/work.h"

#include "base/hash.h"
#include "base/pages.h"

#include <elf.h>
#include <stdlib.h>

/* CIEs that are kept: CIE_SETS sets of CIE_WAYS. Most files have one or two; .debug_frame has one
 * for each object file, right before its functions. */
#define CIE_SETS 32
#define CIE_WAYS 4
/* Bytes that must be in memory to read a CIE: the longest CIE, or the head of a longer entry. */
#define CIE_READ_BYTES_MAX (CFI_CIE_BYTES_MAX + ENTRY_HEAD_BYTES)
#define ENTRY_HEAD_BYTES 24
/* The work of reading a CIE, besides its bytes. */
#define CIE_WORK 64
/* Compressed sections count as so many times their size in the file, at most. */
#define COMPRESSION_MAX 16
/* Bytes that are read of a function that leaves by __builtin_eh_return; libgcc's are shorter. */
#define CONTEXT_CODE_BYTES_MAX 2048
/* __start_context: its code has 26 bytes or a few more, its call frame information is empty; libc
 * and static programs that have it are smaller. */
#define START_CODE_BYTES_MIN 20
#define START_CODE_BYTES_MAX 128
#define SIGNAL_CODE_BYTES_MAX 16
#define START_CFI_BYTES_MAX 8
#define START_FILE_BYTES_MAX ((uint64_t)4 << 20)
/* Memory for a function while it is sorted. */
#define FUNCTION_BYTES (2 * sizeof(struct function))

/* Sections smaller than this stay in memory to the end. */
#define LARGE_SECTION_BYTES ((size_t)256 << 10)
#define PIECE_BYTES ((size_t)32 << 10)

/* In order of trust. */
enum { EH_FRAME, GO_TABLE, DEBUG_FRAME, SOURCES };

struct function {
	uint64_t begin; /* file offset */
	uint32_t entry; /* offset in the section; GO_TABLE: number of the function */
	uint32_t source;
};

struct kept_cie {
	bool is_there;
	bool is_good; /* false: no CIE is there, or a broken one */
	struct cfi_cie cie;
};

/* PIECE_BYTES of a section. */
struct piece {
	uint32_t uses; /* by functions that have no rows yet */
	bool is_away;
};

/* One section of call frame information. */
struct source {
	struct buf bytes;
	struct cfi_section section;
	struct kept_cie cies[CIE_SETS][CIE_WAYS]; /* the way used last comes first */
	struct piece *pieces;                     /* NULL: the whole section stays in memory */
	bool is_in_file;                          /* not compressed: pieces can be read again */
	uint64_t offset;                          /* there */
};

struct builder {
	const struct objfile *obj;
	struct work work;
	uint64_t memory_left; /* without what the sections take */
	const struct unwind_machine *machine;
	struct code code;
	struct source sources[SOURCES]; /* the one of GO_TABLE stays empty */
	struct golang *golang;          /* NULL: the file is no Go program */
	VEC(struct function) functions;
	size_t functions_left; /* how many at the beginning are freed */
	struct pages *pages;
	uint64_t fde_count;
	uint64_t bad_fdes;
	bool is_code_only; /* no call frame information at all: the code is read */
	bool with_bx;      /* some CFA is found by rbx: every row says where it is */
	/* How reading a part of the file a second time ended. E_INVALID: the file has changed. */
	enum status again;
	struct err again_err;
};

static void builder_cleanup(struct builder **b)
{
	if (!*b)
		return;
	code_deinit(&(*b)->code);
	for (int i = 0; i < SOURCES; i++) {
		buf_deinit(&(*b)->sources[i].bytes);
		free((*b)->sources[i].pieces);
	}
	golang_close((*b)->golang);
	VEC_FREE(&(*b)->functions);
	pages_free((*b)->pages);
	free(*b);
}

static void table_cleanup(struct unwind_table **t)
{
	unwind_table_free(*t);
}

/* ---- the section ---- */

static uint64_t section_address(const struct objfile *obj, const char *name)
{
	const struct objfile_section *s = objfile_section(obj, name);
	return s ? s->addr : 0;
}

static bool has_bytes(const struct objfile_section *s)
{
	return s && s->type != SHT_NOBITS && s->size != 0;
}

/* For a file without section headers: PT_GNU_EH_FRAME leads to .eh_frame, as for the dynamic
 * linker, and the section reaches to its end mark. */
static bool find_by_header(const struct objfile *obj, struct cfi_section *out,
	struct fileoff *out_begin, uint64_t *out_len)
{
	struct objfile_segment hdr;
	uint8_t bytes[32];
	size_t len = sizeof(bytes);
	if (!objfile_program_header(obj, PT_GNU_EH_FRAME, &hdr) || hdr.file_size < len ||
		objfile_read(obj, hdr.offset, bytes, len, NULL) != OK)
		return false;
	struct cfi_section in = { .bytes = str_make(bytes, len), .address = hdr.vaddr };
	in.data_base = hdr.vaddr;
	struct reader r = reader_over(bytes, len);
	uint8_t version = reader_u8(&r);
	uint8_t encoding = reader_u8(&r);
	reader_skip(&r, 2);
	struct vaddr address = { cfi_read_pointer(&in, &r, encoding) };
	if (r.failed || version != 1 || !objfile_fileoff_of(obj, address, out_begin))
		return false;
	uint32_t count;
	const struct objfile_segment *segments = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count; i++) {
		const struct objfile_segment *g = &segments[i];
		if (address.v < g->vaddr || address.v - g->vaddr >= g->file_size)
			continue;
		uint64_t end = MIN(g->offset + g->file_size, objfile_size(obj));
		if (out_begin->v >= end)
			return false;
		*out_len = end - out_begin->v;
		out->address = address.v;
		return true;
	}
	return false;
}

static enum status read_by_header(const struct objfile *obj, struct source *src, struct err *e)
{
	struct fileoff begin;
	uint64_t len;
	if (!find_by_header(obj, &src->section, &begin, &len))
		return OK;
	uint8_t *to = buf_extend(&src->bytes, len);
	if (!to)
		return err_set(e, E_LIMIT, "%s: .eh_frame: %llu bytes", objfile_name(obj),
			(unsigned long long)len);
	src->section.ends_at_zero = true;
	src->is_in_file = true;
	src->offset = begin.v;
	return objfile_read(obj, begin.v, to, len, e);
}

/* Leaves the source empty where the file has no such section. */
static enum status read_source(
	const struct objfile *obj, const char *name, struct source *src, struct err *e)
{
	const struct objfile_section *s = objfile_section(obj, name);
	enum status st = OK;
	src->section.is_eh_frame = strcmp(name, ".eh_frame") == 0;
	if (has_bytes(s)) {
		src->section.address = src->section.is_eh_frame ? s->addr : 0;
		src->is_in_file = !(s->flags & SHF_COMPRESSED);
		src->offset = s->offset;
		st = objfile_read_section(obj, s, &src->bytes, e);
	} else if (src->section.is_eh_frame) {
		st = read_by_header(obj, src, e);
	}
	if (st != OK)
		return st;
	src->section.bytes = buf_view(&src->bytes);
	src->section.text_base = section_address(obj, ".text");
	src->section.data_base = section_address(obj, ".got.plt");
	if (src->section.data_base == 0)
		src->section.data_base = section_address(obj, ".got");
	return OK;
}

/* Reads a section; its bytes count against the limits of work and of memory. */
static enum status add_source(
	struct builder *b, const char *name, struct source *src, struct err *e)
{
	const struct objfile_section *section = objfile_section(b->obj, name);
	buf_init(&src->bytes, MIN(UNWIND_SECTION_BYTES_MAX, b->memory_left));
	enum status s = read_source(b->obj, name, src, e);
	if (s != OK)
		return s;
	uint64_t bytes = src->bytes.len;
	if (has_bytes(section))
		bytes = MIN(bytes / COMPRESSION_MAX, section->size) * COMPRESSION_MAX;
	work_allow(&b->work, bytes);
	b->memory_left -= src->bytes.len;
	if (src->bytes.len >= LARGE_SECTION_BYTES)
		src->pieces = calloc(src->bytes.len / PIECE_BYTES + 2, sizeof(*src->pieces));
	return OK;
}

static size_t piece_len(const struct source *src, size_t i)
{
	size_t begin = i * PIECE_BYTES;
	return begin < src->bytes.len ? MIN(PIECE_BYTES, src->bytes.len - begin) : 0;
}

/* To be called before bytes of the section are read. */
static void need_bytes(struct builder *b, struct source *src, size_t begin, size_t end)
{
	for (size_t i = begin / PIECE_BYTES; src->pieces && i * PIECE_BYTES < end; i++) {
		size_t at = i * PIECE_BYTES, len = piece_len(src, i);
		if (len == 0)
			return;
		if (!src->pieces[i].is_away)
			continue;
		src->pieces[i].is_away = false;
		enum status s = objfile_read(
			b->obj, src->offset + at, src->bytes.data + at, len, &b->again_err);
		if (s != OK)
			b->again = s;
	}
}

static void give_piece_back(struct source *src, size_t i)
{
	src->pieces[i].is_away = src->is_in_file;
	pages_give_back(src->bytes.data + i * PIECE_BYTES, piece_len(src, i));
}

static void keep_all(struct builder *b, struct source *src)
{
	need_bytes(b, src, 0, src->bytes.len);
	free(src->pieces);
	src->pieces = NULL;
}

/* To be called when the index has all entries from `begin` to `end`: frees their pieces. */
static void leave_indexed(struct source *src, size_t begin, size_t end)
{
	for (size_t i = begin / PIECE_BYTES; src->pieces && i < end / PIECE_BYTES; i++) {
		if (src->is_in_file && piece_len(src, i))
			give_piece_back(src, i);
	}
}

/* An entry lies in the piece where it begins, and may end in the next. */
static void use_piece(struct source *src, size_t offset)
{
	if (!src->pieces)
		return;
	src->pieces[offset / PIECE_BYTES].uses++;
	src->pieces[offset / PIECE_BYTES + 1].uses++;
}

static void leave_piece(struct source *src, size_t offset)
{
	size_t first = offset / PIECE_BYTES;
	for (size_t i = first; src->pieces && i <= first + 1; i++) {
		if (--src->pieces[i].uses == 0 && piece_len(src, i))
			give_piece_back(src, i);
	}
}

static enum status no_information(const struct builder *b, struct err *e)
{
	return err_set(e, E_NOTFOUND, "%s: no .eh_frame", objfile_name(b->obj));
}

static enum status read_sources(struct builder *b, struct err *e)
{
	static const char *const names[SOURCES] = {
		[EH_FRAME] = ".eh_frame", [DEBUG_FRAME] = ".debug_frame"
	};
	enum status go = golang_open(b->obj, &b->work, &b->golang, e);
	if (go != OK && go != E_NOTFOUND)
		return go;
	bool is_empty = go == E_NOTFOUND;
	for (int i = 0; i < SOURCES; i++) {
		if (i == GO_TABLE || (i == DEBUG_FRAME && b->golang)) /* it repeats Go's table */
			continue;
		struct source *src = &b->sources[i];
		enum status s = add_source(b, names[i], src, e);
		/* Rather no .debug_frame than no table: .eh_frame has most of the entries. */
		if (s == E_LIMIT && i == DEBUG_FRAME && !is_empty)
			buf_deinit(&src->bytes);
		else if (s != OK)
			return s;
		is_empty = is_empty && src->bytes.len == 0;
	}
	b->is_code_only = is_empty && b->machine->code_rows;
	return is_empty && !b->is_code_only ? no_information(b, e) : OK;
}

/* ---- first pass: the index ---- */

/* NULL: no CIE is there, or a broken one. */
static const struct cfi_cie *find_cie(struct builder *b, struct source *src, size_t offset)
{
	struct kept_cie *set = src->cies[hash_u64(offset) % CIE_SETS];
	/* The CIE's expressions lie in these bytes. */
	need_bytes(b, src, offset, offset + CIE_READ_BYTES_MAX);
	for (size_t way = 0; way < CIE_WAYS; way++) {
		if (!set[way].is_there || set[way].cie.offset != offset)
			continue;
		if (way > 0) {
			struct kept_cie found = set[way];
			memmove(set + 1, set, way * sizeof(*set));
			set[0] = found;
		}
		return set[0].is_good ? &set[0].cie : NULL;
	}
	memmove(set + 1, set, (CIE_WAYS - 1) * sizeof(*set));
	set->is_there = true;
	set->is_good = cfi_read_cie(&src->section, b->machine->registers, offset, &set->cie) == OK;
	set->cie.offset = offset;
	work_add(&b->work, CIE_WORK + (set->is_good ? set->cie.bytes : CFI_CIE_BYTES_MAX));
	return set->is_good ? &set->cie : NULL;
}

static bool read_function(struct builder *b, struct source *src, const struct cfi_entry *entry,
	const struct cfi_cie **out_cie, struct cfi_fde *out)
{
	*out_cie = find_cie(b, src, entry->cie_offset);
	return *out_cie && cfi_read_fde(&src->section, entry, *out_cie, out) == OK;
}

/* Reads an entry for the second time. False: the file was changed meanwhile, and b->again says
 * so. */
static bool reread(struct builder *b, const struct function *f, const struct cfi_cie **out_cie,
	struct cfi_fde *out)
{
	struct source *src = &b->sources[f->source];
	size_t offset = f->entry;
	struct cfi_entry entry;
	bool broken = false;
	work_add(&b->work, WORK_ENTRY);
	need_bytes(b, src, offset, offset + ENTRY_HEAD_BYTES);
	bool good = b->again == OK && cfi_next_entry(&src->section, &offset, &entry, &broken) &&
		    entry.offset == f->entry && !entry.is_cie;
	if (good) {
		need_bytes(b, src, entry.offset, entry.end);
		good = read_function(b, src, &entry, out_cie, out) && b->again == OK;
	}
	if (!good && b->again == OK)
		b->again = err_set(&b->again_err, E_INVALID, "%s: it changes while it is read",
			objfile_name(b->obj));
	return good;
}

static int by_offset(const void *a, const void *b)
{
	const struct function *x = a;
	const struct function *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* Does this function find a CFA by rbx? Bytes that look like it are rare; where they are, the
 * function's rows are made to find out. */
static bool needs_bx(
	struct builder *b, struct source *src, const struct cfi_cie *cie, const struct cfi_fde *fde)
{
	static const char *const forms[] = { "\x0d\x03", "\x0c\x03" }; /* def_cfa(_register) rbx */
	if (!memmem(fde->instructions.p, fde->instructions.len, forms[0], 2) &&
		!memmem(fde->instructions.p, fde->instructions.len, forms[1], 2))
		return false;
	struct cfi_rows rows;
	work_add(&b->work, fde->instructions.len);
	cfi_rows_begin(&rows, &src->section, b->machine->registers, cie, fde);
	while (cfi_rows_next(&rows)) {
		if (b->machine->needs_bx(&rows.state))
			return true;
	}
	return false;
}

static uint64_t length_of(struct builder *b, const struct function *f)
{
	const struct cfi_cie *cie;
	struct cfi_fde fde;
	struct golang_function go;
	if (f->source == GO_TABLE)
		return golang_function(b->golang, f->entry, &go) ? go.end - go.start : 0;
	return reread(b, f, &cie, &fde) ? fde.length : 0;
}

/* Is the offset in a function of the `count` first ones, which are sorted? */
static bool is_covered(struct builder *b, size_t count, uint64_t offset)
{
	size_t from = 0;
	size_t to = count;
	while (from < to) {
		size_t middle = (from + to) / 2;
		if (b->functions.v[middle].begin <= offset)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == 0)
		return false;
	return offset - b->functions.v[from - 1].begin < length_of(b, &b->functions.v[from - 1]);
}

static enum status add_function(
	struct builder *b, uint64_t begin, uint32_t entry, uint32_t source, struct err *e)
{
	if ((b->functions.len + 1) * FUNCTION_BYTES > b->memory_left)
		return err_set(e, E_LIMIT, "%s: %zu functions: no more memory for its unwind table",
			objfile_name(b->obj), b->functions.len);
	if (!VEC_PUSH(&b->functions, (struct function){ begin, entry, source }))
		return err_set(e, E_NOMEM, "%s", objfile_name(b->obj));
	return OK;
}

/* The first `covered` functions, which are sorted, are those of better sources. */
static enum status index_entry(struct builder *b, uint32_t source, const struct cfi_entry *entry,
	size_t covered, struct err *e)
{
	const struct cfi_cie *cie;
	struct cfi_fde fde;
	b->fde_count++;
	if (!read_function(b, &b->sources[source], entry, &cie, &fde) ||
		b->functions.len >= UNWIND_FDES_MAX) {
		b->bad_fdes++;
		return OK;
	}
	/* Functions that the linker dropped have addresses outside of all segments. */
	const struct code_part *segment = code_find(&b->code, fde.start);
	if (!segment || fde.length == 0)
		return OK;
	uint64_t begin = fde.start - segment->vaddr + segment->begin;
	if (is_covered(b, covered, begin))
		return OK;
	struct source *src = &b->sources[source];
	b->with_bx = b->with_bx || needs_bx(b, src, cie, &fde);
	if (entry->end - entry->offset > PIECE_BYTES)
		keep_all(b, src);
	use_piece(src, entry->offset);
	use_piece(src, cie->offset);
	return add_function(b, begin, (uint32_t)entry->offset, source, e);
}

static enum status index_golang(struct builder *b, struct err *e)
{
	size_t covered = b->functions.len;
	uint32_t count = b->golang ? golang_count(b->golang) : 0;
	for (uint32_t i = 0; i < count && work_is_left(&b->work); i++) {
		struct golang_function go;
		b->fde_count++;
		if (!golang_function(b->golang, i, &go) || b->functions.len >= UNWIND_FDES_MAX) {
			b->bad_fdes++;
			continue;
		}
		const struct code_part *segment = code_find(&b->code, go.start);
		if (!segment)
			continue;
		uint64_t begin = go.start - segment->vaddr + segment->begin;
		enum status s =
			is_covered(b, covered, begin) ? OK : add_function(b, begin, i, GO_TABLE, e);
		if (s != OK)
			return s;
	}
	return OK;
}

static void sort_functions(struct builder *b)
{
	bool sorted = true;
	for (size_t i = 1; i < b->functions.len && sorted; i++)
		sorted = by_offset(&b->functions.v[i - 1], &b->functions.v[i]) < 0;
	if (!sorted)
		qsort(b->functions.v, b->functions.len, sizeof(b->functions.v[0]), by_offset);
}

static enum status index_source(struct builder *b, uint32_t source, struct err *e)
{
	size_t offset = 0;
	size_t covered = b->functions.len;
	bool broken = false;
	struct cfi_entry entry;
	if (source == GO_TABLE) {
		enum status s = index_golang(b, e);
		sort_functions(b);
		return s;
	}
	if (b->sources[source].bytes.len == 0)
		return OK;
	while (cfi_next_entry(&b->sources[source].section, &offset, &entry, &broken) &&
		work_add(&b->work, WORK_ENTRY)) {
		enum status s = entry.is_cie ? OK : index_entry(b, source, &entry, covered, e);
		if (s != OK)
			return s;
		leave_indexed(&b->sources[source], entry.offset, offset);
	}
	leave_indexed(&b->sources[source], 0, b->sources[source].bytes.len + PIECE_BYTES);
	b->bad_fdes += broken;
	sort_functions(b);
	return OK;
}

/* OK, unless building has reached a limit or was cancelled and must end here. */
static enum status check_work(const struct builder *b, struct err *e)
{
	if (b->work.is_stopped)
		return err_set(e, E_CANCELED, "%s", objfile_name(b->obj));
	if (b->again != OK)
		return err_set(e, b->again, "%s", b->again_err.text);
	if (work_is_left(&b->work))
		return OK;
	return err_set(e, E_LIMIT, "%s: its unwind table takes more than %llu units of work",
		objfile_name(b->obj), (unsigned long long)b->work.max);
}

static enum status make_index(struct builder *b, struct err *e)
{
	for (uint32_t i = 0; i < SOURCES; i++) {
		enum status s = index_source(b, i, e);
		if (s == OK)
			s = check_work(b, e);
		if (s != OK)
			return s;
	}
	if (b->is_code_only)
		return OK;
	if (b->fde_count == 0 && b->bad_fdes == 0)
		return err_set(e, E_NOTFOUND, "%s: call frame information without an entry",
			objfile_name(b->obj));
	if (b->functions.len == 0)
		return err_set(e, E_INVALID,
			"%s: call frame information without a usable entry (%llu bad)",
			objfile_name(b->obj), (unsigned long long)b->bad_fdes);
	return OK;
}

/* ---- second pass: the rows ---- */

/* libgcc's functions that jump to an exception's handler overwrite their own frame before they
 * leave it. Returns the file offset from which the frame is overwritten, and the rule there.
 * UINT64_MAX: the function does no such thing. */
static uint64_t find_context(struct builder *b, const struct cfi_fde *fde, uint64_t begin,
	uint64_t end, struct unwind_rule *out)
{
	uint8_t code[CONTEXT_CODE_BYTES_MAX];
	size_t len = MIN(end - begin, (uint64_t)sizeof(code));
	size_t from;
	if (!b->machine->is_eh_return || !b->machine->is_eh_return(fde->instructions) ||
		!work_add_read(&b->work, len) ||
		objfile_read(b->obj, begin, code, len, NULL) != OK ||
		!b->machine->find_context(code, len, &from, out))
		return UINT64_MAX;
	return begin + from;
}

/* Whether this rule, at a function's first byte, is the one that a call leaves. */
static bool is_called(const struct unwind_machine *m, const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_SP && rule->cfa_off == m->called_cfa_off;
}

/* Of these kinds all fields but cfa are 0, so that equal rules have equal bytes. */
static bool keeps_zero(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_SIGNAL || rule->cfa == UNWIND_CFA_STOP ||
	       rule->cfa == UNWIND_CFA_UNSUPPORTED;
}

/* Rows of one function: [begin, end) in the file. */
static void put_function(struct builder *b, const struct cfi_section *section,
	const struct cfi_cie *cie, const struct cfi_fde *fde, uint64_t begin, uint64_t end)
{
	if (b->code.entry_is_program && b->code.entry == begin) {
		pages_put(b->pages, begin, (struct unwind_rule){ .cfa = UNWIND_CFA_STOP });
		return;
	}
	struct cfi_rows rows;
	struct unwind_rule context;
	uint8_t no_end = 0;
	uint64_t leaves = find_context(b, fde, begin, end, &context);
	work_add(&b->work, fde->instructions.len);
	cfi_rows_begin(&rows, section, b->machine->registers, cie, fde);
	while (cfi_rows_next(&rows)) {
		uint64_t at = rows.at - fde->start + begin;
		if (at >= end)
			return;
		struct unwind_rule rule = b->machine->rule(&rows.state, cie->is_signal, b->with_bx);
		if (at == begin && !is_called(b->machine, &rule))
			no_end = UNWIND_FP_NO_END;
		rule.fp |= keeps_zero(&rule) ? 0 : no_end;
		pages_put(b->pages, at, rule);
		/* The frame is overwritten up to the next row, where the call frame information is
		 * right again. */
		if (leaves > at && leaves - at < rows.next - rows.at && leaves < end &&
			rule.cfa == UNWIND_CFA_FP)
			pages_put(b->pages, leaves, context);
	}
	uint64_t at = rows.at - fde->start + begin;
	if (rows.failed && at < end)
		pages_put(b->pages, at, (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED });
	b->bad_fdes += rows.failed;
}

/* Of the functions from number i on that begin together, the longest; *out_next is the first that
 * begins later. */
static size_t longest(struct builder *b, size_t i, size_t *out_next)
{
	size_t best = i;
	uint64_t best_length = 0;
	size_t n = i;
	for (; n < b->functions.len && b->functions.v[n].begin == b->functions.v[i].begin; n++) {
		uint64_t length = length_of(b, &b->functions.v[n]);
		if (length > best_length) {
			best = n;
			best_length = length;
		}
	}
	*out_next = n;
	return best;
}

/* Rows for the gap between the last function and the next, which begins at `begin`. */
static void put_gap(struct builder *b, const struct code_part *segment, uint64_t at, uint64_t begin)
{
	if (begin - at > CODE_PADDING_MAX || at == segment->begin)
		code_put_gap(&b->code, at, begin, b->pages);
	if (pages_full(b->pages))
		b->bad_fdes++;
}

/* Puts the rule of a function that is never called, from the byte before it on. */
static void put_returned_to(struct builder *b, uint64_t early, uint64_t begin, enum unwind_cfa cfa)
{
	struct unwind_rule rule = { .cfa = (uint8_t)cfa, .cfa_off = UNWIND_OFF_EARLY };
	pages_put(b->pages, early, rule);
	rule.cfa_off = 0;
	pages_put(b->pages, begin, rule);
}

/* glibc has its signal return's information begin with the byte before it. */
static bool has_early_byte(struct builder *b, uint64_t begin, uint64_t end)
{
	uint8_t code[SIGNAL_CODE_BYTES_MAX];
	size_t found_len, len = MIN(end - begin, (uint64_t)sizeof(code));
	return work_add_read(&b->work, len) && objfile_read(b->obj, begin, code, len, NULL) == OK &&
	       b->machine->find_sigreturn(code, len, &found_len) == 1;
}

enum start { START_NONE, START_CONTEXT, START_THREAD };

/* Finds where a stack begins, in code whose call frame information is empty or wrong: the code to
 * which a new stack of makecontext() returns (glibc's __start_context), and a thread's first
 * function (Zig's clone). Only in files that are not large. */
static enum start find_start(
	struct builder *b, const struct cfi_fde *fde, uint64_t begin, uint64_t end)
{
	uint8_t code[START_CODE_BYTES_MAX];
	size_t len = end - begin;
	if (!b->machine->is_context_start || len > sizeof(code) || len < START_CODE_BYTES_MIN ||
		fde->instructions.len > START_CFI_BYTES_MAX ||
		objfile_size(b->obj) > START_FILE_BYTES_MAX || !work_add_read(&b->work, len) ||
		objfile_read(b->obj, begin, code, len, NULL) != OK)
		return START_NONE;
	if (b->machine->is_context_start(code, len))
		return START_CONTEXT;
	return b->machine->is_thread_start(code, len) ? START_THREAD : START_NONE;
}

/* Puts the rows of function f, up to `limit` at most; the rows before it end at `at`. Returns the
 * function's end. */
static uint64_t put_one(struct builder *b, const struct code_part *segment,
	const struct function *f, uint64_t at, uint64_t limit)
{
	const struct cfi_cie *cie;
	struct cfi_fde fde;
	uint64_t begin = f->begin;
	if (f->source == GO_TABLE) {
		uint64_t end = begin + MIN(length_of(b, f), limit - begin);
		/* Go's functions follow one another without a gap, so the row of the byte before
		 * belongs to the function before. */
		bool is_early = golang_is_signal(b->golang, f->entry) && begin > segment->begin;
		put_gap(b, segment, MIN(at, begin - is_early), begin - is_early);
		if (is_early)
			put_returned_to(b, begin - 1, begin, UNWIND_CFA_SIGNAL);
		b->bad_fdes += !golang_put(b->golang, f->entry, begin, end, b->pages);
		return end;
	}
	if (!reread(b, f, &cie, &fde))
		return begin;
	uint64_t end = begin + MIN(fde.length, limit - begin);
	/* A return into the trampoline is looked up by the byte before it. */
	enum start start = find_start(b, &fde, begin, end);
	bool is_start = start == START_CONTEXT && begin > at;
	uint64_t first = begin;
	if (is_start || (cie->is_signal && begin > at))
		first -= !cie->is_signal || !has_early_byte(b, begin, end);
	put_gap(b, segment, at, first);
	if (is_start)
		put_returned_to(b, first, begin, UNWIND_CFA_STOP);
	else if (cie->is_signal && begin > at)
		put_returned_to(b, first, first + 1, UNWIND_CFA_SIGNAL);
	else if (start == START_THREAD)
		code_put_gap(&b->code, begin, end, b->pages);
	else
		put_function(b, &b->sources[f->source].section, cie, &fde, begin, end);
	leave_piece(&b->sources[f->source], f->entry);
	leave_piece(&b->sources[f->source], cie->offset);
	return end;
}

/* Frees the index of functions that have rows: those before number i, but for the last few, which
 * are still read. */
static void leave_functions(struct builder *b, size_t i)
{
	size_t count = PIECE_BYTES / sizeof(b->functions.v[0]);
	while (i - b->functions_left > count) {
		pages_give_back(b->functions.v + b->functions_left, PIECE_BYTES);
		b->functions_left += count;
	}
}

/* Puts the rows of one segment's functions, from number i on; returns the first function behind the
 * segment. */
static size_t put_segment(struct builder *b, const struct code_part *segment, size_t i)
{
	uint64_t at = segment->begin;
	while (i < b->functions.len && b->functions.v[i].begin < segment->end &&
		work_is_left(&b->work) && b->again == OK) {
		uint64_t begin = b->functions.v[i].begin;
		size_t next = i + 1;
		if (next < b->functions.len && b->functions.v[next].begin == begin)
			i = longest(b, i, &next);
		const struct function *f = &b->functions.v[i];
		i = next;
		uint64_t limit = i < b->functions.len ? b->functions.v[i].begin : segment->end;
		at = put_one(b, segment, f, at, MIN(limit, segment->end));
		leave_functions(b, i);
	}
	code_put_gap(&b->code, at, segment->end, b->pages);
	pages_put(b->pages, segment->end, (struct unwind_rule){ .cfa = UNWIND_CFA_NONE });
	return i;
}

static enum status make_table(
	struct builder *b, uint64_t table_bytes_max, struct unwind_table **out, struct err *e)
{
	b->memory_left -= b->functions.len * FUNCTION_BYTES;
	uint64_t most = MIN(b->memory_left, table_bytes_max);
	b->pages = pages_new(most);
	CLEANUP(table_cleanup) struct unwind_table *t = calloc(1, sizeof(*t));
	if (!b->pages || !t)
		return err_set(e, E_NOMEM, "%s", objfile_name(b->obj));
	size_t next = 0;
	for (size_t i = 0; i < b->code.segments.len; i++)
		next = put_segment(b, &b->code.segments.v[i], next);
	enum status s = check_work(b, e);
	if (s != OK)
		return s;
	assert(next == b->functions.len);
	s = pages_finish(b->pages, t);
	if (s != OK)
		return err_set(e, s, "%s: its unwind table: more than %llu bytes",
			objfile_name(b->obj), (unsigned long long)most);
	if (b->is_code_only && t->blob_bytes == 0)
		return no_information(b, e);
	t->fde_count = b->fde_count;
	t->bad_fdes = b->bad_fdes;
	*out = STEAL_PTR(t);
	return OK;
}

static enum status build(struct builder *b, const struct unwind_build *limits,
	struct unwind_table **out, struct err *e)
{
	enum status s = code_init(&b->code, b->obj, &b->work, e);
	if (s == OK)
		s = read_sources(b, e);
	if (s == OK)
		s = make_index(b, e);
	uint64_t most = limits->table_bytes_max ? limits->table_bytes_max : UINT64_MAX;
	if (s == OK)
		s = make_table(b, most, out, e);
	return s;
}

enum status unwind_table_build_within(struct unwind_build *limits, const struct objfile *obj,
	struct unwind_table **out, struct err *e)
{
	const struct unwind_machine *machine = machine_find(objfile_machine(obj));
	limits->work = 0;
	if (!machine)
		return err_set(e, E_UNSUPPORTED,
			"%s: machine %u: only x86-64 and arm64 are unwound", objfile_name(obj),
			objfile_machine(obj));
	CLEANUP(builder_cleanup) struct builder *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, E_NOMEM, "%s", objfile_name(obj));
	b->obj = obj;
	b->machine = machine;
	b->memory_left =
		limits->memory_bytes_max ? limits->memory_bytes_max : UNWIND_BUILD_BYTES_MAX;
	work_init(&b->work, limits->pause, limits->pause_ctx);
	enum status s = build(b, limits, out, e);
	limits->work = b->work.done;
	return s;
}

enum status unwind_table_build(const struct objfile *obj, struct unwind_table **out, struct err *e)
{
	struct unwind_build limits = { 0 };
	return unwind_table_build_within(&limits, obj, out, e);
}
