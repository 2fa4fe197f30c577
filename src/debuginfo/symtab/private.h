/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo/symtab/private: what the files of debuginfo/ share.
 *
 * The builder collects names in the child and writes a table: dwarf.c and symbols.c fill it,
 * builder.c merges and writes. Sizes are bounded by the child's memory limit: every function that
 * needs memory says so by E_NOMEM.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "debuginfo/debuginfo.h"
#include "debuginfo/symtab/format.h"

#include <elfutils/libdw.h>
#include <gelf.h>

/* Executable sections looked at. */
#define DEBUGINFO_SPANS_MAX 65536
/* DIEs within DIEs. */
#define DEBUGINFO_DEPTH_MAX 512
/* A longer name or path is cut. */
#define DEBUGINFO_TEXT_MAX 16384

/* [start, end) of virtual addresses. */
struct debuginfo_span {
	uint64_t start;
	uint64_t end;
};

/* A range with its name. Which function, where inlined: node. */
struct debuginfo_piece {
	uint64_t start;
	uint64_t end;
	uint32_t node;
	uint32_t line;
};

/* One ELF symbol of code. `name` points into the ELF's own memory; NULL: a function of which only
 * its beginning is known. */
struct debuginfo_symbol {
	uint64_t start;
	uint64_t end;
	const char *name;
	uint64_t origin;   /* where it began, before it was cut; for the nameless */
	uint32_t function; /* once interned, else 0 */
	uint8_t rank;      /* smaller is better */
	bool local;
	bool sized;
	bool typed; /* a function, not only a label */
};

struct debuginfo_builder {
	struct strtab strings;
	VEC(struct symtab_function) functions;
	struct map function_index;
	VEC(struct symtab_node) nodes;
	struct map node_index;
	VEC(struct debuginfo_piece) pieces;
	VEC(struct symtab_segment) segments;
	VEC(struct debuginfo_span) code; /* executable sections, sorted, disjoint */
	VEC(struct debuginfo_symbol)
	symbols; /* after debuginfo_symbols_settle(): sorted, disjoint */
	uint32_t flags;
	uint8_t build_id[SYMTAB_BUILD_ID_MAX];
	uint32_t build_id_len;
};

NODISCARD enum status debuginfo_builder_init(struct debuginfo_builder *b, uint64_t memory_bytes);
void debuginfo_builder_deinit(struct debuginfo_builder *b);
NODISCARD enum status debuginfo_builder_text(
	struct debuginfo_builder *b, const char *cstr, uint32_t *out);
/* "@GLIBC_2.34", "@@LIBCURL_4"; what follows in Crystal's "Array(Int32)@Array(T)#push" is none. */
bool debuginfo_is_version(struct str s);
/* A function's name, without a symbol's version ("shm_open@@GLIBC_2.34"). */
NODISCARD enum status debuginfo_builder_name(
	struct debuginfo_builder *b, struct str name, uint32_t *out);
NODISCARD enum status debuginfo_builder_function(
	struct debuginfo_builder *b, struct symtab_function f, uint32_t *out);
NODISCARD enum status debuginfo_builder_node(
	struct debuginfo_builder *b, struct symtab_node n, uint32_t *out);
/* Ranges of one source do not overlap; where two sources do, the first one added wins. */
NODISCARD enum status debuginfo_builder_add(struct debuginfo_builder *b, struct debuginfo_piece p);
/* The function of a symbol (interned on first use). */
NODISCARD enum status debuginfo_builder_symbol(
	struct debuginfo_builder *b, size_t index, uint32_t *out_function);
/* The one of `count` sorted, disjoint spans that holds the address, or NULL. */
const struct debuginfo_span *debuginfo_span_find(
	const struct debuginfo_span *v, size_t count, uint64_t vaddr);
int debuginfo_span_cmp(const void *a, const void *b); /* by start, for qsort */
/* After debuginfo_symbols_settle(): index of the symbol that holds `vaddr`, or of the first one
 * after it. */
size_t debuginfo_symbols_at(const struct debuginfo_builder *b, uint64_t vaddr);
/* Is it code? NULL when no executable section holds it. */
const struct debuginfo_span *debuginfo_builder_code(
	const struct debuginfo_builder *b, uint64_t vaddr);
/* Sort the pieces, cut overlaps, fill the holes from the symbols, join equal neighbours. */
NODISCARD enum status debuginfo_builder_settle(struct debuginfo_builder *b);
/* The bytes of the table, to `fd`. */
NODISCARD enum status debuginfo_builder_write(
	struct debuginfo_builder *b, int fd, uint64_t max_bytes, struct err *e);

/* ---- symbols.c: everything but DWARF, by libelf ---- */

/* Segments, executable sections, build id. */
NODISCARD enum status debuginfo_read_headers(struct debuginfo_builder *b, Elf *elf, struct err *e);
/* Symbol tables of `elf`; SHT_SYMTAB counts as `flag`. */
NODISCARD enum status debuginfo_read_symbols(
	struct debuginfo_builder *b, Elf *elf, enum symtab_flag flag);
/* Sort, choose among those at one address, give unsized ones an end, make them disjoint. */
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

/* Where there are line programs that libdw misreads: a copy without them, which it takes from now
 * on. E_NOMEM. */
NODISCARD enum status debuginfo_repair_lines(Elf *elf);

/* ---- dwarf.c ---- */

struct debuginfo_dwarf_limits {
	uint64_t memory_bytes; /* of the heap */
	int64_t cpu_ns;        /* of this process, from its start */
};
/* All compile units of `elf`; `alt` may be NULL. What goes wrong ends in the builder's flags. */
void debuginfo_read_dwarf(struct debuginfo_builder *b, Elf *elf, Elf *alt,
	const struct debuginfo_dwarf_limits *limits);

/* ---- child.c ---- */

/* Built with a sanitizer, which needs address space, and system calls to report. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEBUGINFO_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define DEBUGINFO_SANITIZED 1
#endif
#endif
#ifndef DEBUGINFO_SANITIZED
#define DEBUGINFO_SANITIZED 0
#endif

/* Descriptors of the child beside 0 (ELF file), 1 (table), 2 (sentence). */
#define DEBUGINFO_CHILD_DEBUG_FD 3
#define DEBUGINFO_CHILD_ALT_FD 4
/* Bits of the child's argument FILES: what is there, and whether DWARF is left alone, because a
 * child before this one did not survive it. */
enum debuginfo_child_file {
	DEBUGINFO_CHILD_DEBUG = 1,
	DEBUGINFO_CHILD_ALT = 2,
	DEBUGINFO_CHILD_NO_DWARF = 4,
};
bool debuginfo_child_is_ready(void);

/* ---- path.c ---- */

#define DEBUGINFO_SOURCE_PATH_MAX 4096
/* The path of a source file as a compiler noted it, relative to the folder that it ran in (NULL:
 * not known), without "." and "..": as Go's debug/dwarf has it, whose users name sources by it.
 * False: too long, *out is not written. */
bool debuginfo_path_join(const char *dir, const char *path, char out[DEBUGINFO_SOURCE_PATH_MAX]);

/* ---- table.c ---- */

NODISCARD enum status debuginfo_table_open_fd(
	int fd, const char *name, struct debuginfo_table **out, struct err *e);
/* Id of the range that holds the address, UINT32_MAX when no region does: what lookup costs without
 * the names. */
uint32_t debuginfo_table_range(const struct debuginfo_table *t, uint64_t vaddr);
