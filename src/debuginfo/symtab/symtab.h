/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo/symtab: one compact, memory-mapped symbol table for each build id
 * (docs/formats/symtab.md), made once from DWARF (with inlined calls and lines), .symtab, .dynsym,
 * MiniDebugInfo and Go's .gopclntab.
 *
 * ELF and DWARF are hostile input: debuginfo_build() runs in a short-lived child process with
 * limits and seccomp; a broken file costs its own names only. No other part of the server reads
 * those bytes, except for the headers, notes and sections of an ELF file (objfile).
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "os/os.h"

#include <stdatomic.h>

#define DEBUGINFO_FRAMES_MAX 256 /* inlined calls at one address */

/* What one build may use. DWARF that needs more is cut: the table then has what was read so far and
 * the symbols for the rest, and says so (dwarf_cut). */
struct debuginfo_limits {
	uint64_t memory_bytes; /* of the child, without the mapped files themselves */
	uint32_t cpu_seconds;
	uint64_t output_bytes;
	const atomic_bool *stop; /* once true the child is ended: E_CANCELED; NULL: never */
};
void debuginfo_limits_default(struct debuginfo_limits *l);

/* The child is this very program, started again through /proc/self/exe. So every program that
 * builds tables begins its main() with
 *
 *	int rc = debuginfo_child_main(argc, argv);
 *	if (rc >= 0)
 *		return rc;
 *
 * -1: this is not the child, go on. Without that call debuginfo_build() gives E_UNSUPPORTED. */
#define DEBUGINFO_CHILD_VERB "__symtab"
int debuginfo_child_main(int argc, char **argv);

/* The files of one build id; -1: there is none. They stay the caller's. */
struct debuginfo_files {
	int fd;       /* the ELF file: executable, library, or a debug file alone */
	int debug_fd; /* its separate debug file */
	int alt_fd; /* the file with what the debug file shares with others (dwz, .gnu_debugaltlink)
		     */
};

/* Build the table of `files` at `out_path`, atomically. OK also when the files have no names at
 * all: then the table says so. Blocks until the child ends. E_INVALID: not an ELF file.
 * E_UNSUPPORTED: relocatable (ET_REL), or see above. E_LIMIT: the child passed a limit. E_CORRUPT:
 * the child crashed, or its output is not a valid table. */
NODISCARD enum status debuginfo_build_files(const struct debuginfo_files *files,
	const char *out_path, const struct debuginfo_limits *limits, struct err *e);
NODISCARD enum status debuginfo_build(int fd, int debug_fd, const char *out_path,
	const struct debuginfo_limits *limits, struct err *e);

/* ---- instructions ---- */

#define DEBUGINFO_CODE_BYTES_MAX ((size_t)256 << 10) /* of one call */
struct debuginfo_code {
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
	uint64_t address; /* virtual, of the ELF file */
	struct str bytes;
};
struct debuginfo_instruction {
	uint64_t address;
	uint32_t size;
	struct str text; /* "mov rax, rbx"; printable ASCII */
};
/* Runs in a child, as building does. Bytes that are no instruction become ".byte …". Texts lie in
 * `text`, whose max is the limit; the array in the arena. E_UNSUPPORTED: another machine, or
 * libcapstone is not here. E_LIMIT: more than DEBUGINFO_CODE_BYTES_MAX. E_CORRUPT: the child
 * crashed, or its output is not a valid listing.
 */
NODISCARD enum status debuginfo_disassemble(const struct debuginfo_code *code, struct buf *text,
	struct arena *a, struct debuginfo_instruction **out, size_t *out_count, struct err *e);

/* ---- tables ---- */

struct debuginfo_table;

/* Maps a table that debuginfo_build() made. E_CORRUPT names the section and the offset. */
NODISCARD enum status debuginfo_table_open(
	const char *path, struct debuginfo_table **out, struct err *e);
