/* SPDX-License-Identifier: Apache-2.0 */
/* Line programs with padding as Zig's compiler writes it: extended opcodes of more than 127 bytes.
 */
#include "made.h"

#include "os/os.h"

#include <stdlib.h>
#include <sys/stat.h>

#define LINES_MAX 4096

/* The section of the file "a", of one unit of DWARF 5, with `pad` bytes at the program's beginning.
 */
static void write_padded(size_t pad)
{
	static uint8_t in[LINES_MAX], out[2 * LINES_MAX];
	char path[128];
	struct stat st;
	struct err e = { 0 };
	int fd = made_open("lines");
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size < LINES_MAX);
	size_t len = (size_t)st.st_size;
	CHECK_OK(os_pread_full(fd, in, len, 0, "lines", &e), &e);
	close(fd);
	uint32_t unit, header;
	memcpy(&unit, in, 4);
	memcpy(&header, in + 8, 4);
	CHECK(unit + 4 == len && in[4] == 5);
	size_t begin = 12 + header, opcode = pad - 3;
	memcpy(out, in, begin);
	memset(out + begin, 0, pad);
	out[begin + 1] = (uint8_t)(0x80 | (opcode & 0x7f));
	out[begin + 2] = (uint8_t)(opcode >> 7);
	memcpy(out + begin + pad, in + begin, len - begin);
	unit += (uint32_t)pad;
	memcpy(out, &unit, 4);
	snprintf(path, sizeof(path), "%s/padded", made_dir);
	FILE *f = fopen(path, "we");
	CHECK(f && fwrite(out, len + pad, 1, f) == 1);
	fclose(f);
}

static void reads_long_paddings(void **state)
{
	(void)state;
	made_write("a.c", "volatile int sink;\n"
			  "void work(void) { sink++; }\n"
			  "void _start(void) { work(); for (;;) sink--; }\n");
	made_run("cc -gdwarf-5 -O1 -fno-inline -nostdlib -static -o a a.c && "
		 "objcopy --dump-section .debug_line=lines a");
	/* What is left behind full pads: nothing, and less than a pad, and more. */
	static const size_t pads[] = { 131, 258, 259, 260, 261, 262, 1000, 3000 };
	for (size_t i = 0; i < ARRAY_COUNT(pads); i++) {
		write_padded(pads[i]);
		made_run("objcopy --update-section .debug_line=padded a b");
		struct debuginfo_table *t = made_table("b", NULL, NULL);
		uint64_t at = made_find("b", t, "work", 0);
		struct debuginfo_frame f[2];
		CHECK(at && debuginfo_table_find(t, at, f, 2) == 1);
		if (f[0].line != 2)
			print_error("%zu bytes\n", pads[i]);
		CHECK(f[0].line == 2 && str_ends(f[0].file, STR("/a.c")));
		debuginfo_table_close(t);
	}
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(reads_long_paddings))
