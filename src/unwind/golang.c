/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function has a pc table that says how far sp is below the return address: pairs of varints
 * (zigzag of what is added to the value, pc / quantum), which begins with -1 and ends with a value
 * of 0. A function with a frame saves rbp right below the return address.
 *
 * The table does not describe these functions. They are recognized by their names, and their code
 * is looked at to see where the rule begins:
 *
 *   systemstack, asmcgocall  sp is on another stack during their call. From Go 1.21 on rbp is
 *                            still their own; before, it is their caller's, and they are left out
 *   time.now, nanotime1,     the same during their call of the vDSO, and rbp is their own in
 *   vgetrandom1              every version
 *   morestack                sp is on another stack, and rbp does not lead back: the goroutine's
 *                            registers are in its g
 *   gogo                     goes to another goroutine; behind the switch it has no caller
 *   sigreturn                a signal frame
 *   of flag "top frame"      goexit, mstart, rt0_go, which have no caller
 *
 * The file is read through windows, since the tables of a large program are tens of megabytes.
 */
#include "unwind/golang.h"

#include "base/reader.h"

#include <elf.h>
#include <stdlib.h>

#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1
#define FUNCTIONS_MAX (1u << 24)
#define WINDOW_BYTES 65536
/* Bytes that are read at a place that does not follow the last one. */
#define JUMP_BYTES 4096
#define WORK_STEP 2 /* of a pc table */
#define NAME_BYTES_MAX 64
#define FLAG_TOP_FRAME 1
#define HEADER_BYTES 72
#define ENTRY_BYTES 8 /* of the function table */
/* Words of the runtime's moduledata: pcHeader, the names, six slices, findfunctab, minpc, maxpc,
 * text. */
#define MODULE_NAMES 8
#define MODULE_TEXT (22 * 8)
#define MODULE_SEARCH_BYTES_MAX ((uint64_t)256 << 20)
/* A function that calls the vDSO makes its frame within these bytes. */
#define PROLOGUE_BYTES 32

struct window {
	uint64_t begin; /* file offset */
	size_t len;
	uint8_t bytes[WINDOW_BYTES];
};

struct golang {
	const struct objfile *obj;
	struct work *work;
	uint64_t section; /* file offset of the table */
	uint64_t section_bytes;
	uint64_t section_vaddr;
	uint32_t magic;
	uint32_t quantum;
	uint64_t count;
	uint64_t text;
	uint64_t names, pcs, functions; /* offsets in the table */
	int16_t curg_off;               /* of m.curg; 0: not found */
	struct window entries_window, functions_window, pcs_window, names_window;
};

enum kind { PLAIN, SWITCH, VDSO_CALL, MORESTACK, GOGO, SIGNAL, TOP };

/* ---- the file ---- */

static bool window_fill(
	struct window *w, const struct objfile *obj, uint64_t at, uint64_t end, size_t most)
{
	size_t len = MIN(end - at, (uint64_t)most);
	w->len = 0;
	if (objfile_read(obj, at, w->bytes, len, NULL) != OK)
		return false;
	w->begin = at;
	w->len = len;
	return true;
}

/* A reader over up to `len` bytes at an offset of the table: fewer at its end. */
static struct reader table_at(struct golang *g, struct window *w, uint64_t offset, size_t len)
{
	struct reader r = { .failed = true };
	if (offset >= g->section_bytes)
		return r;
	len = MIN(len, g->section_bytes - offset);
	uint64_t at = g->section + offset;
	uint64_t skipped = at - w->begin;
	bool goes_on = at >= w->begin && skipped <= w->len;
	bool is_there = goes_on && len <= w->len - skipped;
	size_t most = goes_on ? WINDOW_BYTES : JUMP_BYTES;
	if (!is_there && (!work_add_read(g->work, most) ||
				 !window_fill(w, g->obj, at, g->section + g->section_bytes, most)))
		return r;
	return reader_over(w->bytes + (at - w->begin), len);
}

/* ---- where the text begins ---- */

/* Where the text begins: the header says it up to Go 1.25, the runtime's moduledata always. The
 * moduledata is found by its first two words, which point to the header and to the names. */
