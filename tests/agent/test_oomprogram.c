/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/oom/oomprogram.h"

#include "gen/elf.h"
#include "test.h"

#define CODE 0x401000
#define CODE_BYTES 0x1000
#define BIAS 0x7f0000000000ull

struct made {
	struct gen_elf g;
	struct buf symbols, names;
	struct objfile *obj;
};

static void begin(struct made *m)
{
	static const uint8_t code[CODE_BYTES];
	memset(m, 0, sizeof(*m));
	gen_elf_init(&m->g);
	buf_init(&m->symbols, 1 << 20);
	buf_init(&m->names, 1 << 20);
	buf_put(&m->names, "", 1);
	buf_put(&m->symbols, &(Elf64_Sym){ 0 }, sizeof(Elf64_Sym));
	uint32_t text = gen_section(
		&m->g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof(code));
	gen_load(&m->g, text, PF_R | PF_X);
}

static void symbol(struct made *m, const char *name, unsigned type, uint64_t at)
{
	Elf64_Sym s = { .st_name = (uint32_t)m->names.len,
		.st_info = (uint8_t)ELF64_ST_INFO(STB_GLOBAL, type),
		.st_value = at };
	buf_put(&m->names, name, strlen(name) + 1);
	buf_put(&m->symbols, &s, sizeof(s));
}

static void open_made(struct made *m, bool is_go, bool is_stripped)
{
	struct err e;
	if (is_go)
		gen_section(&m->g, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x500000, "x", 1);
	if (!is_stripped) {
		uint32_t names = gen_section(
			&m->g, ".strtab", SHT_STRTAB, 0, 0, m->names.data, m->names.len);
		uint32_t table = gen_section(
			&m->g, ".symtab", SHT_SYMTAB, 0, 0, m->symbols.data, m->symbols.len);
		m->g.sections[table].header.sh_link = names;
		m->g.sections[table].header.sh_entsize = sizeof(Elf64_Sym);
	}
	gen_elf_finish(&m->g);
	CHECK_OK(objfile_open_bytes(m->g.file.data, m->g.file.len, "made", &m->obj, &e), &e);
}

static void end(struct made *m)
{
	objfile_close(m->obj);
	buf_deinit(&m->symbols);
	buf_deinit(&m->names);
	gen_elf_deinit(&m->g);
}

/* main.a, main.b, runtime.malloc, internal/runtime/maps.x, main.c: 0x100 bytes each. */
static void usual(struct made *m)
{
	static const char *const names[] = { "main.a", "main.b", "runtime.malloc",
		"internal/runtime/maps.x", "main.c" };
	begin(m);
	for (unsigned i = ARRAY_COUNT(names); i-- > 0;)
		symbol(m, names[i], STT_FUNC, CODE + 0x100 * i);
	symbol(m, "runtime.mbuckets", STT_OBJECT, 0x600010);
	symbol(m, "runtime.MemProfileRate", STT_OBJECT, 0x600020);
	symbol(m, "main.far", STT_FUNC, CODE + CODE_BYTES);
}

static void read_usual(struct oomprogram *p)
{
	struct made m;
	struct err e;
	usual(&m);
	open_made(&m, true, false);
	CHECK_OK(oomprogram_read(m.obj, p, &e), &e);
	end(&m);
}

static void finds_what_is_needed(void **state)
{
	(void)state;
	struct oomprogram p;
	read_usual(&p);
	CHECK(p.buckets == 0x600010 && p.rate == 0x600020);
	CHECK(p.code_vaddr == CODE && p.code_bytes == CODE_BYTES);
	CHECK(p.first_vaddr == p.code_vaddr && p.first_offset == p.code_offset);
	CHECK(p.function_count == 5);
	for (uint32_t i = 0; i < 5; i++)
		CHECK(p.functions[i] == ((0x100 * i) << 1 | (i == 2 || i == 3)));
	CHECK(oomprogram_has(&p, CODE) && !oomprogram_has(&p, CODE - 1));
	CHECK(!oomprogram_has(&p, CODE + CODE_BYTES));
	oomprogram_deinit(&p);
}

static void knows_programs_that_are_not_gos(void **state)
{
	(void)state;
	struct made m;
	struct oomprogram p;
	struct err e;
	usual(&m);
	open_made(&m, false, false);
	CHECK(oomprogram_read(m.obj, &p, &e) == E_NOTFOUND);
	end(&m);
	usual(&m);
	open_made(&m, true, true);
	CHECK_OK(oomprogram_read(m.obj, &p, &e), &e);
	CHECK(p.buckets == 0 && p.rate == 0 && p.function_count == 0);
	oomprogram_deinit(&p);
	end(&m);
}

