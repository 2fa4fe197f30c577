/* SPDX-License-Identifier: Apache-2.0 */
/* The child's half of a listing of instructions: what it reads, what it writes. */
#include "test.h"

#include "debuginfo/symtab/child.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

static int load(void **state)
{
	(void)state;
	struct err e;
	CHECK_OK(debuginfo_code_load(&e), &e);
	return 0;
}

static void writes_a_line_for_each(void **state)
{
	(void)state;
	static const struct {
		const char *name, *code, *listing;
		size_t len;
		uint32_t machine;
		enum status status;
	} cases[] = {
		{ "two", "\x90\xc3", "1000 1 nop\n1001 1 ret\n", 2, EM_X86_64, OK },
		{ "operands", "\x48\x89\xe5", "1000 3 mov rbp, rsp\n", 3, EM_X86_64, OK },
		{ "cut", "\x48", "1000 1 .byte 0x48\n", 1, EM_X86_64, OK },
		{ "none", "", "", 0, EM_X86_64, OK },
		{ "machine", "\x90", "", 1, EM_S390, E_UNSUPPORTED },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		char out[256] = "";
		struct err e = { 0 };
		int in = memfd_create("in", MFD_CLOEXEC), to = memfd_create("out", MFD_CLOEXEC);
		CHECK(in >= 0 && to >= 0);
		buf_init(&b, 4096);
		buf_u64(&b, 0x1000);
		buf_u32(&b, c->machine);
		buf_u32(&b, 0);
		buf_put(&b, c->code, c->len);
		CHECK(pwrite(in, b.data, b.len, 0) == (ssize_t)b.len);
		CHECK_CASE(c, debuginfo_list_code(in, to, &e) == c->status);
		CHECK(pread(to, out, sizeof(out) - 1, 0) >= 0);
		if (strcmp(out, c->listing) != 0)
			print_error("%s", out);
		CHECK_CASE(c, strcmp(out, c->listing) == 0);
		close(in);
		close(to);
	}
}

static void refuses_what_is_no_piece(void **state)
{
	(void)state;
	struct err e = { 0 };
	int in = memfd_create("in", MFD_CLOEXEC);
	CHECK(in >= 0 && pwrite(in, "short", 5, 0) == 5);
	CHECK(debuginfo_list_code(in, -1, &e) == E_INVALID && strstr(e.text, "5 bytes"));
	CHECK(ftruncate(in, 1 << 20) == 0 && lseek(in, 0, SEEK_SET) == 0);
	CHECK(debuginfo_list_code(in, -1, &e) == E_LIMIT);
	close(in);
}

TEST_MAIN(cmocka_unit_test_setup(writes_a_line_for_each, load),
	cmocka_unit_test(refuses_what_is_no_piece))