static bool find_in_data(struct golang *g, const struct objfile_section *s, struct window *w)
{
	uint64_t end = s->offset + s->size;
	uint64_t names = g->section_vaddr + g->names;
	for (uint64_t at = s->offset; at + MODULE_TEXT + 8 <= end;) {
		if (!window_fill(w, g->obj, at, end, WINDOW_BYTES))
			return false;
		size_t i = 0;
		for (; i + MODULE_TEXT + 8 <= w->len; i += 8) {
			uint64_t words[2], text;
			memcpy(words, w->bytes + i, sizeof(words));
			if (words[0] != g->section_vaddr || words[1] != names)
				continue;
			memcpy(&text, w->bytes + i + MODULE_TEXT, sizeof(text));
			g->text = text;
			return text != 0;
		}
		at += MAX(i, (size_t)8);
	}
	return false;
}

/* A position independent program has its pointers in relocations, sorted by address. */
static bool find_in_relocations(struct golang *g, const struct objfile_section *s, struct window *w)
{
	uint64_t end = s->offset + s->size;
	uint64_t module = 0;
	bool has_names = false;
	for (uint64_t at = s->offset; at + sizeof(Elf64_Rela) <= end;) {
		if (!window_fill(w, g->obj, at, end, WINDOW_BYTES))
			return false;
		size_t i = 0;
		for (; i + sizeof(Elf64_Rela) <= w->len; i += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, w->bytes + i, sizeof(r));
			uint64_t to = (uint64_t)r.r_addend;
			if (to == g->section_vaddr) {
				module = r.r_offset;
				has_names = false;
			} else if (module && r.r_offset == module + MODULE_NAMES) {
				has_names = to == g->section_vaddr + g->names;
			} else if (has_names && r.r_offset == module + MODULE_TEXT) {
				g->text = to;
				return to != 0;
			}
		}
		at += i;
	}
	return false;
}

static void find_text(struct golang *g)
{
	uint32_t count;
	const struct objfile_section *sections = objfile_sections(g->obj, &count);
	uint64_t searched = 0;
	uint64_t size = objfile_size(g->obj);
	for (uint32_t i = 0; i < count; i++) {
		const struct objfile_section *s = &sections[i];
		bool is_data = s->type == SHT_PROGBITS && s->flags & SHF_WRITE;
		if ((!is_data && s->type != SHT_RELA) ||
			s->size > MODULE_SEARCH_BYTES_MAX - searched || s->offset > size ||
			s->size > size - s->offset)
			continue;
		searched += s->size;
		struct window *w = &g->names_window;
		if (is_data ? find_in_data(g, s, w) : find_in_relocations(g, s, w))
			break;
	}
	g->names_window.len = 0;
}

/* ---- functions ---- */

static bool read_header(struct golang *g)
{
	struct reader r = table_at(g, &g->entries_window, 0, HEADER_BYTES);
	g->magic = reader_u32(&r);
	uint16_t zero = reader_u16(&r);
	g->quantum = reader_u8(&r);
	uint8_t pointer = reader_u8(&r);
	if (r.failed || (g->magic != MAGIC_1_18 && g->magic != MAGIC_1_20) || zero != 0 ||
		pointer != 8 || g->quantum == 0)
		return false;
	g->count = reader_u64(&r);
	reader_u64(&r); /* files */
	g->text = reader_u64(&r);
	g->names = reader_u64(&r);
	reader_skip(&r, 16); /* units, files */
	g->pcs = reader_u64(&r);
	g->functions = reader_u64(&r);
	if (r.failed || g->count > FUNCTIONS_MAX || g->names > g->section_bytes ||
		g->pcs > g->section_bytes || g->functions > g->section_bytes ||
		g->count > (g->section_bytes - g->functions) / ENTRY_BYTES)
		return false;
	find_text(g);
	return g->text != 0;
}

/* Entry number `index` of the function table. */
static bool read_entry(struct golang *g, uint32_t index, uint64_t *out_start, uint64_t *out_end,
	uint32_t *out_offset)
{
	uint64_t at = g->functions + (uint64_t)index * ENTRY_BYTES;
	struct reader r = { .failed = true };
	if (work_add(g->work, WORK_ENTRY))
		r = table_at(g, &g->entries_window, at, ENTRY_BYTES + 4);
	*out_start = g->text + reader_u32(&r);
	*out_offset = reader_u32(&r);
	*out_end = g->text + reader_u32(&r);
	return !r.failed && *out_end > *out_start;
}

bool golang_function(struct golang *g, uint32_t index, struct golang_function *out)
{
	uint32_t offset;
	return read_entry(g, index, &out->start, &out->end, &offset);
}

static bool is_named(struct str name, const char *wanted)
{
	struct str abi0 = STR(".abi0");
	if (str_ends(name, abi0))
		name.len -= abi0.len;
	return str_eq(name, str_of(wanted));
}

