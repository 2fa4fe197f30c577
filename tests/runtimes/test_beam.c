/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like Erlang's emulator, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

static enum status find(
	const char *version, const char *symbol, struct runtime_record *out, struct err *e)
{
	static const uint8_t code[MADE_TEXT_BYTES];
	const struct made_elf m = {
		.constants = version, .code = code, .symbols = { { symbol, MADE_TEXT + 0x40, 8 } }
	};
	return made_elf_find(&m, out, e);
}

static void finds_it(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK_OK(find("(BEAM) emulator version 13.1.5", "beamasm_init", &r, &e), &e);
	CHECK(r.kind == RUNTIME_BEAM && r.version == 25 << 8);
	CHECK(r.text_bytes > 0);
	CHECK_OK(find("(BEAM) emulator version 15.2", "beamasm_init", &r, &e), &e);
	CHECK(r.version == 27 << 8);
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	CHECK(find("(BEAM) emulator version 12.3", "beamasm_init", &r, NULL) == E_UNSUPPORTED);
	CHECK(find("emulator", "beamasm_init", &r, NULL) == E_UNSUPPORTED);
	CHECK(find("(BEAM) emulator version 13.1", "process_main", &r, NULL) == E_NOTFOUND);
	assert_int_equal(r.kind, RUNTIME_NONE);
}

/* A stripped emulator: an instruction leads to the descriptor. */
static void finds_it_by_what_it_tells_debuggers(void **state)
{
	(void)state;
	static const struct {
		const char *name, *symbol;
		uint32_t stored, at, words[3];
		enum status want;
	} cases[] = {
		{ "as it is", "erts_alc_test", 1, 0x40, { 1, 0, 0 }, OK },
		{ "another program", "main", 1, 0x40, { 1, 0, 0 }, E_NOTFOUND },
		{ "another number", "erts_alc_test", 2, 0x40, { 1, 0, 0 }, E_NOTFOUND },
		{ "another variable", "erts_alc_test", 1, 0x40, { 2, 0, 0 }, E_NOTFOUND },
		{ "one that has a number", "erts_alc_test", 1, 0x40, { 1, 1, 0 }, E_NOTFOUND },
		{ "one that points to something", "erts_alc_test", 1, 0x40, { 1, 0, 1 },
			E_NOTFOUND },
		{ "one at an odd place", "erts_alc_test", 1, 0x44, { 1, 0, 0 }, E_NOTFOUND },
		{ "one beyond the file", "erts_alc_test", 1, 0x7fff0000, { 1, 0, 0 }, E_NOTFOUND },
	};
	FOR_EACH_CASE (c, cases) {
		uint8_t code[MADE_TEXT_BYTES] = { 0 }, data[1024] = { 0 };
		const struct made_elf m = { .constants = "(BEAM) emulator version 17.1",
			.code = code,
			.data = data,
			.symbols = { { c->symbol, MADE_TEXT + 0x40, 8 } } };
		struct runtime_record r = { 0 };
		uint32_t distance = MADE_DATA + c->at + 4 - (MADE_TEXT + MADE_TEXT_BYTES);
		memcpy(code + MADE_TEXT_BYTES - 10, "\xc7\x05", 2);
		memcpy(code + MADE_TEXT_BYTES - 8, &distance, sizeof(distance));
		memcpy(code + MADE_TEXT_BYTES - 4, &c->stored, sizeof(c->stored));
		if (c->at < sizeof(data))
			memcpy(data + c->at, c->words, sizeof(c->words));
		CHECK_CASE(c, made_elf_find(&m, &r, NULL) == c->want);
		if (c->want == OK)
			CHECK(r.kind == RUNTIME_BEAM && r.version == 29 << 8);
	}
}

TEST_MAIN(cmocka_unit_test(finds_it_by_what_it_tells_debuggers), cmocka_unit_test(finds_it),
	cmocka_unit_test(refuses_what_it_does_not_know))
