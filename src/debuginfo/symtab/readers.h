/* SPDX-License-Identifier: Apache-2.0 */
/* readers: each fills the builder from one kind of names of an ELF file. */
#pragma once

#include "debuginfo/symtab/builder.h"

#include <elfutils/libdw.h>
#include <gelf.h>

/* ---- symbols.c: everything but DWARF, by libelf ---- */

/* Segments, executable sections, build id. */
NODISCARD enum status debuginfo_read_headers(struct debuginfo_builder *b, Elf *elf, struct err *e);
/* Symbol tables of `elf`; SHT_SYMTAB counts as `flag`. */
NODISCARD enum status debuginfo_read_symbols(
	struct debuginfo_builder *b, Elf *elf, enum symtab_flag flag);
/* Sorts the symbols, chooses one of several at an address, gives those without a size an end, and
 * makes them disjoint. */
NODISCARD enum status debuginfo_symbols_settle(struct debuginfo_builder *b);

/* ---- plt.c ---- */

NODISCARD enum status debuginfo_read_plt(struct debuginfo_builder *b, Elf *elf);

/* ---- ehframe.c ---- */

/* Functions without names, as symbols: for a file without .symtab. */
NODISCARD enum status debuginfo_read_ehframe(struct debuginfo_builder *b, Elf *elf);

/* ---- gopclntab.c ---- */

/* Functions and lines of a Go program, as pieces: for a file without DWARF. */
NODISCARD enum status debuginfo_read_gopclntab(struct debuginfo_builder *b, Elf *elf);

/* ---- minidebug.c ---- */

/* The decompressed bytes and the ELF file over them are the caller's, and must stay: symbols point
 * there. *out is untouched when there is none. */
NODISCARD enum status debuginfo_read_minidebuginfo(
	struct debuginfo_builder *b, Elf *elf, struct buf *bytes, Elf **out);

/* ---- lines.c ---- */

/* If there are line programs that libdw misreads, gives libdw a copy of the section without them.
 * E_NOMEM. */
NODISCARD enum status debuginfo_repair_lines(Elf *elf);

/* ---- dwarf.c ---- */

/* DIEs within DIEs. */
#define DEBUGINFO_DEPTH_MAX 512
struct debuginfo_dwarf_limits {
	uint64_t memory_bytes; /* of the process' heap */
	int64_t cpu_ns;        /* CPU time of this process, from its start */
};
/* All compile units of `elf`; `alt` may be NULL. Damage is only noted in the builder's flags. */
void debuginfo_read_dwarf(struct debuginfo_builder *b, Elf *elf, Elf *alt,
	const struct debuginfo_dwarf_limits *limits);

/* ---- path.c ---- */

#define DEBUGINFO_SOURCE_PATH_MAX 4096
/* Joins the path of a source file as a compiler noted it with the folder that the compiler ran in
 * (NULL: not known), without "." and "..". Go's debug/dwarf makes the same path, and its users name
 * sources by it. False: it is too long, and *out is not written. */
bool debuginfo_path_join(const char *dir, const char *path, char out[DEBUGINFO_SOURCE_PATH_MAX]);
