/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are made to be slow, by the work that is counted. What is not counted and was once
 * quadratic would take minutes here: the test's time limit is its check.
 */
#include "test.h"

#include "gen/elf.h"
#include "unwind/golang.h"
#include "unwind/work.h"

#define TEXT 0x1000 /* address and file offset */
#define TEXT_BYTES 0x200000
#define FRAMES 0x40000000
#define CIE_BYTES 512
#define CIE_NOPS (CIE_BYTES - 22)

struct made {
	struct gen_elf g;
	struct gen_cfi c;
	struct objfile *obj;
	struct unwind_build build;
	struct unwind_table *t;
	struct err e;
};

static void begin(struct made *m)
{
	*m = (struct made){ 0 };
	gen_elf_init(&m->g);
	gen_cfi_init(&m->c, FRAMES);
}

static enum status finish(struct made *m, const uint8_t *code)
{
	static const uint8_t zeros[TEXT_BYTES];
	uint32_t text = gen_section(&m->g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
		code ? code : zeros, TEXT_BYTES);
	gen_load(&m->g, text, PF_R | PF_X);
	uint32_t frames = gen_section(&m->g, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAMES,
		m->c.bytes.data, m->c.bytes.len);
	gen_load(&m->g, frames, PF_R);
	gen_elf_finish(&m->g);
	CHECK_OK(objfile_open_bytes(m->g.file.data, m->g.file.len, "made", &m->obj, &m->e), &m->e);
	enum status s = unwind_table_build_within(&m->build, m->obj, &m->t, &m->e);
	CHECK(s != OK || unwind_table_check(m->t, NULL) == OK);
	return s;
}

static void end(struct made *m)
{
	unwind_table_free(m->t);
	objfile_close(m->obj);
	gen_elf_deinit(&m->g);
	buf_deinit(&m->c.bytes);
}

/* The most that may have been done when it is given up: one step passes the limit. */
static bool is_within(const struct made *m)
{
	uint64_t max = UNWIND_WORK_MIN + m->c.bytes.len * UNWIND_WORK_PER_BYTE;
	return m->build.work <= max + (UNWIND_WORK_MIN >> 3);
}

static size_t long_cie(struct made *m)
{
	static const uint8_t encoding = 0x1b;
	uint8_t instructions[CIE_NOPS] = { 0x0c, 7, 8, 0x90, 1 };
	return gen_cie_with(&m->c, "zR", &encoding, 1, instructions, sizeof(instructions));
}

/* Functions of 8 bytes, of `cies` CIEs by turns. */
static void put_functions(struct made *m, uint32_t count, uint32_t cies)
{
	size_t *at = calloc(cies, sizeof(*at));
	CHECK(at != NULL);
	for (uint32_t i = 0; i < cies; i++)
		at[i] = long_cie(m);
	for (uint32_t i = 0; i < count; i++)
		gen_fde(&m->c, at[i % cies], TEXT + i * 8, 8, NULL, 0);
	free(at);
}

static void long_cies_are_read_once(void **state)
{
	(void)state;
	static const uint32_t cies[] = { 1, 2, 8 };
	for (size_t i = 0; i < ARRAY_COUNT(cies); i++) {
		struct made m;
		begin(&m);
		put_functions(&m, 40000, cies[i]);
		CHECK_OK(finish(&m, NULL), &m.e);
		CHECK(m.t->fde_count == 40000 && m.t->bad_fdes == 0);
		CHECK(m.build.work < 4 * m.c.bytes.len + 2 * TEXT_BYTES);
		end(&m);
	}
}

static void more_cies_than_are_kept(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	put_functions(&m, 100000, 1000);
	CHECK(finish(&m, NULL) == E_LIMIT && !m.t && is_within(&m));
	CHECK(strstr(m.e.text, "made: its unwind table takes more than") != NULL);
	end(&m);
}

static void a_cie_that_is_a_sea_of_zeros(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	size_t cie = gen_cie(&m.c);
	size_t zeros = m.c.bytes.len;
	buf_zero(&m.c.bytes, 16u << 20);
	gen_fde(&m.c, cie, TEXT, 16, NULL, 0);
	for (uint32_t i = 0; i < 60000; i++)
		gen_fde(&m.c, zeros + i * 4, TEXT + i * 8, 8, NULL, 0);
	CHECK_OK(finish(&m, NULL), &m.e);
	CHECK(m.t->bad_fdes == 60000 && is_within(&m));
	end(&m);
}

/* Each gap is a reading of its own. */
static void gaps_without_end(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	size_t cie = gen_cie(&m.c);
	for (uint32_t i = 0; i < TEXT_BYTES / 32; i++)
		gen_fde(&m.c, cie, TEXT + i * 32, 16, NULL, 0);
	CHECK_OK(finish(&m, NULL), &m.e);
	CHECK(m.t->fde_count == TEXT_BYTES / 32 && m.t->bad_fdes == 0);
	/* Less than twice the bytes of the code, and what the entries cost. */
	CHECK(m.build.work < 2 * TEXT_BYTES + 4 * m.c.bytes.len);
	end(&m);
}

