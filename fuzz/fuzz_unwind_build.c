/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is .eh_frame (first byte even) or .debug_frame (odd) of a file whose text is the input
 * too, or with bit 2 of it Go's .gopclntab behind a good header; or, when it begins with the ELF
 * magic, the file itself. Property: what is built passes the check, answers at any offset, and
 * comes back equal from the cache.
 */
#include "fuzz/fuzz.h"

#include "tests/gen/elf.h"
#include "unwind/unwind.h"

static void check_table(const struct objfile *obj, uint64_t places)
{
	struct unwind_table *t = NULL;
	struct unwind_table *back = NULL;
	if (unwind_table_build(obj, &t, NULL) != OK)
		return;
	FUZZ_CHECK(unwind_table_check(t, NULL) == OK);
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, 64 << 20);
	FUZZ_CHECK(unwind_table_encode(t, &bytes) == OK);
	FUZZ_CHECK(unwind_table_decode(buf_view(&bytes), &back, NULL) == OK);
	uint64_t begin = (uint64_t)t->first_page << UNWIND_PAGE_SHIFT;
	for (uint64_t i = 0; i < places; i++) {
		uint64_t at = begin + i * (185500 / places);
		struct unwind_rule a = unwind_table_find(t, at);
		struct unwind_rule b = unwind_table_find(back, at);
		FUZZ_CHECK(memcmp(&a, &b, sizeof(a)) == 0 && a.cfa < UNWIND_CFA_COUNT);
	}
	unwind_table_free(back);
	unwind_table_free(t);
}

/* A good header of Go 1.20, up to which the tables of the input are offsets. */
static void put_golang(struct gen_elf *g, const uint8_t *data, size_t size)
{
	uint32_t s = gen_section(g, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x800000, NULL, 0);
	struct buf *b = &g->sections[s].bytes;
	const uint64_t words[] = { data[2], 0, 0x1000, 72, 72, 72, 72u + data[3], 72u + data[1] };
	buf_put(b, "\xf1\xff\xff\xff\x00\x00\x01\x08", 8);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		buf_u64(b, words[i]);
	buf_put(b, data, size);
	g->sections[s].header.sh_size = b->len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct objfile *obj = NULL;
	if (size < 4 || size > 1 << 20)
		return 0;
	const uint64_t places = fuzz_thorough(data, size) ? 500 : 20;
	if (memcmp(data, ELFMAG, SELFMAG) == 0) {
		if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) == OK)
			check_table(obj, places);
		objfile_close(obj);
		return 0;
	}
	bool debug = data[0] & 1;
	struct gen_elf g;
	gen_elf_init(&g);
	g.header.e_type = data[0] & 2 ? ET_EXEC : ET_DYN;
	g.header.e_entry = 0x1000 + data[1];
	uint32_t text = gen_section(
		&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, data, size);
	gen_load(&g, text, PF_R | PF_X);
	gen_section(&g, debug ? ".debug_frame" : ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x400000,
		data + 2, size - 2);
	if (data[0] & 4)
		put_golang(&g, data, size);
	gen_elf_finish(&g);
	FUZZ_CHECK(objfile_open_bytes(g.file.data, g.file.len, "fuzz", &obj, NULL) == OK);
	check_table(obj, places);
	objfile_close(obj);
	gen_elf_deinit(&g);
	return 0;
}
