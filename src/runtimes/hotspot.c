/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot describes itself to its serviceability agent: gHotSpotVMStructs is an array of fields
 * (type, name, offset, or the address of a static one), gHotSpotVMTypes one of types with their
 * sizes. Their pointers are relocations, so these are read first; addends that a linker has packed
 * (RELR) stand in place.
 *
 * Addresses of static fields are in every file. Offsets are there only in some builds (11, 26); the
 * others set them when they start, by instructions that all have one form (movq $offset,
 * distance(%rip)), since the compiler knew the values. So the code is searched for instructions
 * that write to the array.
 *
 * The file is not trusted: each offset must lie in the bytes that the walk reads.
 *
 * Source: OpenJDK, src/hotspot/share/runtime/vmStructs.{hpp,cpp}; code/codeBlob.hpp, nmethod.hpp.
 */
#include "runtimes/internal.h"

#include "base/reader.h"

#include <elf.h>
#include <stdlib.h>

/* struct VMStructEntry: type, name, type of the field, is_static (i32), offset, address. */
#define FIELD_BYTES 48
#define FIELD_STATIC 24
#define FIELD_OFFSET 32
#define FIELD_ADDRESS 40
/* struct VMTypeEntry: name, super class, three i32, size. */
#define TYPE_BYTES 40
#define TYPE_SIZE 32
/* Version 17 has 788 fields and 768 types. */
#define ENTRIES_MAX 4096
#define NAME_BYTES 64
/* The library of version 26 has 150,000 relocations. */
#define RELOCATIONS_BYTES_MAX ((size_t)16 << 20)
/* At most this much code of all segments together is searched, piece by piece; segments may
 * overlap.
 */
#define CODE_BYTES_MAX ((uint64_t)128 << 20)
#define CODE_PIECE_BYTES ((size_t)1 << 20)
/* movq $imm32, disp32(%rip) */
#define MOVQ_BYTES 11
/* A build whose array has fewer offsets in the file than these sets them when it starts. */
#define OFFSETS_IN_FILE_LEAST 16

enum field {
	CODE_HEAPS,
	CODE_HEAP,
	ARRAY_LENGTH,
	ARRAY_LENGTH_OLD,
	ARRAY_DATA,
	HEAP_MEMORY,
	HEAP_SEGMAP,
	HEAP_SHIFT,
	SPACE_LOW,
	SPACE_HIGH_LIMIT,
	INTERPRETER,
	QUEUE_BUFFER,
	QUEUE_LIMIT,
	CALL_STUB,
	VERSION,
	ENTRY,
	BLOB_NAME,
	BLOB_BYTES,
	BLOB_CODE_AT,
	BLOB_CODE,
	BLOB_DATA,
	BLOB_FRAME,
	BLOB_COMPLETE,
	BLOB_MUTABLE,
	BLOB_RELOCATION,
	METHOD,
	METHOD_COMPILED,
	DEOPT_AT,
	DEOPT_ENTRY,
	DEOPT,
	DEOPT_OLD,
	ORIGINAL_PC,
	COMPILE_ID,
	SCOPES_AT,
	SCOPES,
	PCS,
	PCS_END,
	METADATA,
	IMMUTABLE,
	METHOD_CONST,
	CONST_POOL,
	CONST_WORDS,
	CONST_CODE,
	CONST_NAME,
	CONST_FLAGS,
	CONST_FLAGS_OLD,
	POOL_CLASS,
	POOL_FILE,
	CLASS_NAME,
	CLASS_FILE,
	SYMBOL_LENGTH,
	SYMBOL_LENGTH_OLD,
	SYMBOL_TEXT,
	SYMBOL_TEXT_OLD,
	FIELD_COUNT
};

