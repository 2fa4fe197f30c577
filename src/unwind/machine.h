/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine: what differs between x86-64 and arm64 when rules are made from call frame information,
 * or from code without any. Private to unwind/. Each machine has a file of its own; step.c follows
 * the rules.
 */
#pragma once

#include "unwind/cfi.h"
#include "unwind/rule.h"

#define MACHINE_ROWS_MAX 4

struct machine_row {
	size_t offset; /* from there on */
	struct unwind_rule rule;
};

typedef void machine_row_fn(void *ctx, size_t offset, struct unwind_rule rule);

struct unwind_machine {
	uint16_t elf; /* EM_… */
	const struct cfi_registers *registers;
	size_t sigreturn_bytes_max;
	int16_t called_cfa_off; /* distance of the CFA from sp at a function's first byte */
	/* The rule for a row of call frame information. with_bx: the rule also says where
	 * registers->bx is. */
	struct unwind_rule (*rule)(const struct cfi_state *state, bool is_signal, bool with_bx);
	/* Does the row find its CFA by registers->bx? */
	bool (*needs_bx)(const struct cfi_state *state);
	/* Does a function that these instructions describe leave by __builtin_eh_return? NULL: not
	 * known for this machine. */
	bool (*is_eh_return)(struct str instructions);
	/* Finds the offset from which on the code goes to an exception's handler, and the rule from
	 * there on. False: the code does not look like libgcc's. */
	bool (*find_context)(
		const uint8_t *code, size_t len, size_t *out_from, struct unwind_rule *out_rule);
	/* Is it the outermost function of a context made by makecontext(), to which its function
	 * returns? NULL: not known for this machine. */
	bool (*is_context_start)(const uint8_t *code, size_t len);
	/* Does it make a thread, and call its function with a frame pointer of zero? Set where
	 * is_context_start is. */
	bool (*is_thread_start)(const uint8_t *code, size_t len);
	/* Offset of the first signal return in code, or -1; *out_len: its length. */
	ptrdiff_t (*find_sigreturn)(const uint8_t *code, size_t len, size_t *out_len);
	/* Does code begin as a program's entry does, which takes its arguments from the stack? */
	bool (*is_entry)(const uint8_t *code, size_t len);
	/* How many bytes of code that begins with an entry belong to the entry. NULL: not for this
	 * machine. */
	size_t (*entry_bytes)(const uint8_t *code, size_t len);
	/* Rows of code that linkers and start files add without unwind information, known by the
	 * name of its section and how it begins; ascending, the first one at 0. Returns how many;
	 * 0: not known. */
	uint32_t (*section_rows)(struct str section, const uint8_t *code, size_t len,
		struct machine_row out[MACHINE_ROWS_MAX]);
	/* Rows of code without any information, found by reading it; offsets ascend. Returns how
	 * many bytes were read: up to a function that does not end in `code`; all of them, if
	 * `is_last`. NULL: not for this machine. */
	size_t (*code_rows)(
		const uint8_t *code, size_t len, bool is_last, machine_row_fn *put, void *ctx);
};

extern const struct unwind_machine x86_machine;
extern const struct unwind_machine arm64_machine;

/* NULL: not known. */
const struct unwind_machine *machine_find(uint16_t elf);
