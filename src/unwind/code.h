/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code: the executable parts of a file, by file offset: its segments, the sections in them, and
 * rules for code that no call frame information covers. Private to unwind/.
 */
#pragma once

#include "unwind/machine.h"
#include "unwind/pages.h"
#include "unwind/work.h"

/* Padding between functions: a gap of at most this many bytes keeps the rule before it. */
#define CODE_PADDING_MAX 15
/* Code without information at a program's entry point counts as the entry up to where it leaves,
 * and up to this many bytes. */
#define CODE_ENTRY_BYTES_MAX 256
/* Bytes of .init and .fini that are read; real ones have 27. */
#define CODE_CRT_BYTES_MAX 256
/* How many bytes of a file's code without unwind information are searched for signal returns. */
#define CODE_SEARCH_BYTES_MAX ((uint64_t)16 << 20)
/* How many bytes of it are read as instructions: a file with more was built with frame pointers
 * (browsers).
 */
#define CODE_READ_BYTES_MAX ((uint64_t)4 << 20)
/* Bytes that are read at a time: functions are shorter. */
#define CODE_READ_BYTES ((size_t)256 << 10)

/* A read for a short gap also reads this much behind it, for the next gaps. */
#define CODE_WINDOW_BYTES ((size_t)64 << 10)

/* Executable segments and sections that are used; files have one to three segments and a dozen
 * sections. */
#define CODE_SEGMENTS_MAX 64
#define CODE_SECTIONS_MAX 1024

struct code_part {      /* a segment or a section */
	uint64_t begin; /* file offsets */
	uint64_t end;
	uint64_t vaddr; /* of begin */
	struct str name;
};

struct code {
	const struct objfile *obj;
	const struct unwind_machine *machine;
	struct work *work;
	VEC(struct code_part) segments; /* ascending, not overlapping, not empty */
	VEC(struct code_part) sections; /* ascending */
	uint64_t entry;                 /* file offset; UINT64_MAX: none that can be trusted */
	bool entry_is_program;          /* of an executable: outermost, even if its CFI says else */
	uint64_t searched_bytes;
	uint64_t read_bytes;
	size_t section_hint; /* sections before this one end before the last gap */
	uint64_t window;     /* file offset */
	size_t window_len;
	uint8_t *window_bytes; /* NULL: nothing was read yet */
};

/* The machine must be known. `work` stays the caller's, and is used by all functions below. */
NODISCARD enum status code_init(
	struct code *c, const struct objfile *obj, struct work *work, struct err *e);
void code_deinit(struct code *c);
/* The segment that holds an address; NULL: none. */
const struct code_part *code_find(const struct code *c, uint64_t vaddr);
/* Adds rows for [from, to), which no call frame information covers. It must lie in one segment, and
 * not before the last gap. */
void code_put_gap(struct code *c, uint64_t from, uint64_t to, struct pages *out);
