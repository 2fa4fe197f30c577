/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that look like HotSpot's, made here: offsets in their tables, or set by their code. */
#include "runtimes/runtimes.h"
#include "test.h"

#include "gen/elf.h"

#define TEXT 0x401000
#define DATA 0x500000
#define FIELDS (DATA + 0x1000)
#define TYPES (DATA + 0x4000)
#define NAMES (DATA + 0x5000)
#define ROOT (DATA + 0x9000)
#define VERSION_AT (DATA + 0x100)
#define DATA_BYTES 0x8000
#define FIELD_BYTES 48
#define TYPE_BYTES 40

static const struct made_field {
	const char *type, *name, *of;
	uint64_t value;
	bool is_static;
} of_17[] = {
	{ "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", ROOT, true },
	{ "GrowableArrayBase", "_len", "int", 0, false },
	{ "GrowableArray<int>", "_data", "int*", 16, false },
	{ "CodeHeap", "_memory", "VirtualSpace", 8, false },
	{ "CodeHeap", "_segmap", "VirtualSpace", 120, false },
	{ "CodeHeap", "_log2_segment_size", "int", 256, false },
	{ "VirtualSpace", "_low", "char*", 16, false },
	{ "VirtualSpace", "_high_boundary", "char*", 8, false },
	{ "AbstractInterpreter", "_code", "StubQueue*", ROOT - 64, true },
	{ "StubQueue", "_stub_buffer", "address", 8, false },
	{ "StubQueue", "_buffer_limit", "int", 20, false },
	{ "StubRoutines", "_call_stub_return_address", "address", ROOT + 128, true },
	{ "Abstract_VM_Version", "_vm_major_version", "int", VERSION_AT, true },
	{ "CodeBlob", "_name", "const char*", 96, false },
	{ "CodeBlob", "_size", "int", 12, false },
	{ "CodeBlob", "_code_begin", "address", 32, false },
	{ "CodeBlob", "_data_offset", "int", 24, false },
	{ "CodeBlob", "_frame_size", "int", 28, false },
	{ "CodeBlob", "_frame_complete_offset", "int", 20, false },
	{ "CompiledMethod", "_method", "Method*", 112, false },
	{ "CompiledMethod", "_deopt_handler_begin", "address", 128, false },
	{ "CompiledMethod", "_scopes_data_begin", "address", 120, false },
	{ "nmethod", "_orig_pc_offset", "int", 300, false },
	{ "nmethod", "_compile_id", "int", 304, false },
	{ "nmethod", "_scopes_pcs_offset", "int", 268, false },
	{ "nmethod", "_dependencies_offset", "int", 272, false },
	{ "nmethod", "_metadata_offset", "int", 260, false },
	{ "Method", "_constMethod", "ConstMethod*", 8, false },
	{ "ConstMethod", "_constants", "ConstantPool*", 8, false },
	{ "ConstMethod", "_constMethod_size", "int", 24, false },
	{ "ConstMethod", "_code_size", "u2", 32, false },
	{ "ConstMethod", "_name_index", "u2", 34, false },
	{ "ConstMethod", "_flags", "u2", 30, false },
	{ "ConstantPool", "_pool_holder", "InstanceKlass*", 24, false },
	{ "ConstantPool", "_source_file_name_index", "u2", 54, false },
	{ "Klass", "_name", "Symbol*", 24, false },
	{ "Symbol", "_length", "u2", 4, false },
	{ "Symbol", "_body", "", 6, false },
};
#define FIELD_COUNT ARRAY_COUNT(of_17)

struct made {
	uint32_t version;
	bool by_code;        /* offsets are set by code, and 0 in the table */
	bool by_relocations; /* pointers are relocations, and 0 in place */
	size_t left_out;     /* 1 + index of a field that is missing */
	size_t odd;          /* 1 + index of a field with this offset */
	uint64_t odd_value;
	uint32_t pool_bytes;
};

struct image {
	struct buf names, symbols, symbol_names, relocations;
	uint8_t data[DATA_BYTES];
	uint8_t code[4096];
	size_t code_len;
};

static uint64_t name_of(struct image *x, const char *name)
{
	uint64_t at = NAMES + x->names.len;
	buf_put(&x->names, name, strlen(name) + 1);
	return at;
}

static void put_pointer(struct image *x, const struct made *m, uint64_t at, uint64_t value)
{
	Elf64_Rela r = { .r_offset = at,
		.r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
		.r_addend = (int64_t)value };
	if (m->by_relocations)
		buf_put(&x->relocations, &r, sizeof(r));
	else
		memcpy(x->data + (at - DATA), &value, sizeof(value));
}

static void put_movq(struct image *x, uint64_t target, uint32_t value)
{
	uint8_t *at = x->code + x->code_len;
	int32_t distance = (int32_t)(target - (TEXT + x->code_len + 11));
	memcpy(at, "\x48\xc7\x05", 3);
	memcpy(at + 3, &distance, 4);
	memcpy(at + 7, &value, 4);
	x->code_len += 11;
}

static void put_field(struct image *x, const struct made *m, size_t i, uint64_t at)
{
	const struct made_field *f = &of_17[i];
	uint64_t value = m->odd == i + 1 ? m->odd_value : f->value;
	uint8_t *raw = x->data + (at - DATA);
	put_pointer(x, m, at, name_of(x, f->type));
	put_pointer(x, m, at + 8, name_of(x, f->name));
	put_pointer(x, m, at + 16, name_of(x, f->of));
	raw[24] = f->is_static;
	if (f->is_static)
		put_pointer(x, m, at + 40, value);
	else if (m->by_code)
		put_movq(x, at + 32, (uint32_t)value);
	else
		memcpy(raw + 32, &value, sizeof(value));
}