/* clang-format off */
static const struct { const char *type, *name; } wanted_fields[FIELD_COUNT] = {
	[CODE_HEAPS] = { "CodeCache", "_heaps" },
	[CODE_HEAP] = { "CodeCache", "_heap" }, /* 8 */
	[ARRAY_LENGTH] = { "GrowableArrayBase", "_len" },
	[ARRAY_LENGTH_OLD] = { "GenericGrowableArray", "_len" }, /* to 14 */
	[ARRAY_DATA] = { "GrowableArray<int>", "_data" },
	[HEAP_MEMORY] = { "CodeHeap", "_memory" },
	[HEAP_SEGMAP] = { "CodeHeap", "_segmap" },
	[HEAP_SHIFT] = { "CodeHeap", "_log2_segment_size" },
	[SPACE_LOW] = { "VirtualSpace", "_low" },
	[SPACE_HIGH_LIMIT] = { "VirtualSpace", "_high_boundary" },
	[INTERPRETER] = { "AbstractInterpreter", "_code" },
	[QUEUE_BUFFER] = { "StubQueue", "_stub_buffer" },
	[QUEUE_LIMIT] = { "StubQueue", "_buffer_limit" },
	[CALL_STUB] = { "StubRoutines", "_call_stub_return_address" },
	[ENTRY] = { "ContinuationEntry", "_return_pc" }, /* 22 */
	[VERSION] = { "Abstract_VM_Version", "_vm_major_version" },
	[BLOB_NAME] = { "CodeBlob", "_name" },
	[BLOB_BYTES] = { "CodeBlob", "_size" },
	[BLOB_CODE_AT] = { "CodeBlob", "_code_begin" }, /* 9 to 22 */
	[BLOB_CODE] = { "CodeBlob", "_code_offset" },
	[BLOB_DATA] = { "CodeBlob", "_data_offset" },
	[BLOB_FRAME] = { "CodeBlob", "_frame_size" },
	[BLOB_COMPLETE] = { "CodeBlob", "_frame_complete_offset" },
	[BLOB_MUTABLE] = { "CodeBlob", "_mutable_data" }, /* 25 */
	[BLOB_RELOCATION] = { "CodeBlob", "_relocation_size" },
	[METHOD] = { "nmethod", "_method" },
	[METHOD_COMPILED] = { "CompiledMethod", "_method" }, /* 9 to 22 */
	[DEOPT_AT] = { "CompiledMethod", "_deopt_handler_begin" },
	[DEOPT_ENTRY] = { "nmethod", "_deopt_handler_entry_offset" }, /* 26 */
	[DEOPT] = { "nmethod", "_deopt_handler_offset" }, /* 23 */
	[DEOPT_OLD] = { "nmethod", "_deoptimize_offset" }, /* 8 */
	[ORIGINAL_PC] = { "nmethod", "_orig_pc_offset" },
	[COMPILE_ID] = { "nmethod", "_compile_id" },
	[SCOPES_AT] = { "CompiledMethod", "_scopes_data_begin" },
	[SCOPES] = { "nmethod", "_scopes_data_offset" }, /* 8, 23 */
	[PCS] = { "nmethod", "_scopes_pcs_offset" },
	[PCS_END] = { "nmethod", "_dependencies_offset" }, /* to 22 */
	[METADATA] = { "nmethod", "_metadata_offset" }, /* to 24 */
	[IMMUTABLE] = { "nmethod", "_immutable_data" }, /* 23 */
	[METHOD_CONST] = { "Method", "_constMethod" },
	[CONST_POOL] = { "ConstMethod", "_constants" },
	[CONST_WORDS] = { "ConstMethod", "_constMethod_size" },
	[CONST_CODE] = { "ConstMethod", "_code_size" },
	[CONST_NAME] = { "ConstMethod", "_name_index" },
	[CONST_FLAGS] = { "ConstMethod", "_flags._flags" }, /* 21 */
	[CONST_FLAGS_OLD] = { "ConstMethod", "_flags" },
	[POOL_CLASS] = { "ConstantPool", "_pool_holder" },
	[POOL_FILE] = { "ConstantPool", "_source_file_name_index" }, /* 17 */
	[CLASS_NAME] = { "Klass", "_name" },
	[CLASS_FILE] = { "InstanceKlass", "_source_file_name_index" },
	[SYMBOL_LENGTH] = { "Symbol", "_length" },
	[SYMBOL_LENGTH_OLD] = { "Symbol", "_length_and_refcount" }, /* in 12 to 14 its upper half is the length */
	[SYMBOL_TEXT] = { "Symbol", "_body" },
	[SYMBOL_TEXT_OLD] = { "Symbol", "_body[0]" },
};

