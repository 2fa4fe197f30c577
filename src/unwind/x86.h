/* SPDX-License-Identifier: Apache-2.0 */
/* x86: the functions of x86_machine, by name for their test. Private to unwind/. */
#pragma once

#include "unwind/machine.h"

extern const struct cfi_registers x86_registers;

/* mov $15 (rt_sigreturn), %rax; syscall: the code that a signal handler returns to. */
#define X86_SIGRETURN_BYTES_MAX 9

struct unwind_rule x86_rule(const struct cfi_state *state, bool is_signal, bool with_bx);
bool x86_needs_bx(const struct cfi_state *state);
ptrdiff_t x86_find_sigreturn(const uint8_t *code, size_t len, size_t *out_len);
/* Both registers in which __builtin_eh_return has its arguments are saved next to each other: no
 * other function does that. */
bool x86_is_eh_return(struct str instructions);
bool x86_find_context(
	const uint8_t *code, size_t len, size_t *out_from, struct unwind_rule *out_rule);
bool x86_is_context_start(const uint8_t *code, size_t len);
bool x86_is_thread_start(const uint8_t *code, size_t len);
bool x86_is_entry(const uint8_t *code, size_t len);
/* For code that begins by making a frame (crt's _init and _fini, which have no call frame
 * information): in [*out_from, *out_to) the frame has *out_bytes on the stack. False: the code does
 * not look like that. */
bool x86_find_frame(
	const uint8_t *code, size_t len, size_t *out_from, size_t *out_to, int *out_bytes);
/* A longer function has no rules. */
#define X86_FUNCTION_BYTES_MAX ((size_t)64 << 10)
size_t x86_code_rows(const uint8_t *code, size_t len, bool is_last, machine_row_fn *put, void *ctx);
/* The length of the code of a program's entry. */
size_t x86_entry_bytes(const uint8_t *code, size_t len);
uint32_t x86_section_rows(struct str section, const uint8_t *code, size_t len,
	struct machine_row out[MACHINE_ROWS_MAX]);
