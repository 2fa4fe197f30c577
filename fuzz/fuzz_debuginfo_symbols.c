/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever an ELF file says, its headers, symbols, PLT and .gopclntab become a table that
 * passes its own checks. (libelf reads the file; DWARF is libdw's and not looked at here.) */
#include "fuzz/fuzz.h"

#include "debuginfo/private.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUTPUT_MAX (64 << 20)

static enum status read_names(struct debuginfo_builder *b, Elf *elf)
{
	enum status s = debuginfo_read_headers(b, elf, NULL);
	if (s == OK)
		s = debuginfo_read_symbols(b, elf, SYMTAB_SYMTAB);
	if (s == OK)
		s = debuginfo_read_plt(b, elf);
	if (s == OK)
		s = debuginfo_read_ehframe(b, elf);
	if (s == OK)
		s = debuginfo_symbols_settle(b);
	if (s == OK)
		s = debuginfo_read_gopclntab(b, elf);
	return s == OK ? debuginfo_builder_settle(b) : s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("table", MFD_CLOEXEC);
	char *copy = malloc(size + 1);
	FUZZ_CHECK(copy && fd >= 0 && ftruncate(fd, 0) == 0);
	memcpy(copy, data, size);
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory(copy, size);
	struct debuginfo_builder b;
	FUZZ_CHECK(debuginfo_builder_init(&b, OUTPUT_MAX) == OK);
	if (elf && read_names(&b, elf) == OK &&
		debuginfo_builder_write(&b, fd, OUTPUT_MAX, NULL) == OK) {
		struct debuginfo_table *t;
		FUZZ_CHECK(debuginfo_table_open_fd(fd, "table", &t, NULL) == OK);
		debuginfo_table_close(t);
	}
	debuginfo_builder_deinit(&b);
	elf_end(elf);
	free(copy);
	return 0;
}
