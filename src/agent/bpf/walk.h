/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk: one user stack, frame by frame, from the leaf to the root.
 *
 * Each step turns (pc, sp, fp) of a frame into those of its caller. If the file has a table, its
 * rules are used. In memory without a file (JIT code) and in files without a table the frame
 * pointer is used, as far as it can be checked: it must lie above the stack pointer, and the return
 * address beside it must lie in executable memory.
 *
 * A caller of zero is taken for the root in two cases only: at the stack's own end; and if call
 * frame information leads from a frame that has made a call to a return address and a frame pointer
 * of zero, aligned as the ABI wants it (the entry of a fiber). In all other cases the code keeps no
 * frame pointer, or a rule is wrong, and the stack counts as cut (STACK_END_ZERO).
 *
 * The state is in the per-CPU map `walks`. A step returns STACK_END_NONE to go on.
 */
#pragma once

#include "mapping.h"
#include "maps.h"
#include "registers.h"
#include "runtimes.h"
#include "table.h"
#include "vma.h"

/* rbp is not known: no chain of frame pointers begins at this value, which is not aligned. */
#define FP_UNKNOWN 1

#define DWARF_RBX 3

/* ---- steps ---- */

/* During exec the mm becomes the new program's while sp is still the old program's. Two programs
 * that are not relocated lie at the same addresses, so pc may be in a mapping of the new program;
 * but it has nothing where the old stack was. */
static __always_inline int stack_is_there(const struct walk *w)
{
	__u64 word;
	return read_user(&word, sizeof(word), w->sp);
}

static __always_inline enum stack_end step_to(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->pc_is_exact = 0;
	return pc ? STACK_END_NONE : STACK_END_ZERO;
}

/* The same, with a rule that says where the return address is. */
static __always_inline enum stack_end step_by(
	struct walk *w, const struct unwind_rule *rule, __u64 pc, __u64 sp, __u64 fp)
{
	int is_end = !pc && unwind_rule_may_end(rule, w->pc_is_exact, sp, fp);
	enum stack_end end = step_to(w, pc, sp, fp);
	return is_end ? STACK_END_ROOT_ZERO : end;
}

/* Is sp where execve set it? */
static __always_inline int is_at_stack_base(const struct walk *w)
{
	return unwind_is_at_stack_base(w->stack_start, w->sp);
}

static __always_inline enum stack_end step_signal(struct walk *w)
{
	if (!read_user(w->regs, sizeof(w->regs), w->sp + UNWIND_X86_SIGNAL_AT))
		return STACK_END_READ_ERROR;
	walk_begin_at_registers(w);
	return w->pc ? STACK_END_NONE : STACK_END_ZERO;
}

/* Reads a register by its DWARF number. 0: it is not known in this frame. */
static __always_inline int read_register(const struct walk *w, __u32 number, __u64 *out)
{
	if (w->pc_is_exact || w->regs_are_kept) {
		__u32 at = UNWIND_X86_SIGNAL_PLACE(number);
		*out = w->regs[at];
		return 1;
	}
	*out = w->bx;
	return number == DWARF_RBX && w->bx_is_known;
}

/* push %rbp; mov %rsp, %rbp: the caller's rbp at *rbp, the return address above it. */
static __always_inline enum stack_end step_frame_pointer(struct walk *w)
{
	__u64 next_fp, pc;
	__u64 fp = w->fp;
	if (fp == 0 && !w->pc_is_exact) /* System V ABI 3.4.1: the end, or rbp is used for something
					   else */
		return is_at_stack_base(w) ? STACK_END_ROOT_NO_INFO : STACK_END_ZERO;
	if (!unwind_fp_may_be_followed(fp, w->sp) || !read_stack(w, fp, &next_fp) ||
		!read_stack(w, fp + 8, &pc))
		return STACK_END_NO_TABLE;
	w->pc_is_guess = 1;
	w->bx_is_known = 0;
	w->regs_are_kept = 0;
	return step_to(w, pc, fp + 16, next_fp);
}

/* A gap in a file that has a table: hand-written entry code, or assembly without information. */
static __always_inline enum stack_end step_without_rule(struct walk *w)
{
	if (is_at_stack_base(w))
		return STACK_END_ROOT_NO_INFO;
	return step_frame_pointer(w);
}

