/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64: the return address comes in lr (x30) and is mostly saved beside x29 as a frame record.
 * With a rule whose ra_off is 0 it is still in lr. Signed return addresses (negate_ra_state) need
 * no rule: the step removes the bits above the address. Source: AAPCS64 section 6.4, DWARF for the
 * Arm 64-bit Architecture, binutils' bfd/elfnn-aarch64.c for the PLT.
 */
#include "unwind/arm64.h"

#include <elf.h>

enum { REG_FP = 29, REG_SP = 31 };

static const struct cfi_registers registers = { .sp = REG_SP, .fp = REG_FP, .bx = CFI_NO_REGISTER };
static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED };

/* Instructions. */
#define BTI_C 0xd503245f
#define PACIASP 0xd503233f
#define NOP 0xd503201f
#define MOV_X29_0 0xd280001d
#define MOV_X0_SP 0x910003e0
#define MOV_X8_SIGRETURN 0xd2801168 /* mov x8, #139 */
#define SVC_0 0xd4000001
#define STP_X16_X30 0xa9bf7bf0 /* stp x16, x30, [sp, #-16]!: the first of a PLT */
#define STP_X29_X30 0xa9bf7bfd /* stp x29, x30, [sp, #-16]! */
#define LDP_X29_X30 0xa8c17bfd /* ldp x29, x30, [sp], #16 */
#define PLT0_BYTES 32

static bool fits(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

struct unwind_rule arm64_rule(const struct cfi_state *state, bool is_signal, bool with_bx)
{
	(void)with_bx;
	bool by_fp = state->cfa_register == REG_FP;
	struct unwind_rule rule = { .cfa = by_fp ? UNWIND_CFA_FP : UNWIND_CFA_SP };
	if (is_signal)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_SIGNAL };
	if (state->ra.kind == CFI_UNDEFINED)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_STOP };
	bool sp_is_cfa = state->sp.kind == CFI_UNSPECIFIED ||
			 (state->sp.kind == CFI_VAL_OFFSET && state->sp.offset == 0);
	if (state->cfa_expression.p || (!by_fp && state->cfa_register != REG_SP) ||
		!fits(state->cfa_offset) || !sp_is_cfa)
		return unsupported;
	rule.cfa_off = (int16_t)state->cfa_offset;
	if (state->ra.kind == CFI_OFFSET && fits(state->ra.offset) && state->ra.offset != 0)
		rule.ra_off = (int16_t)state->ra.offset;
	else if (state->ra.kind != CFI_UNSPECIFIED && state->ra.kind != CFI_SAME)
		return unsupported;
	if (state->fp.kind == CFI_OFFSET && fits(state->fp.offset)) {
		rule.fp = UNWIND_FP_SAVED;
		rule.fp_off = (int16_t)state->fp.offset;
	} else if (state->fp.kind != CFI_UNSPECIFIED && state->fp.kind != CFI_SAME) {
		rule.fp = UNWIND_FP_UNDEFINED;
	}
	return rule;
}

static bool needs_nothing(const struct cfi_state *state)
{
	(void)state;
	return false;
}

/* The instruction at a byte offset; 0 (which is none) behind the end. */
static uint32_t instruction(const uint8_t *code, size_t len, size_t at)
{
	uint32_t v = 0;
	if (at < len && len - at >= sizeof(v))
		memcpy(&v, code + at, sizeof(v));
	return v;
}

ptrdiff_t arm64_find_sigreturn(const uint8_t *code, size_t len, size_t *out_len)
{
	static const uint32_t form[] = { MOV_X8_SIGRETURN, SVC_0 };
	for (size_t at = 0; at + sizeof(form) <= len; at += 4) {
		const uint8_t *found = memmem(code + at, len - at, form, sizeof(form));
		if (!found)
			return -1;
		at = (size_t)(found - code);
		if (at % 4 == 0) {
			*out_len = sizeof(form);
			return (ptrdiff_t)at;
		}
		at -= at % 4;
	}
	return -1;
}

bool arm64_is_entry(const uint8_t *code, size_t len)
{
	size_t at = 0;
	uint32_t first = instruction(code, len, 0);
	if (first == BTI_C || first == NOP)
		at = 4;
	uint32_t i = instruction(code, len, at);
	return i == MOV_X29_0 || i == MOV_X0_SP; /* crt1, musl; ld.so */
}

/* stp x29, x30, [sp, #-16]!; …; ldp x29, x30, [sp], #16: crt's _init and _fini. */
static uint32_t crt_rows(const uint8_t *code, size_t len, struct machine_row *out)
{
	size_t at = 0;
	while (at < 8 &&
		(instruction(code, len, at) == PACIASP || instruction(code, len, at) == BTI_C))
		at += 4;
	if (instruction(code, len, at) != STP_X29_X30)
		return 0;
	size_t back = at + 4;
	while (back < len && instruction(code, len, back) != LDP_X29_X30)
		back += 4;
	if (back >= len)
		return 0;
	out[0] = (struct machine_row){ 0, { .cfa = UNWIND_CFA_SP } };
	out[1] = (struct machine_row){ at + 4, { UNWIND_CFA_SP, UNWIND_FP_SAVED, 16, -16, -8 } };
	out[2] = (struct machine_row){ back + 4, { .cfa = UNWIND_CFA_SP } };
	return 3;
}

uint32_t arm64_section_rows(struct str section, const uint8_t *code, size_t len,
	struct machine_row out[MACHINE_ROWS_MAX])
{
	if (str_eq(section, STR(".init")) || str_eq(section, STR(".fini")))
		return crt_rows(code, len, out);
	if (!str_eq(section, STR(".plt")) && !str_eq(section, STR(".iplt")))
		return 0;
	/* Entries jump, and leave sp and lr alone; the first one pushes both x16 and lr. */
	size_t at = instruction(code, len, 0) == BTI_C ? 4 : 0;
	out[0] = (struct machine_row){ 0, { .cfa = UNWIND_CFA_SP } };
	if (instruction(code, len, at) != STP_X16_X30)
		return 1;
	out[1] = (struct machine_row){ at + 4, { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, -8 } };
	out[2] = (struct machine_row){ PLT0_BYTES, { .cfa = UNWIND_CFA_SP } };
	return 3;
}

const struct unwind_machine arm64_machine = {
	.elf = EM_AARCH64,
	.registers = &registers,
	.sigreturn_bytes_max = 8,
	.rule = arm64_rule,
	.needs_bx = needs_nothing,
	.find_sigreturn = arm64_find_sigreturn,
	.is_entry = arm64_is_entry,
	.section_rows = arm64_section_rows,
};
