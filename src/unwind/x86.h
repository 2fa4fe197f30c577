/* SPDX-License-Identifier: Apache-2.0 */
/* x86: rows of call frame information as rules of rule.h, for x86-64. Private to unwind/. */
#pragma once

#include "unwind/cfi.h"
#include "unwind/rule.h"

extern const struct cfi_registers x86_registers;

/* mov $15 (rt_sigreturn), %rax; syscall: what a signal handler returns to. */
#define X86_SIGRETURN_BYTES_MAX 9

/* with_bx: say also where rbx is. */
struct unwind_rule x86_rule(const struct cfi_state *state, bool is_signal, bool with_bx);
/* Does the row find its CFA by a register that functions preserve, and that is not rbp? */
bool x86_needs_bx(const struct cfi_state *state);
/* Offset of the first signal return in code, or -1; *out_len: its length. */
ptrdiff_t x86_find_sigreturn(const uint8_t *code, size_t len, size_t *out_len);
/* Does code begin as a program's entry does, which takes its arguments from the stack? */
bool x86_is_entry(const uint8_t *code, size_t len);
/* Where, in code that begins with making a frame (crt's _init and _fini, which have no call frame
 * information), the frame is there: [*out_from, *out_to) have *out_bytes on the stack. False: the
 * code does not look so. */
bool x86_find_frame(
	const uint8_t *code, size_t len, size_t *out_from, size_t *out_to, int *out_bytes);
/* The rule of linker-made code without information: a section of this name. CFA_NONE: none. */
struct unwind_rule x86_section_rule(struct str section_name);