enum type { TYPE_BLOCK, TYPE_CONST_METHOD, TYPE_POOL, TYPE_COUNT };
static const char *const wanted_types[TYPE_COUNT] = {
	[TYPE_BLOCK] = "HeapBlock", [TYPE_CONST_METHOD] = "ConstMethod", [TYPE_POOL] = "ConstantPool",
};
/* clang-format on */

struct found_field {
	uint64_t entry; /* address of its entry in the array; 0: it is not there */
	uint64_t value; /* offset, or address of a static field */
	bool is_static;
	bool is_short; /* of 16 bits */
};

struct tables {
	const struct objfile *obj;
	struct buf relocations; /* of .rela.dyn */
	uint64_t fields, types; /* addresses of the arrays */
	uint64_t *pointers;     /* pointers in the array that is being read, from its relocations */
	struct found_field found[FIELD_COUNT];
	uint64_t sizes[TYPE_COUNT];
	uint32_t field_count;
};

/* ---- the arrays ---- */

/* The pointers in [from, from + words * 8), 0 where no relocation is. */
static void relocate(const struct tables *t, uint64_t from, uint64_t *out, size_t words)
{
	struct reader r = reader_over(t->relocations.data, t->relocations.len);
	memset(out, 0, words * sizeof(*out));
	while (reader_left(&r) >= sizeof(Elf64_Rela)) {
		Elf64_Rela rela;
		memcpy(&rela, reader_bytes(&r, sizeof(rela)), sizeof(rela));
		uint64_t at = rela.r_offset - from;
		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE && at % 8 == 0 && at / 8 < words)
			out[at / 8] = (uint64_t)rela.r_addend;
	}
}

/* The name that word `i` of an entry points to; "" for none. */
static void name_at(
	const struct tables *t, size_t word, const uint8_t *in_place, char out[NAME_BYTES])
{
	uint64_t at = t->pointers[word];
	out[0] = 0;
	if (!at)
		memcpy(&at, in_place, sizeof(at));
	if (!at || bytes_at(t->obj, at, out, NAME_BYTES, NULL) != OK)
		out[0] = 0;
	out[NAME_BYTES - 1] = 0;
}

static void take_field(struct tables *t, uint64_t entry, size_t word, const uint8_t *raw)
{
	char type[NAME_BYTES], name[NAME_BYTES], of[NAME_BYTES];
	uint32_t is_static;
	name_at(t, word, raw, type);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		struct found_field *f = &t->found[i];
		if (f->entry || strcmp(type, wanted_fields[i].type) != 0)
			continue;
		name_at(t, word + 1, raw + 8, name);
		if (strcmp(name, wanted_fields[i].name) != 0)
			continue;
		name_at(t, word + 2, raw + 16, of);
		memcpy(&is_static, raw + FIELD_STATIC, sizeof(is_static));
		f->entry = entry;
		f->is_static = is_static != 0;
		f->is_short = strcmp(of, "int16_t") == 0 || strcmp(of, "u2") == 0 ||
			      strcmp(of, "uint16_t") == 0;
		memcpy(&f->value, raw + (is_static ? FIELD_ADDRESS : FIELD_OFFSET),
			sizeof(f->value));
		if (is_static && t->pointers[word + FIELD_ADDRESS / 8])
			f->value = t->pointers[word + FIELD_ADDRESS / 8];
	}
}

