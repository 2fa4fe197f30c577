/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same steps as agent/bpf/walk.h, for a stack in memory; unwind/rule.h has the meaning of rules
 * for both. What differs between machines is in `machines`: which registers are meant, whether a
 * call pushes its return address, and the layout of a signal frame. Source: System V ABI x86-64;
 * AAPCS64; the kernel's arch/x86/include/uapi/asm/sigcontext.h and
 * arch/arm64/include/uapi/asm/sigcontext.h.
 */
#include "unwind/unwind.h"

#include <elf.h>

#define X86_RBX 3

/* A signal frame has the machine's registers at sp + registers_at, one word each, in the order of
 * `registers`. */
struct machine {
	uint8_t sp;
	uint8_t fp;
	uint8_t lr;           /* 0: calls push the return address */
	uint8_t signal_count; /* registers in a signal frame; the last one is pc */
	uint16_t signal_at;
	uint8_t pc_bits; /* bits of a return address, if the frame does not say; a signature is in
			  * the bits above
			  */
	const uint8_t *signal_registers;
};

#define PC 32 /* in signal_registers */

#define AT(dwarf) [UNWIND_X86_SIGNAL_PLACE(dwarf)] = (dwarf)
static const uint8_t x86_signal[] = { AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7), AT(8),
	AT(9), AT(10), AT(11), AT(12), AT(13), AT(14), AT(15), [UNWIND_X86_SIGNAL_PC] = PC };
static const uint8_t arm64_signal[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, PC };

static const struct machine x86 = {
	.sp = 7,
	.fp = 6,
	.signal_at = UNWIND_X86_SIGNAL_AT,
	.signal_count = ARRAY_COUNT(x86_signal),
	.signal_registers = x86_signal,
	.pc_bits = 64,
};

/* siginfo 128 bytes, ucontext's head 176, fault_address 8. Addresses of user space mostly have 48
 * bits (52 only for a program that asks mmap() for it); a signature is above them. */
static const struct machine arm64 = {
	.sp = 31,
	.fp = 29,
	.lr = 30,
	.signal_at = 128 + 176 + 8,
	.signal_count = ARRAY_COUNT(arm64_signal),
	.signal_registers = arm64_signal,
	.pc_bits = 48,
};

static const struct machine *machine_of(uint16_t elf_machine)
{
	return elf_machine == EM_AARCH64 ? &arm64 : &x86;
}

static bool is_known(const struct unwind_frame *f, unsigned reg)
{
	return reg < UNWIND_REGISTERS && f->known >> reg & 1;
}

static void set(struct unwind_frame *f, unsigned reg, uint64_t value)
{
	f->registers[reg] = value;
	f->known |= 1u << reg;
}

static uint64_t unsigned_pc(const struct machine *m, const struct unwind_frame *f, uint64_t pc)
{
	unsigned bits = m->lr && f->address_bits ? f->address_bits : m->pc_bits;
	return bits < 64 ? pc & (((uint64_t)1 << bits) - 1) : pc;
}

static enum unwind_step step_signal(
	const struct machine *m, struct unwind_frame *f, unwind_read_fn *read, void *ctx)
{
	struct unwind_frame next = { .is_exact = true, .address_bits = f->address_bits };
	uint64_t at = f->registers[m->sp] + m->signal_at;
	for (uint32_t i = 0; i < m->signal_count; i++) {
		uint64_t value;
		if (!read(ctx, at + 8 * (uint64_t)i, &value))
			return UNWIND_STEP_READ_ERROR;
		if (m->signal_registers[i] == PC)
			next.pc = value;
		else
			set(&next, m->signal_registers[i], value);
	}
	*f = next;
	return next.pc ? UNWIND_STEP_ON : UNWIND_STEP_ZERO;
}

/* The caller's frame pointer is at *fp, and the return address above it, on both machines. */
static enum unwind_step step_frame_pointer(
	const struct machine *m, struct unwind_frame *f, unwind_read_fn *read, void *ctx)
{
	struct unwind_frame next = { .address_bits = f->address_bits };
	uint64_t fp = f->registers[m->fp];
	uint64_t next_fp;
	if (!is_known(f, m->fp))
		return UNWIND_STEP_NO_RULE;
	if (fp == 0 && !f->is_exact)
		return UNWIND_STEP_ZERO;
	if (!unwind_fp_may_be_followed(fp, f->registers[m->sp]) || !read(ctx, fp, &next_fp) ||
		!read(ctx, fp + 8, &next.pc))
		return UNWIND_STEP_NO_RULE;
	next.pc = unsigned_pc(m, f, next.pc);
	next.is_guess = true;
	set(&next, m->sp, fp + 16);
	set(&next, m->fp, next_fp);
	*f = next;
	return next.pc ? UNWIND_STEP_ON : UNWIND_STEP_ZERO;
}