static void signal_returns_without_end(void **state)
{
	(void)state;
	static const uint8_t form[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x90 };
	uint8_t *code = malloc(TEXT_BYTES);
	CHECK(code != NULL);
	for (size_t i = 0; i < TEXT_BYTES; i += sizeof(form))
		memcpy(code + i, form, sizeof(form));
	struct made m;
	begin(&m);
	gen_fde(&m.c, gen_cie(&m.c), TEXT, 8, NULL, 0);
	CHECK_OK(finish(&m, code), &m.e);
	CHECK(unwind_table_find(m.t, TEXT + 8).cfa == UNWIND_CFA_SIGNAL);
	CHECK(unwind_table_find(m.t, TEXT + TEXT_BYTES - 8).cfa == UNWIND_CFA_SIGNAL);
	CHECK(is_within(&m));
	end(&m);
	free(code);
}

/* A Go program whose functions are described by turns at two places far apart. */
static void windows_read_by_turns(void **state)
{
	(void)state;
	enum { COUNT = 100000, HEADER = 72, GAP = 0x40000 };
	struct made m;
	begin(&m);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 16u << 20);
	uint64_t functions = HEADER + 8, places[2];
	places[0] = functions + COUNT * 8 + 4;
	places[1] = places[0] + GAP;
	uint64_t names = places[1] + GAP;
	buf_u32(&b, 0xfffffff1);
	buf_u32(&b, 0x08010000);
	const uint64_t words[] = { COUNT, 0, TEXT, names, 0, 0, names + 8, functions };
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		buf_u64(&b, words[i]);
	buf_zero(&b, functions - b.len);
	for (uint32_t i = 0; i < COUNT; i++) {
		buf_u32(&b, i * 8);
		buf_u32(&b, (uint32_t)(places[i % 2] - functions));
	}
	buf_u32(&b, COUNT * 8);
	buf_zero(&b, names - b.len);
	buf_zero(&b, 8);
	const uint8_t pcs[] = { 2, 8, 0 }; /* sp 0 below for 8 bytes */
	buf_put(&b, pcs, sizeof(pcs));
	gen_section(&m.g, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x30000000, b.data, b.len);
	m.g.header.e_type = ET_EXEC;
	CHECK(finish(&m, NULL) == E_LIMIT);
	uint64_t max = UNWIND_WORK_MIN + b.len * UNWIND_WORK_PER_BYTE;
	CHECK(m.build.work > max && m.build.work < max + (UNWIND_WORK_MIN >> 3));
	end(&m);
}

static void memory_has_a_limit(void **state)
{
	(void)state;
	static const struct {
		uint64_t memory, table;
		enum status s;
	} cases[] = {
		{ 0, 0, OK }, { 1u << 20, 0, E_LIMIT },           /* the section */
		{ (2u << 20) + 65536, 0, E_LIMIT },               /* the functions */
		{ 8u << 20, 0, OK }, { 8u << 20, 4096, E_LIMIT }, /* the table */
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct made m;
		begin(&m);
		m.build.memory_bytes_max = cases[i].memory;
		m.build.table_bytes_max = cases[i].table;
		size_t cie = gen_cie(&m.c);
		static const uint8_t rows[][2] = { { 0x0e, 16 }, { 0x0e, 24 } };
		for (uint32_t n = 0; n < 80000; n++)
			gen_fde(&m.c, cie, TEXT + n * 8, 8, rows[n % 2], 2);
		CHECK(m.c.bytes.len > 1u << 20 && m.c.bytes.len < 2u << 20);
		CHECK(finish(&m, NULL) == cases[i].s);
		CHECK(cases[i].s == OK || strncmp(m.e.text, "made: ", 6) == 0);
		end(&m);
	}
}

static bool count_pause(void *ctx)
{
	uint32_t *left = ctx;
	return --*left > 0;
}

static void pauses_and_stops(void **state)
{
	(void)state;
	for (uint32_t most = 1; most <= 1000; most += 999) {
		struct made m;
		begin(&m);
		uint32_t left = most;
		m.build.pause = count_pause;
		m.build.pause_ctx = &left;
		put_functions(&m, 100000, 8);
		CHECK(finish(&m, NULL) == (most == 1 ? E_CANCELED : OK));
		CHECK(left < most && most - left <= m.build.work >> 20);
		end(&m);
	}
}

TEST_MAIN(cmocka_unit_test(long_cies_are_read_once), cmocka_unit_test(more_cies_than_are_kept),
	cmocka_unit_test(a_cie_that_is_a_sea_of_zeros), cmocka_unit_test(gaps_without_end),
	cmocka_unit_test(signal_returns_without_end), cmocka_unit_test(windows_read_by_turns),
	cmocka_unit_test(memory_has_a_limit), cmocka_unit_test(pauses_and_stops))