static void take_type(struct tables *t, uint64_t entry, size_t word, const uint8_t *raw)
{
	char name[NAME_BYTES];
	(void)entry;
	name_at(t, word, raw, name);
	for (size_t i = 0; i < TYPE_COUNT; i++) {
		if (strcmp(name, wanted_types[i]) == 0)
			memcpy(&t->sizes[i], raw + TYPE_SIZE, sizeof(t->sizes[i]));
	}
}

/* Each entry of an array, up to the one without a name. */
static enum status read_array(struct tables *t, uint64_t from, size_t entry_bytes,
	void (*take)(struct tables *t, uint64_t entry, size_t word, const uint8_t *raw),
	uint32_t *out_count, struct err *e)
{
	uint8_t raw[FIELD_BYTES];
	relocate(t, from, t->pointers, ENTRIES_MAX * (FIELD_BYTES / 8));
	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		uint64_t entry = from + i * entry_bytes;
		size_t word = i * (entry_bytes / 8);
		char name[NAME_BYTES];
		enum status s = bytes_at(t->obj, entry, raw, entry_bytes, e);
		if (s != OK)
			return s;
		name_at(t, word, raw, name);
		if (!name[0]) {
			*out_count = i;
			return OK;
		}
		take(t, entry, word, raw);
	}
	return err_set(e, E_UNSUPPORTED, "%s: HotSpot's tables have more than %d entries",
		objfile_name(t->obj), ENTRIES_MAX);
}

/* ---- offsets that are set by code ---- */

/* An instruction that writes a number to `target`: is it the offset of a wanted field? */
static void take_write(struct tables *t, uint64_t target, uint32_t number, bool *set)
{
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		struct found_field *f = &t->found[i];
		if (f->entry && !f->is_static && target == f->entry + FIELD_OFFSET) {
			f->value = number;
			set[i] = true;
		}
	}
}

static void search_piece(
	struct tables *t, const uint8_t *code, size_t len, uint64_t address, bool *set)
{
	static const uint8_t movq[] = { 0x48, 0xc7, 0x05 };
	uint64_t end = t->fields + (uint64_t)t->field_count * FIELD_BYTES;
	const uint8_t *at = code;
	while ((at = memmem(at, len - (size_t)(at - code), movq, sizeof(movq)))) {
		size_t where = (size_t)(at - code);
		int32_t distance, number;
		if (len - where < MOVQ_BYTES)
			return;
		memcpy(&distance, at + 3, sizeof(distance));
		memcpy(&number, at + 7, sizeof(number));
		uint64_t target = address + where + MOVQ_BYTES + (uint64_t)(int64_t)distance;
		if (target >= t->fields && target < end && number >= 0)
			take_write(t, target, (uint32_t)number, set);
		at++;
	}
}

/* `left`: bytes that may still be searched, of all segments. */
static enum status search_segment(struct tables *t, const struct objfile_segment *s, uint8_t *piece,
	uint64_t *left, bool *set, struct err *e)
{
	uint64_t bytes = MIN(s->file_size, *left);
	*left -= bytes;
	/* Pieces overlap, so that no instruction is cut in two. */
	for (uint64_t at = 0; at < bytes; at += CODE_PIECE_BYTES - MOVQ_BYTES) {
		size_t len = (size_t)MIN(bytes - at, (uint64_t)CODE_PIECE_BYTES);
		enum status st = objfile_read(t->obj, s->offset + at, piece, len, e);
		if (st != OK)
			return st;
		search_piece(t, piece, len, s->vaddr + at, set);
	}
	return OK;
}

