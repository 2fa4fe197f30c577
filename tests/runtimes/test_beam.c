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

TEST_MAIN(cmocka_unit_test(finds_it), cmocka_unit_test(refuses_what_it_does_not_know))
