/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind: makes the paged table of rule.h from `.eh_frame` of an ELF file.
 *
 * Layer 3 (may use base, codec, objfile). Nothing here trusts the file. An unwind_table is
 * immutable once built. Source: DWARF 5 section 6.4, LSB 5.0 (.eh_frame), System V ABI x86-64,
 * AAPCS64.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "objfile/objfile.h"
#include "unwind/rule.h"

/* Rows of one file. If there are more, the rest of the file has no information, and that is
 * counted. */
#define UNWIND_ROWS_MAX (16u << 20)
/* .eh_frame of one file; a longer one is refused with E_LIMIT. */
#define UNWIND_SECTION_BYTES_MAX ((size_t)256 << 20)
/* Functions of one file; further ones are left out, and counted as bad_fdes. */
#define UNWIND_FDES_MAX (4u << 20)
/* Work for one file, in units of about a byte that is read: a fixed amount, and more for each byte
 * of its call frame information and of .gopclntab. Real files need 1 to 3 a byte. A file that needs
 * more than the limit, because it was made to be slow, gets E_LIMIT. */
#define UNWIND_WORK_MIN ((uint64_t)8 << 20)
#define UNWIND_WORK_PER_BYTE 5
/* Memory while a table is built: its sections, 32 bytes a function, and the table. */
#define UNWIND_BUILD_BYTES_MAX ((uint64_t)256 << 20)

struct unwind_table_page {
	const uint8_t *blob; /* NULL, and blob_len 0: the page has no rows */
	uint32_t blob_len;
	uint16_t rule_count;
	uint16_t row_count; /* 0: dense */
};

struct unwind_table {
	uint32_t first_page; /* file offset >> UNWIND_PAGE_SHIFT of pages[0] */
	uint32_t page_count;
	struct unwind_table_page *pages;
	uint64_t blob_bytes; /* of all pages */
	uint64_t row_count;
	uint64_t fde_count;
	uint64_t unsupported_rows; /* rows whose rule is UNWIND_CFA_UNSUPPORTED */
	uint64_t bad_fdes;         /* entries that were left out, from their broken place on */
	void *memory;              /* owns the blobs */
};

/* Called every few milliseconds of building. False: stop, with E_CANCELED. */
typedef bool unwind_pause_fn(void *ctx);

struct unwind_build {
	uint64_t memory_bytes_max; /* 0: UNWIND_BUILD_BYTES_MAX */
	uint64_t table_bytes_max;  /* of all blobs; 0: as much as there is memory for */
	unwind_pause_fn *pause;    /* may be NULL */
	void *pause_ctx;
	uint64_t work; /* out: units, on failure too */
};

/* E_NOTFOUND: the file has no call frame information. E_INVALID: it has some, but no entry is
 * usable. E_UNSUPPORTED: the machine is neither x86-64 nor arm64. E_LIMIT: it takes more work or
 * memory than it may. */
NODISCARD enum status unwind_table_build(
	const struct objfile *obj, struct unwind_table **out, struct err *e);
NODISCARD enum status unwind_table_build_within(struct unwind_build *limits,
	const struct objfile *obj, struct unwind_table **out, struct err *e);
void unwind_table_free(struct unwind_table *t); /* NULL is fine */

/* The rule in force at a file offset, by the same search as the BPF program; CFA_NONE outside. */
struct unwind_rule unwind_table_find(const struct unwind_table *t, uint64_t file_offset);

/* The same in one page: an offset in it, below UNWIND_BLOB_BYTES_MAX. */
struct unwind_rule unwind_page_find(const struct unwind_table_page *page, uint32_t offset);

/* A hash of all that a table says; equal tables have equal hashes. */
struct hash128 unwind_table_hash(const struct unwind_table *t);

/* ---- one step up a stack that is at hand in memory ---- */

#define UNWIND_REGISTERS 32 /* DWARF's numbers; x86-64 uses 16, arm64 all */

struct unwind_frame {
	uint64_t pc;
	uint32_t known; /* bit i: registers[i] is known for this frame */
	bool is_exact;  /* interrupted at pc: look pc up, not pc - 1 */
	bool is_guess;  /* pc comes from a frame pointer: it must lie in executable memory */
	/* arm64: bits of an address of user space (36 to 52, by the kernel's configuration; 0: 48).
	 * The bits above may hold a return address' signature. */
	uint8_t address_bits;
	uint64_t registers[UNWIND_REGISTERS];
};

enum unwind_step {
	UNWIND_STEP_ON,        /* the frame is now the caller's */
	UNWIND_STEP_ROOT,      /* outermost; the frame is untouched, here and below */
	UNWIND_STEP_ROOT_ZERO, /* outermost: the return address and the frame pointer are zero */
	UNWIND_STEP_NO_RULE,   /* no information, and the frame pointer leads nowhere */
	UNWIND_STEP_UNSUPPORTED,
	UNWIND_STEP_READ_ERROR,
	UNWIND_STEP_LOOP, /* the stack pointer did not advance */
	/* The return address or the frame pointer is zero, and nothing says that the stack ends
	 * there. */
	UNWIND_STEP_ZERO,
};

/* Reads a word of the stack; false: it is not in memory. */
typedef bool unwind_read_fn(void *ctx, uint64_t address, uint64_t *out);

/* Steps from a frame to its caller by the rule at its pc, as agent/bpf/walk.h does in the kernel,
 * for both machines (EM_X86_64, EM_AARCH64). sp must be known. */
enum unwind_step unwind_step(uint16_t elf_machine, const struct unwind_rule *rule,
	struct unwind_frame *f, unwind_read_fn *read, void *ctx);

/* Checks that every blob is as rule.h says, so that no search leaves it. Built and decoded tables
 * always pass. */
NODISCARD enum status unwind_table_check(const struct unwind_table *t, struct err *e);

/* The cache on disk (by build id): docs/formats/unwind.md. Decoding: E_CORRUPT; E_UNSUPPORTED for
 * another version. */
NODISCARD enum status unwind_table_encode(const struct unwind_table *t, struct buf *out);
NODISCARD enum status unwind_table_decode(
	struct str bytes, struct unwind_table **out, struct err *e);
/* The same without a second copy of a large table. The file is head, blobs and tail; the blobs lie
 * in the table. Decoding takes the bytes over if it succeeds, else they are left unchanged. */
NODISCARD enum status unwind_table_encode_parts(
	const struct unwind_table *t, struct buf *head, struct str *out_blobs, struct buf *tail);
NODISCARD enum status unwind_table_decode_take(
	struct buf *bytes, struct unwind_table **out, struct err *e);