/* Searches code for the fields that it sets. A field that no code sets is missing. */
static enum status search_code(struct tables *t, struct err *e)
{
	bool set[FIELD_COUNT] = { false };
	uint32_t count;
	uint64_t left = CODE_BYTES_MAX;
	const struct objfile_segment *s = objfile_segments(t->obj, &count);
	CLEANUP(free_cleanup) uint8_t *piece = malloc(CODE_PIECE_BYTES);
	if (!piece)
		return err_set(e, E_NOMEM, "code of HotSpot");
	for (uint32_t i = 0; i < count; i++) {
		enum status st =
			s[i].flags & PF_X ? search_segment(t, &s[i], piece, &left, set, e) : OK;
		if (st != OK)
			return st;
	}
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (!t->found[i].is_static && !set[i])
			t->found[i].entry = 0;
	}
	return OK;
}

static bool has_offsets(const struct tables *t)
{
	uint32_t count = 0;
	for (size_t i = 0; i < FIELD_COUNT; i++)
		count += t->found[i].entry && !t->found[i].is_static && t->found[i].value;
	return count >= OFFSETS_IN_FILE_LEAST;
}

static enum status read_tables(
	struct tables *t, uint64_t fields_at, uint64_t types_at, struct err *e)
{
	uint32_t type_count;
	const struct objfile_section *rela = objfile_section(t->obj, ".rela.dyn");
	enum status s = rela ? objfile_read_section(t->obj, rela, &t->relocations, e) : OK;
	t->pointers = calloc(ENTRIES_MAX * (FIELD_BYTES / 8), sizeof(*t->pointers));
	if (s == OK && !t->pointers)
		return err_set(e, E_NOMEM, "tables of HotSpot");
	const uint64_t variables[] = { fields_at, types_at };
	uint64_t *const arrays[] = { &t->fields, &t->types };
	for (size_t i = 0; i < ARRAY_COUNT(variables) && s == OK; i++) {
		relocate(t, variables[i], arrays[i], 1);
		if (!*arrays[i])
			s = bytes_at(t->obj, variables[i], arrays[i], sizeof(uint64_t), e);
	}
	if (s == OK)
		s = read_array(t, t->types, TYPE_BYTES, take_type, &type_count, e);
	if (s == OK)
		s = read_array(t, t->fields, FIELD_BYTES, take_field, &t->field_count, e);
	if (s == OK && !has_offsets(t))
		s = search_code(t, e);
	return s;
}

/* ---- the layout ---- */

struct placed {
	enum field field;
	uint16_t bytes;
	uint16_t max; /* bytes of the structure that are read; 0: the field is read by itself */
	bool is_optional;
	uint16_t *to;
};

static enum status missing(const struct tables *t, enum field f, unsigned version, struct err *e)
{
	return err_set(e, E_UNSUPPORTED, "%s: HotSpot %u does not say where %s.%s is",
		objfile_name(t->obj), version, wanted_fields[f].type, wanted_fields[f].name);
}

static enum status place(const struct tables *t, const struct placed *fields, size_t count,
	unsigned version, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const struct found_field *f = &t->found[fields[i].field];
		uint64_t max = fields[i].max ? fields[i].max : UINT16_MAX;
		if (!f->entry && fields[i].is_optional)
			continue;
		if (!f->entry || f->is_static)
			return missing(t, fields[i].field, version, e);
		if (f->value > max || f->value + fields[i].bytes > max)
			return err_set(e, E_UNSUPPORTED,
				"%s: HotSpot %u has %s.%s at %llu, and %llu is the most",
				objfile_name(t->obj), version, wanted_fields[fields[i].field].type,
				wanted_fields[fields[i].field].name, (unsigned long long)f->value,
				(unsigned long long)max - fields[i].bytes);
		*fields[i].to = (uint16_t)f->value;
	}
	return OK;
}

/* The first of the two fields if the file has it, else the second. */
static enum field one_of(const struct tables *t, enum field a, enum field b)
{
	return t->found[a].entry ? a : b;
}

static bool has(const struct tables *t, enum field f)
{
	return t->found[f].entry != 0;
}

