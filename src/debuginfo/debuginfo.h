/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo: one compact, memory-mapped symbol table for each build id (docs/formats/symtab.md),
 * made once from DWARF (with inlined calls and lines), .symtab, .dynsym and MiniDebugInfo.
 *
 * Layer 3 (may use base, os, codec, objfile). ELF and DWARF are hostile input: debuginfo_build()
 * runs in a short-lived child process with limits and seccomp; a broken file costs its own names
 * only. Nothing else of the server reads those bytes.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "os/os.h"

#define DEBUGINFO_FRAMES_MAX 256 /* inlined calls at one address */

struct debuginfo_limits {
	uint64_t memory_bytes; /* of the child */
	uint32_t cpu_seconds;
	uint64_t output_bytes;
};
void debuginfo_limits_default(struct debuginfo_limits *l);

/* Build the table of the ELF file `fd` (and, unless -1, of the separate debug file `debug_fd`) at
 * `out_path`, atomically. OK also when the file has no names at all: then the table says so.
 * E_INVALID: not an ELF file. E_LIMIT: the child passed a limit. E_CORRUPT: the child crashed. */
NODISCARD enum status debuginfo_build(int fd, int debug_fd, const char *out_path,
	const struct debuginfo_limits *limits, struct err *e);

struct debuginfo_table;

/* Maps a table that debuginfo_build() made. E_CORRUPT names the section and the offset. */
NODISCARD enum status debuginfo_table_open(
	const char *path, struct debuginfo_table **out, struct err *e);
void debuginfo_table_close(struct debuginfo_table *t);

struct debuginfo_frame {
	struct str name; /* as in the debug information: a linkage name where there is one */
	struct str file; /* "" when not known */
	uint32_t line;   /* 0 when not known */
	uint32_t start_line;
	bool inlined; /* into the next frame */
};

/* Innermost first; 0 when nothing is known of this ELF virtual address. Texts live as long as the
 * table. */
uint32_t debuginfo_table_find(
	const struct debuginfo_table *t, uint64_t vaddr, struct debuginfo_frame *out, uint32_t max);
/* By the file's PT_LOAD segments, which the table keeps; false when no segment holds it. */
bool debuginfo_table_vaddr(const struct debuginfo_table *t, uint64_t file_offset, uint64_t *out);

struct debuginfo_table_info {
	uint64_t ranges, functions, bytes;
	bool has_dwarf, has_symtab, has_dynsym, has_minidebuginfo;
	char build_id[129];
};
void debuginfo_table_describe(const struct debuginfo_table *t, struct debuginfo_table_info *out);
