/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi: call frame information (.eh_frame, .debug_frame): its entries, and the rows that their
 * instructions make. Private to unwind/.
 *
 * No machine is known here but its numbers of registers (struct cfi_registers). Source: DWARF 5
 * sections 6.4 and 7.24, LSB 5.0 core "Exception Frames", gcc's unwind-dw2.c.
 */
#pragma once

#include "base/reader.h"

/* DW_CFA_remember_state, nested; compilers use one or two. */
#define CFI_REMEMBER_MAX 16
/* A longer CIE is refused: it may be read again for each of its functions. Real ones have 24. */
#define CFI_CIE_BYTES_MAX 512

struct cfi_section {
	struct str bytes;
	uint64_t address; /* virtual address of the first byte; 0 for .debug_frame */
	bool is_eh_frame;
	bool ends_at_zero;  /* an entry of length 0 is the end, and not padding between objects */
	uint64_t text_base; /* for DW_EH_PE_textrel and datarel; 0: not known, such entries fail */
	uint64_t data_base;
};

/* DWARF numbers of the registers that are followed. */
struct cfi_registers {
	uint64_t sp;
	uint64_t fp;
	uint64_t bx; /* one more register that a CFA may be found by: rbx; CFI_NO_REGISTER */
};
#define CFI_NO_REGISTER UINT64_MAX

enum cfi_kind {
	CFI_UNSPECIFIED, /* no instruction named the register */
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_OFFSET,         /* saved at CFA + offset */
	CFI_VAL_OFFSET,     /* is CFA + offset */
	CFI_REGISTER,       /* is in another register */
	CFI_EXPRESSION,     /* saved at the address that `expression` gives */
	CFI_VAL_EXPRESSION, /* is what `expression` gives */
};

struct cfi_rule {
	enum cfi_kind kind;
	int64_t offset; /* CFI_REGISTER: its number */
	struct str expression;
};

/* One row: in force from one address to the next. */
struct cfi_state {
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct str cfa_expression; /* p NULL: register + offset */
	struct cfi_rule fp;
	struct cfi_rule sp;
	struct cfi_rule ra;
	struct cfi_rule bx;
};

struct cfi_cie {
	size_t offset; /* in the section */
	size_t bytes;
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	uint8_t pointer_encoding;
	bool has_augmentation_data; /* 'z' */
	bool is_signal;             /* 'S' */
	struct cfi_state initial;
};

struct cfi_fde {
	uint64_t start; /* virtual address */
	uint64_t length;
	struct str instructions;
};

struct cfi_entry {
	size_t offset; /* of its length field */
	size_t body;   /* offset of the bytes that follow the CIE id or pointer */
	size_t end;    /* where the next entry begins */
	bool is_cie;
	size_t cie_offset; /* of an FDE */
};

/* How a pointer is encoded: Linux Standard Base, Core 10.5.1. */
#define DW_EH_PE_OMIT 0xff
#define DW_EH_PE_INDIRECT 0x80
#define DW_EH_PE_FORMAT 0x0f
#define DW_EH_PE_BASE 0x70
enum { DW_EH_PE_ABSPTR = 0x00, DW_EH_PE_ULEB128 = 0x01, DW_EH_PE_UDATA2 = 0x02 };
enum { DW_EH_PE_UDATA4 = 0x03, DW_EH_PE_UDATA8 = 0x04, DW_EH_PE_SIGNED = 0x08 };
enum { DW_EH_PE_SLEB128 = 0x09, DW_EH_PE_SDATA2 = 0x0a, DW_EH_PE_SDATA4 = 0x0b };
enum { DW_EH_PE_SDATA8 = 0x0c, DW_EH_PE_PCREL = 0x10, DW_EH_PE_TEXTREL = 0x20 };
enum { DW_EH_PE_DATAREL = 0x30, DW_EH_PE_ALIGNED = 0x50 };

/* Read the entry at *offset and move *offset behind it. False at the end. *broken is set if an
 * entry passes the end of the section, so that nothing behind it can be found. */
bool cfi_next_entry(
	const struct cfi_section *s, size_t *offset, struct cfi_entry *out, bool *broken);
/* E_INVALID: it is broken, or its version or augmentation is not known. */
NODISCARD enum status cfi_read_cie(const struct cfi_section *s, const struct cfi_registers *regs,
	size_t offset, struct cfi_cie *out);
NODISCARD enum status cfi_read_fde(const struct cfi_section *s, const struct cfi_entry *entry,
	const struct cfi_cie *cie, struct cfi_fde *out);
/* A pointer of encoding DW_EH_PE_… at the reader's place; the reader is over the whole section.
 * Fails the reader when the encoding is not known or its base is not. */
uint64_t cfi_read_pointer(const struct cfi_section *s, struct reader *r, uint8_t encoding);

/* The rows of an FDE, one after the other. */
struct cfi_rows {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	const struct cfi_registers *regs;
	struct reader r; /* over the section up to the entry's end */
	struct cfi_state state;
	uint64_t at; /* the row that cfi_rows_next() gave: [at, next), by `state` */
	uint64_t next;
	uint64_t end;
	uint32_t remembered;
	bool failed; /* broken instructions: [next, end) has no rows */
	struct cfi_state stack[CFI_REMEMBER_MAX];
};

void cfi_rows_begin(struct cfi_rows *rows, const struct cfi_section *s,
	const struct cfi_registers *regs, const struct cfi_cie *cie, const struct cfi_fde *fde);
/* False if there are no more rows: the FDE has ended, or `failed` is set. */
bool cfi_rows_next(struct cfi_rows *rows);