/* Computes the canonical frame address, for rules that have one. */
static __always_inline enum stack_end rule_cfa(
	const struct walk *w, const struct unwind_rule *rule, __u64 *out)
{
	__u64 base = unwind_rule_is_by_fp(rule) ? w->fp : w->sp;
	if (rule->cfa == UNWIND_CFA_REGISTER && !read_register(w, (__u16)rule->ra_off, &base))
		return STACK_END_UNSUPPORTED;
	if (rule->cfa == UNWIND_CFA_PLT) {
		*out = unwind_rule_plt_cfa(rule, base, w->pc);
		return STACK_END_NONE;
	}
	if (rule->cfa == UNWIND_CFA_SP_WORDS) {
		*out = unwind_rule_words_cfa(rule, base);
		return STACK_END_NONE;
	}
	base += (__s64)rule->cfa_off;
	if (unwind_rule_reads_cfa(rule)) {
		if (!read_user(&base, sizeof(base), base))
			return STACK_END_READ_ERROR;
		base += (__s64)rule->ra_off;
	}
	*out = base;
	return STACK_END_NONE;
}

/* Reads the caller's rbx, in files whose rules say where it is. */
static __always_inline int rule_bx(struct walk *w, const struct unwind_rule *rule, __u64 cfa)
{
	__u32 kind = rule->fp & UNWIND_BX_MASK;
	if (kind == UNWIND_BX_SAVED) {
		w->bx_is_known = 1;
		return read_stack(w, unwind_rule_bx_at(rule, cfa), &w->bx);
	}
	if (kind != UNWIND_BX_SAME)
		w->bx_is_known = 0;
	return 1;
}

static __always_inline enum stack_end step_table(struct walk *w, const struct unwind_rule *rule)
{
	__u64 cfa;
	__u64 pc;
	enum stack_end end = rule_cfa(w, rule, &cfa);
	if (end != STACK_END_NONE)
		return end;
	int in_register = rule->cfa == UNWIND_CFA_RA_REGISTER;
	if (cfa <= w->sp && !(in_register && cfa == w->sp) && rule->cfa != UNWIND_CFA_SWITCH)
		return STACK_END_LOOP;
	__u64 fp = (rule->fp & UNWIND_FP_MASK) == UNWIND_FP_SAME ? w->fp : FP_UNKNOWN;
	/* rbp is read first: it lies lower, mostly right beside the return address. */
	if (unwind_rule_reads_fp(rule) && !read_stack(w, unwind_rule_fp_at(rule, cfa, w->fp), &fp))
		return STACK_END_READ_ERROR;
	if (!rule_bx(w, rule, cfa))
		return STACK_END_READ_ERROR;
	if (in_register) {
		if (!read_register(w, (__u16)rule->ra_off, &pc))
			return STACK_END_UNSUPPORTED;
	} else if (!read_stack(w, cfa + unwind_rule_ra_off(rule), &pc)) {
		return STACK_END_READ_ERROR;
	}
	w->regs_are_kept = unwind_rule_keeps_registers(rule, w->pc_is_exact);
	return step_by(w, rule, pc, cfa, fp);
}

/* Go's morestack runs newstack on the stack of g0. Of the goroutine's registers only those saved in
 * its g are known. r14 is the goroutine's g until newstack begins, and g0 from then on; m.g0 or
 * m.curg must be equal to it, which proves that it is a g at all. Once newstack has put the
 * goroutine aside, m.curg is 0: then g0 works for no goroutine, and the stack ends. */
static __always_inline enum stack_end step_go_morestack(
	struct walk *w, const struct unwind_rule *rule)
{
	__u64 m, g0, curg, fp, regs[2]; /* sp, pc */
	if (!read_user(&m, sizeof(m), w->go_g + UNWIND_GO_G_M) || !read_user(&g0, sizeof(g0), m) ||
		!read_user(&curg, sizeof(curg), m + (__s64)rule->cfa_off) ||
		(g0 != w->go_g && curg != w->go_g))
		return STACK_END_UNSUPPORTED;
	if (!curg)
		return STACK_END_ROOT;
	if (!read_user(regs, sizeof(regs), curg + UNWIND_GO_G_SP) ||
		!read_user(&fp, sizeof(fp), curg + (__s64)rule->fp_off))
		return STACK_END_UNSUPPORTED;
	w->bx_is_known = 0;
	w->regs_are_kept = 0;
	return step_to(w, regs[1], regs[0], fp);
}