static void refuses_what_is_damaged(void **state)
{
	(void)state;
	struct made m;
	struct oomprogram p;
	struct err e;
	usual(&m);
	Elf64_Sym *s = (Elf64_Sym *)(void *)m.symbols.data;
	s[1].st_name = UINT32_MAX; /* a name outside of all names is none */
	open_made(&m, true, false);
	CHECK_OK(oomprogram_read(m.obj, &p, &e), &e);
	CHECK(p.function_count == 5 && p.buckets == 0x600010);
	oomprogram_deinit(&p);
	end(&m);
	begin(&m);
	open_made(&m, true, false);
	end(&m);
	begin(&m);
	m.g.segments[0].header.p_flags = PF_R;
	open_made(&m, true, false);
	CHECK(oomprogram_read(m.obj, &p, &e) == E_INVALID);
	CHECK(strstr(e.text, "no segment has code"));
	end(&m);
	usual(&m);
	open_made(&m, true, false);
	/* The header of .symtab is the last but one: that of the names of sections comes after. */
	Elf64_Ehdr *h = (Elf64_Ehdr *)(void *)m.g.file.data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(m.g.file.data + h->e_shoff);
	for (unsigned i = 0; i < h->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			sections[i].sh_link = 1000;
	objfile_close(m.obj);
	CHECK_OK(objfile_open_bytes(m.g.file.data, m.g.file.len, "made", &m.obj, &e), &e);
	CHECK(oomprogram_read(m.obj, &p, &e) == E_INVALID);
	CHECK(strstr(e.text, "section 1000"));
	end(&m);
}

/* `from`: return addresses as offsets in the code; `to`: what is left of them. 0 ends both. */
static void check_frames(const struct oomprogram *p, const uint32_t *from, const uint32_t *to)
{
	uint64_t stack[32];
	uint32_t count = 0, left = 0;
	for (; from[count]; count++)
		stack[count] = BIAS + CODE + from[count];
	left = oomprogram_frames(p, BIAS, stack, count);
	for (count = 0; to[count]; count++)
		CHECK(count < left && stack[count] == CODE + to[count] - 1);
	CHECK(count == left);
}

#define LIST(...) ((const uint32_t[]){ __VA_ARGS__ __VA_OPT__(, ) 0 })

static void leaves_frames_that_others_know(void **state)
{
	(void)state;
	struct oomprogram p;
	read_usual(&p);
	check_frames(&p, LIST(), LIST());
	check_frames(&p, LIST(0x10, 0x110), LIST(0x10, 0x110));
	/* The runtime at the leaf, and only there, unless there is nothing else. */
	check_frames(&p, LIST(0x210, 0x310, 0x10), LIST(0x10));
	check_frames(&p, LIST(0x10, 0x210), LIST(0x10, 0x210));
	check_frames(&p, LIST(0x210, 0x310), LIST(0x210, 0x310));
	/* Inlined calls are in the function they were inlined in. */
	check_frames(&p, LIST(0x10, 0x20, 0x30, 0x110), LIST(0x10, 0x110));
	/* One that calls itself comes by the same place again. */
	check_frames(&p, LIST(0x10, 0x40, 0x40, 0x40, 0x110), LIST(0x10, 0x40, 0x40, 0x110));
	check_frames(&p, LIST(0x10, 0x20, 0x10, 0x20, 0x410), LIST(0x10, 0x10, 0x410));
	/* A return address at the end of a function is that of its last instruction. */
	check_frames(&p, LIST(0x100, 0x210), LIST(0x100, 0x210));
	oomprogram_deinit(&p);
}

static void leaves_other_addresses_alone(void **state)
{
	(void)state;
	struct oomprogram p;
	read_usual(&p);
	uint64_t stack[] = { 0x1234, BIAS + CODE + 0x10, UINT64_MAX, 0, BIAS };
	CHECK(oomprogram_frames(&p, BIAS, stack, ARRAY_COUNT(stack)) == ARRAY_COUNT(stack));
	CHECK(stack[0] == 0x1234 && stack[1] == CODE + 0xf && stack[2] == UINT64_MAX);
	CHECK(stack[3] == 0 && stack[4] == BIAS);
	oomprogram_deinit(&p);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_needed),
		cmocka_unit_test(knows_programs_that_are_not_gos),
		cmocka_unit_test(refuses_what_is_damaged),
		cmocka_unit_test(leaves_frames_that_others_know),
		cmocka_unit_test(leaves_other_addresses_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
