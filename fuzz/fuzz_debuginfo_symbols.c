/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever an ELF file says, its headers, symbols, PLT and .gopclntab become a table that
 * passes its own checks. (libelf reads the file; DWARF is libdw's and not looked at here.) */
#include "fuzz/fuzz.h"

#include "debuginfo/debuginfo.h"
#include "debuginfo/symtab/readers.h"
#include "debuginfo/symtab/table.h"
#include "objfile/objfile.h"

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

/* What is extracted is an ELF file too, has as many sections, and is hardly longer. */
static void extract(const uint8_t *data, size_t size, int fd)
{
	struct objfile *obj, *again;
	uint32_t count = 0, count_again = 0;
	if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) != OK)
		return;
	objfile_sections(obj, &count);
	FUZZ_CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	if (debuginfo_extract(obj, fd, NULL) == OK) {
		int copy = dup(fd);
		FUZZ_CHECK(objfile_open_fd(copy, "extracted", &again, NULL) == OK);
		objfile_sections(again, &count_again);
		FUZZ_CHECK(count == count_again);
		FUZZ_CHECK(objfile_size(again) <= size + 64 + count * 4160ul + 8 + 56ul * 4096);
		objfile_close(again);
	}
	objfile_close(obj);
	FUZZ_CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("table", MFD_CLOEXEC);
	char *copy = malloc(size + 1);
	FUZZ_CHECK(copy && fd >= 0 && ftruncate(fd, 0) == 0);
	memcpy(copy, data, size);
	extract(data, size, fd);
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
