/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder: collects names in the child and writes a table. The readers (readers.h) fill it. Sizes
 * are bounded by the child's memory limit: a function that gets no memory returns E_NOMEM.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "debuginfo/symtab/format.h"

/* Executable sections that are used; more are ignored. */
#define DEBUGINFO_SPANS_MAX 65536
/* A longer name or path is cut. */
#define DEBUGINFO_TEXT_MAX 16384

/* [start, end) of virtual addresses. */
struct debuginfo_span {
	uint64_t start;
	uint64_t end;
};

/* A range with its name: `node` says which function it is, and where that is inlined. */
struct debuginfo_piece {
	uint64_t start;
	uint64_t end;
	uint32_t node;
	uint32_t line;
};

/* One ELF symbol of code. `name` points into the ELF's own memory; NULL: only the beginning of the
 * function is known. */
struct debuginfo_symbol {
	uint64_t start;
	uint64_t end;
	const char *name;
	uint64_t origin;   /* for functions without a name: where it began, before it was cut */
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
/* Whether it is a symbol's version: "@GLIBC_2.34", "@@LIBCURL_4". The text behind '@' in Crystal's
 * "Array(Int32)@Array(T)#push" is none. */
bool debuginfo_is_version(struct str s);
/* A function's name, without a symbol's version ("shm_open@@GLIBC_2.34"). */
NODISCARD enum status debuginfo_builder_name(
	struct debuginfo_builder *b, struct str name, uint32_t *out);
NODISCARD enum status debuginfo_builder_function(
	struct debuginfo_builder *b, struct symtab_function f, uint32_t *out);
NODISCARD enum status debuginfo_builder_node(
	struct debuginfo_builder *b, struct symtab_node n, uint32_t *out);
/* Ranges of one source do not overlap; where ranges of two sources do, the first one added wins. */
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
/* The executable section that holds an address; NULL: it is no code. */
const struct debuginfo_span *debuginfo_builder_code(
	const struct debuginfo_builder *b, uint64_t vaddr);
/* Sort the pieces, cut overlaps, fill the holes from the symbols, join equal neighbours. */
NODISCARD enum status debuginfo_builder_settle(struct debuginfo_builder *b);
/* Writes the table to `fd`. */
NODISCARD enum status debuginfo_builder_write(
	struct debuginfo_builder *b, int fd, uint64_t max_bytes, struct err *e);