#define IN_NMETHOD HOTSPOT_NMETHOD_BYTES, false
#define IN_NMETHOD_MAYBE HOTSPOT_NMETHOD_BYTES, true
#define BY_ITSELF 0, false
#define BY_ITSELF_MAYBE 0, true

static enum status place_code(
	const struct tables *t, unsigned version, struct hotspot_layout *l, struct err *e)
{
	bool code_at = has(t, BLOB_CODE_AT), deopt_at = has(t, DEOPT_AT);
	enum field deopt = one_of(t, DEOPT_ENTRY, one_of(t, DEOPT, DEOPT_OLD));
	const struct placed fields[] = {
		{ BLOB_NAME, 8, HOTSPOT_BLOB_BYTES, false, &l->blob_name },
		{ BLOB_BYTES, 4, HOTSPOT_BLOB_BYTES, false, &l->blob_bytes },
		{ one_of(t, BLOB_CODE_AT, BLOB_CODE), 8, HOTSPOT_BLOB_BYTES, false, &l->blob_code },
		{ BLOB_DATA, 4, HOTSPOT_BLOB_BYTES, false, &l->blob_data },
		{ BLOB_FRAME, 4, HOTSPOT_BLOB_BYTES, false, &l->blob_frame_words },
		{ BLOB_COMPLETE, 4, HOTSPOT_BLOB_BYTES, false, &l->blob_complete },
		{ BLOB_MUTABLE, 8, HOTSPOT_BLOB_BYTES, true, &l->blob_mutable },
		{ BLOB_RELOCATION, 4, HOTSPOT_BLOB_BYTES, !has(t, BLOB_MUTABLE),
			&l->blob_relocation_bytes },
		{ one_of(t, METHOD_COMPILED, METHOD), 8, IN_NMETHOD, &l->nmethod_method },
		{ deopt_at ? DEOPT_AT : deopt, 8, IN_NMETHOD, &l->nmethod_deopt },
		{ ORIGINAL_PC, 4, IN_NMETHOD, &l->nmethod_original_pc },
		{ COMPILE_ID, 4, IN_NMETHOD, &l->nmethod_compile_id },
		{ one_of(t, SCOPES_AT, SCOPES), 8, IN_NMETHOD, &l->nmethod_scopes },
		{ PCS, 4, IN_NMETHOD, &l->nmethod_pcs },
		{ has(t, IMMUTABLE) ? SCOPES : PCS_END, 4, IN_NMETHOD, &l->nmethod_pcs_end },
		{ METADATA, 4, HOTSPOT_NMETHOD_BYTES, has(t, BLOB_MUTABLE), &l->nmethod_metadata },
		{ IMMUTABLE, 8, IN_NMETHOD_MAYBE, &l->nmethod_immutable },
	};
	enum status s = place(t, fields, ARRAY_COUNT(fields), version, e);
	if (s != OK)
		return s;
	l->flags |= (code_at ? HOTSPOT_CODE_POINTER : 0) | (deopt_at ? HOTSPOT_DEOPT_POINTER : 0) |
		    (has(t, SCOPES_AT) ? HOTSPOT_SCOPES_POINTER : 0) |
		    (has(t, IMMUTABLE) ? HOTSPOT_IMMUTABLE : 0) |
		    (has(t, BLOB_MUTABLE) ? HOTSPOT_MUTABLE : 0) |
		    (has(t, METADATA) && t->found[METADATA].is_short ? HOTSPOT_METADATA_SHORT : 0) |
		    (t->found[BLOB_COMPLETE].is_short ? HOTSPOT_COMPLETE_SHORT : 0);
	return OK;
}