static enum unwind_step find_cfa(const struct machine *m, const struct unwind_frame *f,
	const struct unwind_rule *rule, unwind_read_fn *read, void *ctx, uint64_t *out)
{
	unsigned reg = unwind_rule_is_by_fp(rule) ? m->fp : m->sp;
	if (rule->cfa == UNWIND_CFA_REGISTER)
		reg = (unsigned)rule->ra_off;
	if (!is_known(f, reg))
		return UNWIND_STEP_UNSUPPORTED;
	uint64_t base = f->registers[reg];
	if (rule->cfa == UNWIND_CFA_PLT) {
		*out = unwind_rule_plt_cfa(rule, base, f->pc);
		return UNWIND_STEP_ON;
	}
	if (rule->cfa == UNWIND_CFA_SP_WORDS) {
		*out = unwind_rule_words_cfa(rule, base);
		return UNWIND_STEP_ON;
	}
	base += (uint64_t)(int64_t)rule->cfa_off;
	if (unwind_rule_reads_cfa(rule)) {
		if (!read(ctx, base, &base))
			return UNWIND_STEP_READ_ERROR;
		base += (uint64_t)(int64_t)rule->ra_off;
	}
	*out = base;
	return UNWIND_STEP_ON;
}

/* Where the return address lies. False: it is in no memory. */
static bool ra_in_memory(
	const struct machine *m, const struct unwind_rule *rule, uint64_t cfa, uint64_t *out)
{
	if (rule->cfa == UNWIND_CFA_RA_REGISTER || (m->lr && rule->ra_off == 0))
		return false;
	*out = cfa + (uint64_t)unwind_rule_ra_off(rule);
	return true;
}

static enum unwind_step find_pc(const struct machine *m, const struct unwind_frame *f,
	const struct unwind_rule *rule, uint64_t cfa, unwind_read_fn *read, void *ctx,
	struct unwind_frame *next)
{
	uint64_t at;
	if (ra_in_memory(m, rule, cfa, &at)) {
		if (!read(ctx, at, &next->pc))
			return UNWIND_STEP_READ_ERROR;
	} else {
		unsigned reg = rule->cfa == UNWIND_CFA_RA_REGISTER ? (unsigned)rule->ra_off : m->lr;
		if (!is_known(f, reg))
			return UNWIND_STEP_UNSUPPORTED;
		next->pc = f->registers[reg];
	}
	next->pc = unsigned_pc(m, f, next->pc);
	return UNWIND_STEP_ON;
}

/* Reads the registers that the function saved for its caller. */
static enum unwind_step find_saved(const struct machine *m, const struct unwind_frame *f,
	const struct unwind_rule *rule, uint64_t cfa, unwind_read_fn *read, void *ctx,
	struct unwind_frame *next)
{
	unsigned fp = rule->fp & UNWIND_FP_MASK;
	unsigned bx = rule->fp & UNWIND_BX_MASK;
	bool has_fp = is_known(f, m->fp);
	uint64_t value;
	if (fp == UNWIND_FP_SAME && has_fp) {
		set(next, m->fp, f->registers[m->fp]);
	} else if (unwind_rule_reads_fp(rule) && (has_fp || fp == UNWIND_FP_SAVED)) {
		if (!read(ctx, unwind_rule_fp_at(rule, cfa, f->registers[m->fp]), &value))
			return UNWIND_STEP_READ_ERROR;
		set(next, m->fp, value);
	}
	if (bx == UNWIND_BX_SAME && is_known(f, X86_RBX)) {
		set(next, X86_RBX, f->registers[X86_RBX]);
	} else if (bx == UNWIND_BX_SAVED) {
		if (!read(ctx, unwind_rule_bx_at(rule, cfa), &value))
			return UNWIND_STEP_READ_ERROR;
		set(next, X86_RBX, value);
	}
	return UNWIND_STEP_ON;
}

