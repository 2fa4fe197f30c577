/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, listed by the real child: known bytes, what is no instruction, and limits. */
#include "test.h"

#include "debuginfo/debuginfo.h"

#include <elf.h>
#include <stdlib.h>

static struct arena arena;
static struct buf text;
static struct debuginfo_instruction *v;
static size_t count;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, (size_t)64 << 20);
	buf_init(&text, (size_t)16 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_deinit(&arena);
	buf_deinit(&text);
	return 0;
}

static enum status list(uint16_t machine, const void *bytes, size_t len, struct err *e)
{
	const struct debuginfo_code code = {
		.machine = machine, .address = 0x401000, .bytes = str_make(bytes, len)
	};
	buf_clear(&text);
	return debuginfo_disassemble(&code, &text, &arena, &v, &count, e);
}

static void lists_instructions(void **state)
{
	(void)state;
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0x10, 0, 0, 0, 0x06, 0xc3 };
	static const uint8_t arm[] = { 0xfd, 0x7b, 0xbf, 0xa9, 0xc0, 0x03, 0x5f, 0xd6 };
	static const struct {
		const char *text;
		uint64_t address;
		uint32_t size;
	} expected[] = {
		{ "push rbp", 0x401000, 1 },
		{ "mov rbp, rsp", 0x401001, 3 },
		{ "call 0x401019", 0x401004, 5 },
		{ ".byte 0x06", 0x401009, 1 }, /* none in 64-bit code */
		{ "ret", 0x40100a, 1 },
	};
	struct err e = { 0 };
	CHECK_OK(list(EM_X86_64, code, sizeof(code), &e), &e);
	CHECK(count == ARRAY_COUNT(expected));
	for (size_t i = 0; i < count; i++) {
		if (!str_eq(v[i].text, str_of(expected[i].text)))
			print_error("%.*s\n", STR_ARG(v[i].text));
		CHECK(str_eq(v[i].text, str_of(expected[i].text)));
		CHECK(v[i].address == expected[i].address && v[i].size == expected[i].size);
	}
	CHECK_OK(list(EM_AARCH64, arm, sizeof(arm), &e), &e);
	CHECK(count == 2 && str_eq(v[1].text, STR("ret")) && v[1].address == 0x401004);
}

static void keeps_to_its_limits(void **state)
{
	(void)state;
	struct err e = { 0 };
	size_t most = DEBUGINFO_CODE_BYTES_MAX;
	uint8_t *bytes = calloc(most + 1, 1);
	CHECK(bytes);
	CHECK(list(EM_X86_64, bytes, most + 1, &e) == E_LIMIT);
	CHECK(list(EM_386, bytes, 4, &e) == E_UNSUPPORTED && strstr(e.text, "machine 3"));
	CHECK_OK(list(EM_X86_64, bytes, 0, &e), &e);
	CHECK(count == 0);
	/* Any bytes are a listing, as a whole. */
	srand(7);
	for (size_t i = 0; i < most; i++)
		bytes[i] = (uint8_t)rand();
	CHECK_OK(list(EM_X86_64, bytes, most, &e), &e);
	CHECK(count > most / 16 && v[count - 1].address + v[count - 1].size == 0x401000 + most);
	/* A listing that does not fit. */
	CLEANUP(buf_deinit) struct buf small;
	const struct debuginfo_code code = { .machine = EM_X86_64, .bytes = str_make(bytes, 4096) };
	buf_init(&small, 1000);
	CHECK(debuginfo_disassemble(&code, &small, &arena, &v, &count, &e) == E_LIMIT);
	free(bytes);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
TEST_MAIN_WITH(debuginfo_child_main, TEST(lists_instructions), TEST(keeps_to_its_limits))