static void put_types(struct image *x, const struct made *m)
{
	static const char *const names[] = { "ConstantPool", "ConstMethod", "HeapBlock" };
	const uint64_t sizes[] = { m->pool_bytes ? m->pool_bytes : 72, 48, 16 };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		put_pointer(x, m, TYPES + i * TYPE_BYTES, name_of(x, names[i]));
		memcpy(x->data + (TYPES - DATA) + i * TYPE_BYTES + 32, &sizes[i], 8);
	}
}

static void put_symbol(struct image *x, const char *name, uint64_t value)
{
	Elf64_Sym s = { .st_name = (uint32_t)x->symbol_names.len,
		.st_shndx = 1,
		.st_value = value,
		.st_size = 8 };
	buf_put(&x->symbol_names, name, strlen(name) + 1);
	buf_put(&x->symbols, &s, sizeof(s));
}

static void fill(struct image *x, const struct made *m)
{
	uint64_t at = FIELDS;
	uint32_t version = m->version ? m->version : 17;
	buf_init(&x->names, 1 << 16);
	buf_init(&x->symbols, 4096);
	buf_init(&x->symbol_names, 4096);
	buf_init(&x->relocations, 1 << 16);
	put_pointer(x, m, DATA, FIELDS);
	put_pointer(x, m, DATA + 8, TYPES);
	memcpy(x->data + (VERSION_AT - DATA), &version, sizeof(version));
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (m->left_out == i + 1)
			continue;
		put_field(x, m, i, at);
		at += FIELD_BYTES;
	}
	put_types(x, m);
	memcpy(x->data + (NAMES - DATA), x->names.data, x->names.len);
	put_symbol(x, "", 0);
	put_symbol(x, "gHotSpotVMStructs", DATA);
	put_symbol(x, "gHotSpotVMTypes", DATA + 8);
}

static void make(struct gen_elf *g, struct image *x)
{
	gen_elf_init(g);
	uint32_t text = gen_section(g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
		x->code, sizeof(x->code));
	uint32_t data = gen_section(
		g, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, x->data, sizeof(x->data));
	uint32_t dynsym = gen_section(
		g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, x->symbols.data, x->symbols.len);
	g->sections[dynsym].header.sh_link = gen_section(
		g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, x->symbol_names.data, x->symbol_names.len);
	(void)gen_section(
		g, ".rela.dyn", SHT_RELA, SHF_ALLOC, 0, x->relocations.data, x->relocations.len);
	gen_load(g, text, PF_R | PF_X);
	gen_load(g, data, PF_R | PF_W);
	gen_elf_finish(g);
}

static enum status find(const struct made *m, struct runtime_record *out, struct err *e)
{
	struct image *x = calloc(1, sizeof(*x));
	struct gen_elf g;
	struct objfile *obj = NULL;
	CHECK(x);
	fill(x, m);
	make(&g, x);
	enum status s = objfile_open_bytes(g.file.data, g.file.len, "made", &obj, e);
	if (s == OK)
		s = runtimes_find(obj, out, e);
	objfile_close(obj);
	gen_elf_deinit(&g);
	buf_deinit(&x->names);
	buf_deinit(&x->symbols);
	buf_deinit(&x->symbol_names);
	buf_deinit(&x->relocations);
	free(x);
	return s;
}

static void check_17(const struct runtime_record *r)
{
	const struct hotspot_layout *l = &r->layout.hotspot;
	CHECK(r->kind == RUNTIME_HOTSPOT && r->version == 17 << 8);
	CHECK(l->interpreter == -64 && l->call_stub_return == 128);
	CHECK(l->heap_low == 24 && l->heap_high == 16 && l->heap_segments == 136);
	CHECK(l->nmethod_compile_id == 304 && l->nmethod_pcs_end == 272 && l->pool_size == 72);
	CHECK(l->flags == (HOTSPOT_CODE_POINTER | HOTSPOT_DEOPT_POINTER | HOTSPOT_SCOPES_POINTER));
}

static void reads_offsets_wherever_they_are(void **state)
{
	(void)state;
	static const struct made made[] = { { .version = 17 }, { .by_code = true },
		{ .by_relocations = true }, { .by_code = true, .by_relocations = true } };
	for (size_t i = 0; i < ARRAY_COUNT(made); i++) {
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		CHECK_OK(find(&made[i], &r, &e), &e);
		check_17(&r);
	}
}

static void refuses_what_cannot_be_walked(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		struct runtime_record r = { .kind = 77 };
		struct err e = { 0 };
		const struct made without = { .left_out = i + 1 };
		if (strcmp(of_17[i].name, "_source_file_name_index") != 0)
			CHECK(find(&without, &r, &e) == E_UNSUPPORTED && r.kind == 77);
		const struct made odd = { .odd = i + 1, .odd_value = 70000, .by_code = i % 2 };
		if (!of_17[i].is_static)
			CHECK(find(&odd, &r, &e) == E_UNSUPPORTED && r.kind == 77);
	}
	struct runtime_record r = { .kind = 77 };
	struct err e = { 0 };
	CHECK(find(&(struct made){ .version = 120 }, &r, &e) == E_UNSUPPORTED);
	CHECK(find(&(struct made){ .pool_bytes = 97 }, &r, &e) == E_UNSUPPORTED && r.kind == 77);
}

static void knows_numbers_without_zeros_by_the_version(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK_OK(find(&(struct made){ .version = 21 }, &r, &e), &e);
	CHECK(r.version == 21 << 8 && (r.layout.hotspot.flags & HOTSPOT_NO_ZEROS));
}

TEST_MAIN(cmocka_unit_test(reads_offsets_wherever_they_are),
	cmocka_unit_test(refuses_what_cannot_be_walked),
	cmocka_unit_test(knows_numbers_without_zeros_by_the_version))