static enum status place_names(
	const struct tables *t, unsigned version, struct hotspot_layout *l, struct err *e)
{
	const struct placed fields[] = {
		{ METHOD_CONST, 8, BY_ITSELF, &l->method_const },
		{ CONST_POOL, 8, HOTSPOT_CONST_METHOD_BYTES, false, &l->const_pool },
		{ CONST_WORDS, 4, HOTSPOT_CONST_METHOD_BYTES, false, &l->const_words },
		{ CONST_CODE, 2, HOTSPOT_CONST_METHOD_BYTES, false, &l->const_code_bytes },
		{ CONST_NAME, 2, HOTSPOT_CONST_METHOD_BYTES, false, &l->const_name },
		{ one_of(t, CONST_FLAGS, CONST_FLAGS_OLD), 2, HOTSPOT_CONST_METHOD_BYTES, false,
			&l->const_flags },
		{ POOL_CLASS, 8, HOTSPOT_POOL_BYTES, false, &l->pool_class },
		{ POOL_FILE, 2, HOTSPOT_POOL_BYTES, true, &l->pool_file },
		{ CLASS_NAME, 8, BY_ITSELF, &l->class_name },
		{ CLASS_FILE, 2, BY_ITSELF_MAYBE, &l->class_file },
		{ one_of(t, SYMBOL_LENGTH, SYMBOL_LENGTH_OLD), 2, BY_ITSELF, &l->symbol_length },
		{ one_of(t, SYMBOL_TEXT, SYMBOL_TEXT_OLD), 1, BY_ITSELF, &l->symbol_text },
	};
	enum status s = place(t, fields, ARRAY_COUNT(fields), version, e);
	if (s != OK)
		return s;
	if (!has(t, SYMBOL_LENGTH))
		l->symbol_length = (uint16_t)(l->symbol_length + 2);
	if (t->sizes[TYPE_CONST_METHOD] == 0 ||
		t->sizes[TYPE_CONST_METHOD] > HOTSPOT_CONST_METHOD_BYTES ||
		t->sizes[TYPE_POOL] == 0 || t->sizes[TYPE_POOL] > HOTSPOT_POOL_BYTES)
		return err_set(e, E_UNSUPPORTED, "%s: HotSpot %u has other constant pools",
			objfile_name(t->obj), version);
	l->const_size = (uint16_t)t->sizes[TYPE_CONST_METHOD];
	l->pool_size = (uint16_t)t->sizes[TYPE_POOL];
	return OK;
}

static enum status place_heaps(
	const struct tables *t, unsigned version, struct hotspot_layout *l, struct err *e)
{
	bool one = !has(t, CODE_HEAPS);
	uint16_t memory, segmap, low, high_limit;
	const struct placed fields[] = {
		{ one_of(t, ARRAY_LENGTH, ARRAY_LENGTH_OLD), 4, 0, one, &l->array_length },
		{ ARRAY_DATA, 8, 0, one, &l->array_data },
		{ HEAP_MEMORY, 8, BY_ITSELF, &memory },
		{ HEAP_SEGMAP, 8, BY_ITSELF, &segmap },
		{ HEAP_SHIFT, 4, BY_ITSELF, &l->heap_shift },
		{ SPACE_LOW, 8, BY_ITSELF, &low },
		{ SPACE_HIGH_LIMIT, 8, BY_ITSELF, &high_limit },
		{ QUEUE_BUFFER, 8, BY_ITSELF, &l->queue_buffer },
		{ QUEUE_LIMIT, 4, BY_ITSELF, &l->queue_bytes },
	};
	enum status s = place(t, fields, ARRAY_COUNT(fields), version, e);
	if (s != OK)
		return s;
	if (t->sizes[TYPE_BLOCK] == 0 || t->sizes[TYPE_BLOCK] > 64 || memory > 4096 ||
		segmap > 4096 || low > 4096 || high_limit > 4096)
		return err_set(e, E_UNSUPPORTED, "%s: HotSpot %u has other code heaps",
			objfile_name(t->obj), version);
	l->block_bytes = (uint16_t)t->sizes[TYPE_BLOCK];
	l->heap_low = (uint16_t)(memory + low);
	l->heap_high = (uint16_t)(memory + high_limit);
	l->heap_segments = (uint16_t)(segmap + low);
	l->flags |= one ? HOTSPOT_ONE_HEAP : 0;
	return OK;
}