/* libgcc has found where an exception is caught or cleaned up: the walk continues in that frame,
 * further up, at the first instruction of the handler. */
static __always_inline enum stack_end step_context(struct walk *w, const struct unwind_rule *rule)
{
	__u64 fp_at, fp, to[2]; /* cfa, ra */
	__u64 at = unwind_rule_context_at(rule, w->fp);
	if (!read_user(&fp_at, sizeof(fp_at), at + UNWIND_CONTEXT_FP) ||
		!read_user(to, sizeof(to), at + UNWIND_CONTEXT_CFA) ||
		!read_user(&fp, sizeof(fp), fp_at))
		return STACK_END_READ_ERROR;
	if (to[0] <= w->sp)
		return STACK_END_LOOP;
	w->bx_is_known = 0;
	w->regs_are_kept = 0;
	return step_to(w, to[1] + 1, to[0], fp); /* it is looked up by the byte before */
}

/* A faster step_table() for nine of ten frames: those with the CFA by sp or rbp, and the return
 * address by the CFA. */
static __always_inline enum stack_end step_plain(struct walk *w, const struct unwind_rule *rule)
{
	__u64 pc, fp = w->fp;
	__u64 cfa = (rule->cfa == UNWIND_CFA_FP ? fp : w->sp) + (__s64)rule->cfa_off;
	if (cfa <= w->sp)
		return STACK_END_LOOP;
	if ((rule->fp & UNWIND_FP_MASK) == UNWIND_FP_SAVED) {
		if (!read_stack(w, cfa + (__s64)rule->fp_off, &fp))
			return STACK_END_READ_ERROR;
	}
	if (!read_stack(w, cfa + (__s64)rule->ra_off, &pc))
		return STACK_END_READ_ERROR;
	w->bx_is_known = 0;
	w->regs_are_kept = unwind_rule_keeps_registers(rule, w->pc_is_exact);
	return step_by(w, rule, pc, cfa, fp);
}

static __always_inline int rule_is_plain(const struct unwind_rule *rule)
{
	return (rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP) &&
	       (rule->fp & ~UNWIND_FP_NO_END) <= UNWIND_FP_SAVED;
}

static __always_inline enum stack_end step_by_rule(struct walk *w, const struct unwind_rule *rule)
{
	if (rule_is_plain(rule))
		return step_plain(w, rule);
	switch (rule->cfa) {
	case UNWIND_CFA_SP:
	case UNWIND_CFA_SP_WORDS:
	case UNWIND_CFA_FP:
	case UNWIND_CFA_DEREF_FP:
	case UNWIND_CFA_DEREF_SP:
	case UNWIND_CFA_PLT:
	case UNWIND_CFA_REGISTER:
	case UNWIND_CFA_RA_REGISTER:
	case UNWIND_CFA_SWITCH:
		return step_table(w, rule);
	case UNWIND_CFA_GO_MORESTACK:
		return step_go_morestack(w, rule);
	case UNWIND_CFA_CONTEXT:
		return step_context(w, rule);
	case UNWIND_CFA_NONE:
		return step_without_rule(w);
	case UNWIND_CFA_SIGNAL:
		return step_signal(w);
	case UNWIND_CFA_STOP:
		return STACK_END_ROOT;
	case UNWIND_CFA_FRAME_POINTER:
		return step_frame_pointer(w);
	default:
		return STACK_END_UNSUPPORTED;
	}
}

/* ---- the walk ---- */

static __always_inline void walk_record(struct walk *w, __u32 file_id, __u64 offset)
{
	__u64 frame = ((__u64)file_id << FRAME_FILE_SHIFT) | (offset & FRAME_OFFSET_MASK);
	__u32 at = w->kernel_count + w->user_count;
	if (at >= SAMPLE_FRAMES_MAX)
		return;
	w->frames[at] = frame;
	w->user_count++;
	w->hash = hash_mix(w->hash, frame);
}

/* vsyscall=emulate: each entry is called like a function and has no frame of its own. */
static __always_inline enum stack_end walk_vsyscall(struct walk *w, __u64 address)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP, .cfa_off = 8, .ra_off = -8 };
	walk_record(w, FRAME_FILE_ADDRESS, address);
	return step_table(w, &rule);
}