/* Over bytes in memory, aligned to 8, that stay valid and unchanged (tests, fuzzing). */
NODISCARD enum status debuginfo_table_open_bytes(
	const void *bytes, size_t len, struct debuginfo_table **out, struct err *e);
void debuginfo_table_close(struct debuginfo_table *t);

struct debuginfo_frame {
	/* As in the debug information: a linkage name where there is one. "+0x…": a function
	 * without a name that begins at that address; put the file's name before it. */
	struct str name;
	struct str file; /* "" when not known */
	uint32_t line;   /* 0 when not known */
	uint32_t start_line;
	bool inlined; /* into the next frame */
};

/* Innermost first; 0 when nothing is known of this ELF virtual address. Texts live as long as the
 * table. */
uint32_t debuginfo_table_find(
	const struct debuginfo_table *t, uint64_t vaddr, struct debuginfo_frame *out, uint32_t max);
/* The same in two steps. All addresses of one place have the same frames; the line of the first
 * frame is the place's. False: nothing is known. */
struct debuginfo_at {
	uint32_t node;
	uint32_t line;
};
bool debuginfo_table_at(const struct debuginfo_table *t, uint64_t vaddr, struct debuginfo_at *out);
/* The table is trimmed, and does not have what the whole table says about this address. */
bool debuginfo_table_lacks(const struct debuginfo_table *t, uint64_t vaddr);
uint32_t debuginfo_table_frames(const struct debuginfo_table *t, struct debuginfo_at p,
	struct debuginfo_frame *out, uint32_t max);
/* The range around this address, without gaps, that belongs to the same function, including all
 * code inlined into it. False: nothing is known. */
bool debuginfo_table_bounds(
	const struct debuginfo_table *t, uint64_t vaddr, uint64_t *out_begin, uint64_t *out_end);
/* The address of a file offset, by the PT_LOAD segments that the table keeps. False: no segment
 * holds it. */
bool debuginfo_table_vaddr(const struct debuginfo_table *t, uint64_t file_offset, uint64_t *out);

/* Calls `fn` once for every source file that its frames name; stops at the first status that is not
 * OK, and returns it. */
typedef enum status debuginfo_file_fn(void *ctx, struct str path, struct err *e);
NODISCARD enum status debuginfo_table_files(
	const struct debuginfo_table *t, debuginfo_file_fn *fn, void *ctx, struct err *e);

struct debuginfo_table_info {
	uint64_t ranges, functions, bytes;
	bool has_dwarf, has_symtab, has_dynsym, has_minidebuginfo, has_plt, has_gopclntab;
	bool has_eh_frame;  /* functions without names, by .eh_frame */
	bool trimmed;       /* it has names for some addresses only */
	bool dwarf_cut;     /* a limit ended the reading of DWARF */
	bool dwarf_damaged; /* DWARF could not be read to its end */
	char build_id[129];
};
void debuginfo_table_describe(const struct debuginfo_table *t, struct debuginfo_table_info *out);

/* ---- a table of some addresses only ---- */

/* Whether the table at `path` says that it is trimmed; the rest of the file is not read. */
bool debuginfo_trim_is_done(const char *path);

/* A selection from a table: all that the frames of the kept addresses need, and where their
 * functions begin and end. The table must outlive it. */
struct debuginfo_trim;
NODISCARD enum status debuginfo_trim_new(
	const struct debuginfo_table *t, struct debuginfo_trim **out, struct err *e);
void debuginfo_trim_free(struct debuginfo_trim *trim);
/* Keeps an ELF virtual address; any may be given, in any order. */
void debuginfo_trim_keep(struct debuginfo_trim *trim, uint64_t vaddr);
/* Ranges that are kept: as many as there are addresses, or fewer. */
uint32_t debuginfo_trim_count(const struct debuginfo_trim *trim);
/* Writes the trimmed table to `out_path`, atomically. */
NODISCARD enum status debuginfo_trim_write(
	const struct debuginfo_trim *trim, const char *out_path, struct err *e);