/* Distances between static variables of the library. */
static enum status place_statics(
	const struct tables *t, unsigned version, struct hotspot_layout *l, struct err *e)
{
	uint64_t root = t->found[one_of(t, CODE_HEAPS, CODE_HEAP)].value;
	const enum field fields[] = { INTERPRETER, CALL_STUB, ENTRY };
	__s32 *const to[] = { &l->interpreter, &l->call_stub_return, &l->entry };
	for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
		const struct found_field *f = &t->found[fields[i]];
		int64_t distance = (int64_t)(f->value - root);
		if (!f->entry && fields[i] == ENTRY)
			continue;
		if (!f->entry || !f->is_static || distance > INT32_MAX || distance < INT32_MIN)
			return missing(t, fields[i], version, e);
		*to[i] = (int32_t)distance;
	}
	return OK;
}

/* Version 8 does not say its version in the file, but is the only one with a single code heap. */
static enum status find_version(const struct tables *t, unsigned *out, struct err *e)
{
	const struct found_field *f = &t->found[VERSION];
	uint32_t version = 8;
	if (!has(t, CODE_HEAPS) && !has(t, CODE_HEAP))
		return missing(t, CODE_HEAPS, 0, e);
	if (has(t, CODE_HEAPS) &&
		(!f->entry || bytes_at(t->obj, f->value, &version, sizeof(version), e) != OK ||
			version < 9 || version > 99))
		return err_set(e, E_UNSUPPORTED, "%s: a HotSpot that does not say its version",
			objfile_name(t->obj));
	*out = version;
	return OK;
}

static enum status make_record(
	const struct tables *t, uint64_t text, struct runtime_record *out, struct err *e)
{
	struct hotspot_layout *l = &out->layout.hotspot;
	unsigned version = 0;
	enum status s = find_version(t, &version, e);
	if (s != OK)
		return s;
	l->flags = (uint16_t)((version >= 19 ? HOTSPOT_NO_ZEROS : 0) |
			      (version < 9 ? HOTSPOT_OLD_FRAMES : 0));
	s = place_heaps(t, version, l, e);
	if (s == OK)
		s = place_code(t, version, l, e);
	if (s == OK)
		s = place_names(t, version, l, e);
	if (s == OK)
		s = place_statics(t, version, l, e);
	if (s == OK)
		s = place_root(
			t->obj, t->found[one_of(t, CODE_HEAPS, CODE_HEAP)].value, text, out, e);
	out->kind = RUNTIME_HOTSPOT;
	out->version = (uint16_t)(version << 8);
	return s;
}

/* Any address in its code. */
static uint64_t text_of(const struct objfile *obj)
{
	const struct objfile_section *text = objfile_section(obj, ".text");
	return text ? text->addr : 0;
}

enum status hotspot_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[] = { { .name = "gHotSpotVMStructs" },
		{ .name = "gHotSpotVMTypes" } };
	struct runtime_record r = { 0 };
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, ARRAY_COUNT(symbols), e);
	if (s != OK)
		return s;
	if (!symbols[0].address || !symbols[1].address)
		return err_set(e, E_NOTFOUND, "%s: no HotSpot", objfile_name(obj));
	CLEANUP(free_cleanup) struct tables *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "tables of HotSpot");
	t->obj = obj;
	buf_init(&t->relocations, RELOCATIONS_BYTES_MAX);
	s = read_tables(t, symbols[0].address, symbols[1].address, e);
	if (s == OK)
		s = make_record(t, text_of(obj), &r, e);
	buf_deinit(&t->relocations);
	free(t->pointers);
	if (s == OK)
		*out = r;
	return s;
}