static __always_inline enum stack_end walk_unmapped(struct walk *w, __u64 address)
{
	if (w->user_count > 0) /* the step that led here was wrong: this is no frame */
		return w->pc_is_guess ? STACK_END_NO_TABLE : STACK_END_NO_VMA;
	if (w->in_exec) /* exec has switched the mm, but not the registers */
		return STACK_END_EXEC;
	walk_record(w, FRAME_FILE_ADDRESS, address);
	return STACK_END_NO_VMA;
}

/* What a native frame returns, in place of STACK_END_NONE, when a step of another kind may be next,
 * or when it has recorded no frame. */
#define WALK_AGAIN STACK_END_COUNT

/* Record the frame at (pc, sp, fp) and go to its caller. A global function, verified once, so that
 * a plain loop around it passes the verifier of Linux 5.10. `zero`: a function without
 * arguments is not allowed there, and the compiler leaves unused ones undefined. */
__noinline int walk_frame(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	if (!w)
		return STACK_END_NO_REGS;
	if (w->user_count >= SAMPLE_USER_FRAMES_MAX)
		return STACK_END_DEPTH;
	/* A return address may be the first byte of the next function, so the byte before it is
	 * looked up. */
	__u64 address = w->pc_is_exact ? w->pc : w->pc - 1;
	if (address - X86_VSYSCALL_START < X86_VSYSCALL_BYTES)
		return walk_vsyscall(w, address);
	const struct mapping *m = mapping_at(w, address);
	if (!m)
		return walk_unmapped(w, address);
	w->pc_is_guess = 0;
	__u64 offset = address - m->start + m->offset;
	if (m->runtime && m->runtime != w->go_record) {
		if (runtime_begin(address))
			return WALK_AGAIN; /* the walk comes here again when it is known what this
					      frame executes */
		w->native.sp = w->sp;
		w->native.hash = w->hash;
	}
	/* Memory of large pages (hugetlbfs) is a file to the kernel. */
	if (!m->page_count &&
		((runtime_is_php_code(m) && php_enter_loop(0)) || runtime_leaves_code(w, m) ||
			runtime_has_code(w, m, address) || runtime_is_trace(w, m)))
		return WALK_AGAIN;
	struct unwind_rule rule =
		rule_of(m->page_count ? table_find(m, offset) : UNWIND_CFA_FRAME_POINTER);
	if (m->kind == MAPPING_FILE || m->kind == MAPPING_VDSO) {
		walk_record(w, m->file_id, offset + unwind_rule_early_bytes(&rule, w->pc_is_exact));
	} else {
		walk_record(w, FRAME_FILE_ADDRESS, address);
		if (m->kind == MAPPING_UNKNOWN_FILE)
			return STACK_END_NO_FILE;
	}
	if (w->compat)
		return STACK_END_UNSUPPORTED;
	if (w->is_new)
		return STACK_END_ROOT;
	if (!m->page_count && m->page_base == FILE_NO_ROOM)
		return STACK_END_NO_ROOM;
	enum stack_end end = step_by_rule(w, &rule);
	if (m->runtime && m->runtime == w->runtime.record && w->runtime.frame &&
		end == STACK_END_NONE && runtime_leave(offset))
		return WALK_AGAIN;
	return end;
}

/* Native frames in a row pay for the choice between kinds of steps, and the way to them, once. */
#define WALK_NATIVE_ROW 32

/* Walks on by some native frames, or by one of a runtime, or a step towards it. Global, so that the
 * loop stays small. */
__noinline int walk_step(__u32 zero)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &zero);
	if (!w)
		return STACK_END_NO_REGS;
	if (w->runtime.stage >= RUNTIME_FIND)
		return runtime_code_step(w);
	if (w->runtime.stage != RUNTIME_NATIVE)
		return runtime_step(0);
	int end = STACK_END_NONE;
	for (int i = 0; i < WALK_NATIVE_ROW && end == STACK_END_NONE; i++)
		end = walk_frame(0);
	return end == WALK_AGAIN ? STACK_END_NONE : end;
}

/* A frame of a runtime may take two steps: one to look at it, and one to record it. */
#define WALK_STEPS_MAX (2 * SAMPLE_USER_FRAMES_MAX)

static __always_inline enum stack_end walk_user_stack(struct walk *w)
{
	int end = STACK_END_NONE;
	for (int i = 0; i <= WALK_STEPS_MAX; i++) {
		end = walk_step(0);
		if (end != STACK_END_NONE)
			break;
	}
	if (end == STACK_END_NONE)
		end = STACK_END_DEPTH;
	runtime_finish(w, end);
	return end;
}