static enum unwind_step step_table(const struct machine *m, struct unwind_frame *f,
	const struct unwind_rule *rule, unwind_read_fn *read, void *ctx)
{
	uint64_t cfa = 0;
	struct unwind_frame next = { .address_bits = f->address_bits };
	enum unwind_step s = find_cfa(m, f, rule, read, ctx, &cfa);
	if (s != UNWIND_STEP_ON)
		return s;
	/* A leaf of arm64 may have no frame at all. */
	bool advances = cfa > f->registers[m->sp] || rule->cfa == UNWIND_CFA_SWITCH ||
			(cfa == f->registers[m->sp] && f->is_exact &&
				(m->lr || rule->cfa == UNWIND_CFA_RA_REGISTER));
	if (!advances)
		return UNWIND_STEP_LOOP;
	s = find_saved(m, f, rule, cfa, read, ctx, &next);
	if (s == UNWIND_STEP_ON)
		s = find_pc(m, f, rule, cfa, read, ctx, &next);
	if (s != UNWIND_STEP_ON)
		return s;
	if (m == &x86 && unwind_rule_keeps_registers(rule, f->is_exact)) {
		uint64_t fp = next.registers[m->fp];
		bool has_fp = is_known(&next, m->fp);
		memcpy(next.registers, f->registers, sizeof(next.registers));
		next.known = f->known;
		next.registers[m->fp] = has_fp ? fp : f->registers[m->fp];
	}
	set(&next, m->sp, cfa);
	bool may_end = is_known(&next, m->fp) &&
		       unwind_rule_may_end(rule, f->is_exact, cfa, next.registers[m->fp]);
	*f = next;
	if (next.pc)
		return UNWIND_STEP_ON;
	return may_end ? UNWIND_STEP_ROOT_ZERO : UNWIND_STEP_ZERO;
}

/* libgcc's _Unwind_Context: rbp, which it points to, sp, and the first instruction of the handler.
 */
static enum unwind_step step_context(const struct machine *m, struct unwind_frame *f,
	const struct unwind_rule *rule, unwind_read_fn *read, void *ctx)
{
	struct unwind_frame next = { .address_bits = f->address_bits };
	uint64_t at = unwind_rule_context_at(rule, f->registers[m->fp]);
	uint64_t fp_at, fp, cfa, pc;
	if (!is_known(f, m->fp))
		return UNWIND_STEP_UNSUPPORTED;
	if (!read(ctx, at + UNWIND_CONTEXT_FP, &fp_at) ||
		!read(ctx, at + UNWIND_CONTEXT_CFA, &cfa) ||
		!read(ctx, at + UNWIND_CONTEXT_RA, &pc) || !read(ctx, fp_at, &fp))
		return UNWIND_STEP_READ_ERROR;
	if (cfa <= f->registers[m->sp])
		return UNWIND_STEP_LOOP;
	next.pc = pc + 1; /* it is looked up by the byte before */
	set(&next, m->sp, cfa);
	set(&next, m->fp, fp);
	*f = next;
	return next.pc ? UNWIND_STEP_ON : UNWIND_STEP_ZERO;
}

enum unwind_step unwind_step(uint16_t elf_machine, const struct unwind_rule *rule,
	struct unwind_frame *f, unwind_read_fn *read, void *ctx)
{
	const struct machine *m = machine_of(elf_machine);
	switch (rule->cfa) {
	case UNWIND_CFA_NONE:
	case UNWIND_CFA_FRAME_POINTER:
		return step_frame_pointer(m, f, read, ctx);
	case UNWIND_CFA_SIGNAL:
		return step_signal(m, f, read, ctx);
	case UNWIND_CFA_STOP:
		return UNWIND_STEP_ROOT;
	case UNWIND_CFA_CONTEXT:
		return step_context(m, f, rule, read, ctx);
	case UNWIND_CFA_UNSUPPORTED:
	case UNWIND_CFA_GO_MORESTACK: /* it needs memory that is on no stack */
		return UNWIND_STEP_UNSUPPORTED;
	default:
		return rule->cfa < UNWIND_CFA_COUNT ? step_table(m, f, rule, read, ctx)
						    : UNWIND_STEP_UNSUPPORTED;
	}
}