/* clang-format off */
static const struct { const char *name; enum kind kind; } special[] = {
	{ "runtime.systemstack", SWITCH },
	{ "runtime.asmcgocall", SWITCH },
	{ "time.now", VDSO_CALL },
	{ "runtime.nanotime1", VDSO_CALL },
	{ "runtime.vgetrandom1", VDSO_CALL },
	{ "runtime.morestack", MORESTACK },
	{ "gogo", GOGO },
	{ "runtime.gogo", GOGO },
	{ "runtime.mcall", TOP },
	{ "runtime.sigtramp", PLAIN }, /* no top frame: it returns to sigreturn */
	{ "runtime.sigreturn__sigaction", SIGNAL },
	{ "runtime.sigreturn", SIGNAL },
};
/* clang-format on */

/* The kind of a function, and its table of sp. */
static bool read_function(
	struct golang *g, uint32_t offset, enum kind *out_kind, uint32_t *out_pcsp)
{
	struct reader r = table_at(g, &g->functions_window, g->functions + offset, 44);
	reader_skip(&r, 4); /* entry */
	uint32_t name_at = reader_u32(&r);
	reader_skip(&r, 8); /* args, deferreturn */
	*out_pcsp = reader_u32(&r);
	reader_skip(&r, 16); /* pcfile, pcln, npcdata, unit */
	if (g->magic == MAGIC_1_20)
		reader_skip(&r, 4); /* start line */
	uint8_t id = reader_u8(&r);
	uint8_t flag = reader_u8(&r);
	if (r.failed)
		return false;
	*out_kind = flag & FLAG_TOP_FRAME ? TOP : PLAIN;
	if (id == 0 && flag == 0)
		return true;
	struct reader names = table_at(g, &g->names_window, g->names + name_at, NAME_BYTES_MAX);
	struct str name = reader_cstr(&names); /* a longer one is none of these */
	for (size_t i = 0; i < ARRAY_COUNT(special); i++) {
		if (is_named(name, special[i].name))
			*out_kind = special[i].kind;
	}
	return true;
}

/* ---- rows ---- */

static struct unwind_rule rule_of(int64_t below)
{
	int64_t cfa = below + 8;
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP, .ra_off = -8 };
	if (below < 0 || cfa / 8 > (int64_t)INT16_MAX << 16 || (cfa > INT16_MAX && cfa % 8 != 0))
		return (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED };
	if (cfa > INT16_MAX) {
		rule.cfa = UNWIND_CFA_SP_WORDS;
		rule.ra_off = (int16_t)(cfa / 8 >> 16);
		cfa = (uint16_t)(cfa / 8);
	}
	rule.cfa_off = (int16_t)(uint16_t)cfa;
	rule.fp = below > 0 ? UNWIND_FP_SAVED : UNWIND_FP_SAME;
	rule.fp_off = below > 0 ? -16 : 0;
	return rule;
}

static const struct unwind_rule by_frame_pointer = {
	.cfa = UNWIND_CFA_SWITCH,
	.fp = UNWIND_FP_SAVED,
	.cfa_off = 16,
	.fp_off = -16,
};

/* The offset in the code from which rbp belongs to the function's own frame. UINT64_MAX: it has
 * none. */
static uint64_t frame_at(const uint8_t *code, size_t len)
{
	static const uint8_t push[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push %rbp; mov %rsp, %rbp */
	static const uint8_t lea[] = { 0x48, 0x8d, 0x6c, 0x24 };  /* lea N(%rsp), %rbp */
	if (len >= sizeof(push) && memcmp(code, push, sizeof(push)) == 0)
		return sizeof(push);
	const uint8_t *at = memmem(code, MIN(len, (size_t)PROLOGUE_BYTES), lea, sizeof(lea));
	return at ? (uint64_t)(at - code) + sizeof(lea) + 1 : UINT64_MAX;
}

/* The offset in the code of systemstack or asmcgocall from which rbp must be used. UINT64_MAX: it
 * is not found. */
static uint64_t switch_at(const uint8_t *code, size_t len)
{
	/* clang-format off */
	static const struct { uint8_t bytes[7]; uint8_t len; } forms[] = {
		{ { 0x48, 0x8b, 0x62, 0x38 }, 4 }, /* mov 0x38(%rdx), %rsp: g.sched.sp */
		{ { 0x48, 0x8b, 0x66, 0x38 }, 4 }, /* mov 0x38(%rsi), %rsp */
		/* mov 0x38(%rdx), %rbx; mov %rbx, %rsp: up to Go 1.20 */
		{ { 0x48, 0x8b, 0x5a, 0x38, 0x48, 0x89, 0xdc }, 7 },
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
		const uint8_t *at = memmem(code, len, forms[i].bytes, forms[i].len);
		if (at)
			return (uint64_t)(at - code) + forms[i].len;
	}
	return UINT64_MAX;
}

/* systemstack compares g with m.curg: cmp DISP(%rbx), %rax, of 32 bits. */
static void find_curg(struct golang *g, const uint8_t *code, size_t len)
{
	static const uint8_t forms[][3] = { { 0x48, 0x3b, 0x83 }, { 0x48, 0x39, 0x83 } };
	for (size_t i = 0; i < ARRAY_COUNT(forms) && g->curg_off == 0; i++) {
		const uint8_t *at = memmem(code, len, forms[i], sizeof(forms[i]));
		uint32_t displacement;
		if (!at || (size_t)(code + len - at) < 7)
			continue;
		memcpy(&displacement, at + 3, sizeof(displacement));
		if (displacement <= INT16_MAX)
			g->curg_off = (int16_t)displacement;
	}
}

/* morestack: once sp is on another stack (mov 0x38(%rbx), %rsp), the goroutine is found in
 * m.curg. */
static void put_morestack(struct golang *g, const uint8_t *code, size_t len, uint64_t begin,
	uint64_t end, struct pages *out)
{
	static const uint8_t switch_form[] = { 0x48, 0x8b, 0x63, 0x38 };
	static const uint8_t save_form[] = { 0x48, 0x89,
		0x6f }; /* mov %rbp, DISP(%rdi): gobuf.bp */
	const uint8_t *at = memmem(code, len, switch_form, sizeof(switch_form));
	const uint8_t *save = memmem(code, len, save_form, sizeof(save_form));
	struct unwind_rule rule = { .cfa = UNWIND_CFA_STOP };
	if (at && save && (size_t)(code + len - save) > 3 && g->curg_off)
		rule = (struct unwind_rule){
			.cfa = UNWIND_CFA_GO_MORESTACK, .cfa_off = g->curg_off, .fp_off = save[3]
		};
	uint64_t from = at ? begin + (uint64_t)(at - code) + sizeof(switch_form) : begin;
	pages_put(out, begin, rule_of(0));
	if (from < end)
		pages_put(out, from, rule);
}

/* gogo: mov (%rbx), %rsp switches stacks; then the function jumps to where the goroutine goes
 * on. */
static void put_gogo(
	const uint8_t *code, size_t len, uint64_t begin, uint64_t end, struct pages *out)
{
	static const uint8_t switch_form[] = { 0x48, 0x8b, 0x23 };
	const uint8_t *at = memmem(code, len, switch_form, sizeof(switch_form));
	uint64_t from = at ? begin + (uint64_t)(at - code) + sizeof(switch_form) : end;
	pages_put(out, begin, rule_of(0));
	if (from < end)
		pages_put(out, from, (struct unwind_rule){ .cfa = UNWIND_CFA_STOP });
}

struct walk { /* of a pc table: `value` holds up to `end`, relative to the function */
	uint64_t offset;
	int64_t value;
	uint64_t end;
	bool first;
};

/* False: the table has ended, or is broken (*broken). */
static bool walk_next(struct golang *g, struct walk *w, bool *broken)
{
	struct reader r = table_at(g, &g->pcs_window, w->offset, 20);
	uint64_t delta = reader_varint(&r);
	if (!r.failed && delta == 0 && !w->first)
		return false;
	uint64_t pc = reader_varint(&r);
	if (r.failed || pc > UINT32_MAX || !work_add(g->work, WORK_STEP)) {
		*broken = true;
		return false;
	}
	w->offset += reader_offset(&r);
	w->first = false;
	w->value = (int64_t)((uint64_t)w->value + ((delta >> 1) ^ -(delta & 1)));
	w->end += pc * g->quantum;
	return true;
}

/* Where rbp must be used in a function that switches stacks: from `from` on, while the function has
 * a frame; in one without a frame, to its end. */
struct by_rbp {
	uint64_t from; /* UINT64_MAX: nowhere */
	bool has_frame;
};

static bool put_table(struct golang *g, uint32_t pcsp, uint64_t begin, uint64_t end,
	const struct by_rbp *by_rbp, struct pages *out)
{
	struct walk w = { .offset = g->pcs + pcsp, .value = -1, .first = true };
	uint64_t at = 0;
	bool broken = false;
	while (begin + at < end && walk_next(g, &w, &broken)) {
		struct unwind_rule rule = rule_of(w.value);
		bool is_switched = by_rbp->from < w.end && (!by_rbp->has_frame || w.value > 0);
		uint64_t from = is_switched ? MAX(at, by_rbp->from) : w.end;
		if (from > at)
			pages_put(out, begin + at, rule);
		if (from < w.end && begin + from < end)
			pages_put(out, begin + from, by_frame_pointer);
		at = MAX(at, w.end);
	}
	if (broken || begin + at < end)
		pages_put(out, begin + at, (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED });
	return !broken;
}

bool golang_is_signal(struct golang *g, uint32_t index)
{
	uint64_t start, stop;
	uint32_t offset, pcsp;
	enum kind kind;
	return read_entry(g, index, &start, &stop, &offset) &&
	       read_function(g, offset, &kind, &pcsp) && kind == SIGNAL;
}

bool golang_put(struct golang *g, uint32_t index, uint64_t begin, uint64_t end, struct pages *out)
{
	uint64_t start, stop;
	uint32_t offset, pcsp;
	enum kind kind;
	if (!read_entry(g, index, &start, &stop, &offset) ||
		!read_function(g, offset, &kind, &pcsp)) {
		pages_put(out, begin, (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED });
		return false;
	}
	if (kind == TOP || kind == SIGNAL) {
		pages_put(out, begin,
			(struct unwind_rule){
				.cfa = kind == TOP ? UNWIND_CFA_STOP : UNWIND_CFA_SIGNAL });
		return true;
	}
	uint8_t code[GOLANG_CODE_BYTES_MAX];
	size_t len = MIN(end - begin, (uint64_t)sizeof(code));
	struct by_rbp by_rbp = { UINT64_MAX, false };
	bool has_code = kind != PLAIN && work_add_read(g->work, len) &&
			objfile_read(g->obj, begin, code, len, NULL) == OK;
	if (kind == MORESTACK && has_code) {
		put_morestack(g, code, len, begin, end, out);
		return true;
	}
	if (kind == GOGO && has_code) {
		put_gogo(code, len, begin, end, out);
		return true;
	}
	if (has_code) {
		by_rbp.from = frame_at(code, len);
		by_rbp.has_frame = by_rbp.from != UINT64_MAX;
		if (!by_rbp.has_frame && kind == SWITCH)
			by_rbp.from = switch_at(code, len);
	}
	return put_table(g, pcsp, begin, end, &by_rbp, out);
}

/* ---- life ---- */

/* morestack's rule needs the offset of m.curg, which is in the code of systemstack; that may lie
 * anywhere in the file. */
static void find_systemstack(struct golang *g)
{
	for (uint32_t i = 0; i < g->count && g->curg_off == 0 && work_is_left(g->work); i++) {
		uint64_t start, end;
		uint32_t offset, pcsp;
		enum kind kind = PLAIN;
		struct fileoff at;
		uint8_t code[GOLANG_CODE_BYTES_MAX];
		if (!read_entry(g, i, &start, &end, &offset) ||
			!read_function(g, offset, &kind, &pcsp) || kind != SWITCH ||
			!objfile_fileoff_of(g->obj, (struct vaddr){ start }, &at))
			continue;
		size_t len = MIN(end - start, (uint64_t)sizeof(code));
		if (work_add_read(g->work, len) &&
			objfile_read(g->obj, at.v, code, len, NULL) == OK)
			find_curg(g, code, len);
	}
}

enum status golang_open(
	const struct objfile *obj, struct work *work, struct golang **out, struct err *e)
{
	const struct objfile_section *s = objfile_section(obj, ".gopclntab");
	if (!s)
		s = objfile_section(obj, ".data.rel.ro.gopclntab");
	uint64_t size = objfile_size(obj);
	if (!s || s->type == SHT_NOBITS || s->offset >= size || objfile_machine(obj) != EM_X86_64)
		return E_NOTFOUND;
	struct golang *g = calloc(1, sizeof(*g));
	if (!g)
		return err_set(e, E_NOMEM, "%s: .gopclntab", objfile_name(obj));
	g->obj = obj;
	g->work = work;
	g->section = s->offset;
	g->section_bytes = MIN(s->size, size - s->offset);
	work_allow(work, g->section_bytes);
	g->section_vaddr = s->addr;
	if (!read_header(g)) {
		golang_close(g);
		return E_NOTFOUND;
	}
	find_systemstack(g);
	*out = g;
	return OK;
}

void golang_close(struct golang *g)
{
	free(g);
}

uint32_t golang_count(const struct golang *g)
{
	return (uint32_t)g->count;
}
