/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * rule: the unwind table as user space writes it and the BPF program reads it.
 *
 * Included by src/unwind and, as the only header of ours besides shared.h, by src/agent/bpf: plain
 * integers, no other include. Little endian. docs/formats/unwind.md has the same in words.
 *
 * A table covers one file by 64 KiB pages of file offset (so no load address is in it, and one
 * table serves every process that maps the file). A page is a blob of at most 64 KiB:
 *
 *   dense   u16 start[257], pad to 520 | rule[rule_count] | { u8 low, u8 rule } row[…]
 *           rows of the 256 bytes of text number b are start[b] … start[b+1] - 1, low ascending
 *   sparse  rule[rule_count] | u16 pc[row_count] | u8 rule[row_count]
 *           pc ascending
 *
 * The row in force at an offset is the last one at or before it; the first row of a page is always
 * at its offset 0 (carried over from the page before), so there is one.
 */
#pragma once

#ifndef __VMLINUX_TYPES__
#include <linux/types.h>
#endif

#define UNWIND_PAGE_SHIFT 16
#define UNWIND_BLOB_BYTES_MAX 65536
#define UNWIND_RULES_MAX 255 /* a page with more gives its rarest ones UNSUPPORTED */
#define UNWIND_DENSE_STARTS 257
#define UNWIND_DENSE_HEAD_BYTES 520 /* start[] and padding */
#define UNWIND_SPARSE_ROWS_MAX 127  /* more rows: dense */

/* How to find the canonical frame address. x86-64 names; FP is rbp (x29). */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0,     /* no unwind information here */
	UNWIND_CFA_SP = 1,       /* sp + cfa_off */
	UNWIND_CFA_FP = 2,       /* fp + cfa_off */
	UNWIND_CFA_DEREF_FP = 3, /* *(fp + cfa_off) + ra_off */
	UNWIND_CFA_DEREF_SP = 4, /* *(sp + cfa_off) + ra_off */
	UNWIND_CFA_PLT = 5,      /* sp + 8 + ((pc & 15) >= cfa_off ? 8 : 0) */
	UNWIND_CFA_SIGNAL = 6,   /* a kernel signal frame at sp: ucontext holds all registers */
	UNWIND_CFA_STOP = 7,     /* outermost: the return address is undefined */
	UNWIND_CFA_FRAME_POINTER = 8, /* push rbp; mov rsp, rbp: fp + 16, return address checked */
	UNWIND_CFA_UNSUPPORTED = 9,   /* information is there, but not of a form we can follow */
	/* sp + 8 * ((u16)cfa_off + 65536 * ra_off): a frame larger than SP can say */
	UNWIND_CFA_SP_WORDS = 10,
	/* register number ra_off (DWARF's) + cfa_off. All registers are known in the interrupted
	 * frame; further up only rbx, as long as `fp` tells where it is */
	UNWIND_CFA_REGISTER = 11,
	UNWIND_CFA_RA_REGISTER = 12, /* sp + cfa_off, return address in register ra_off */
	UNWIND_CFA_SWITCH = 13,      /* fp + cfa_off, which may lie on another stack */
	/* Go's morestack: the goroutine's pc and sp are in its g: r14 of the interrupted frame is
	 * g0 or m.curg; cfa_off is where curg is in an m, fp_off where sched.bp is in a g */
	UNWIND_CFA_GO_MORESTACK = 14,
	/* libgcc on its way to an exception's handler: its own frame is overwritten by then, and
	 * the registers to go on with are in the _Unwind_Context at fp + cfa_off */
	UNWIND_CFA_CONTEXT = 15,
	UNWIND_CFA_COUNT
};

/* libgcc, unwind-dw2.c: reg[6], which points to rbp; cfa; ra. */
#define UNWIND_CONTEXT_FP 0x30
#define UNWIND_CONTEXT_CFA 0x90
#define UNWIND_CONTEXT_RA 0x98

/* Go, runtime2.go: g.m; g.sched.sp and .pc; m.g0 is its first word. */
#define UNWIND_GO_G_M 48
#define UNWIND_GO_G_SP 56
#define UNWIND_GO_G_PC 64

enum unwind_fp {
	UNWIND_FP_SAME = 0,  /* the caller's fp is still in the register */
	UNWIND_FP_SAVED = 1, /* at cfa + fp_off */
	UNWIND_FP_UNDEFINED = 2,
	UNWIND_FP_AT_FP = 3, /* at fp + fp_off: functions that realign the stack, with DEREF_FP */
	UNWIND_FP_COUNT
};
#define UNWIND_FP_MASK 0x0f

/* In the upper half of `fp`: the caller's rbx, in files where a CFA is found by it (ld.so). */
enum unwind_bx {
	UNWIND_BX_LOST = 0x00,
	UNWIND_BX_SAME = 0x10,
	UNWIND_BX_SAVED = 0x20, /* at cfa + ra_off; the return address is at cfa - 8 then */
	UNWIND_BX_MASK = 0x30,
};

/* In the upper half of `fp`: no stack ends at this rule. A return address of zero means that the
 * rule is wrong. Two kinds of rules have the flag:
 * - Rules that were read from code, because there is no call frame information for it.
 * - Rules of an entry whose first byte is never called: a cold part of a function, or an
 *   interpreter in assembly, whose one rule does not hold all the way (LuaJIT). */
#define UNWIND_FP_NO_END 0x40

/* SIGNAL, STOP: the byte before a function that is returned to, and never called. A return
 * address is looked up by the byte before it; the frame's name is that of the next byte. */
#define UNWIND_OFF_EARLY 1

struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 fp;  /* enum unwind_fp | enum unwind_bx | UNWIND_FP_NO_END */
	__s16 cfa_off;
	__s16 fp_off;
	__s16 ra_off; /* return address at cfa + ra_off (x86-64: -8, except for DEREF, where it
		       * is the addend, REGISTER, where it is the register, SP_WORDS and
		       * BX_SAVED: there the address is at cfa - 8). arm64: 0 means in lr */
};

/* ---- what a rule means, for each walker: agent/bpf/walk.h, step.c, sample/deferred.c ---- */

/* Inlined into the BPF program, whose verifier would look at each call. */
#define UNWIND_INLINE static inline __attribute__((always_inline))

#define UNWIND_STACK_ALIGN_BYTES 16 /* of a canonical frame address, by the ABIs */
/* How far from the top of the stack, as execve left it, entry code without unwind information may
 * have moved sp: ld.so aligns it, and moves it up when it was run as a command. */
#define UNWIND_STACK_BASE_SLACK_BYTES 64

/* sp is where execve left the stack. */
UNWIND_INLINE int unwind_is_at_stack_base(__u64 stack_start, __u64 sp)
{
	return stack_start - sp + UNWIND_STACK_BASE_SLACK_BYTES <=
	       2 * UNWIND_STACK_BASE_SLACK_BYTES;
}

/* The CFA is found by the frame pointer, not by sp. */
UNWIND_INLINE int unwind_rule_is_by_fp(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_FP || rule->cfa == UNWIND_CFA_DEREF_FP ||
	       rule->cfa == UNWIND_CFA_SWITCH;
}

/* UNWIND_CFA_PLT */
UNWIND_INLINE __u64 unwind_rule_plt_cfa(const struct unwind_rule *rule, __u64 sp, __u64 pc)
{
	return sp + 8 + ((__s64)(pc & 15) >= rule->cfa_off ? 8 : 0);
}

/* UNWIND_CFA_SP_WORDS */
UNWIND_INLINE __u64 unwind_rule_words_cfa(const struct unwind_rule *rule, __u64 sp)
{
	return sp + 8 * ((__u64)(__u16)rule->cfa_off + ((__s64)rule->ra_off << 16));
}

/* ra_off, if that is where the return address is; else the return address lies below the CFA. */
UNWIND_INLINE __s64 unwind_rule_ra_off(const struct unwind_rule *rule)
{
	int is_plain = rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP;
	return is_plain && (rule->fp & UNWIND_BX_MASK) != UNWIND_BX_SAVED ? rule->ra_off : -8;
}

/* A helper that has put nothing on the stack has not changed the registers by which its caller,
 * assembly as well, finds its frame. `is_exact`: this is the interrupted frame. */
UNWIND_INLINE int unwind_rule_keeps_registers(const struct unwind_rule *rule, int is_exact)
{
	return is_exact && rule->cfa == UNWIND_CFA_SP && rule->cfa_off == 8;
}

/* Whether a return address of zero, with the caller's sp and frame pointer, is the end of a stack.
 * It is one if the frame has called another, its CFA is aligned, and the rule is from call frame
 * information. Else the rule is wrong. */
UNWIND_INLINE int unwind_rule_may_end(
	const struct unwind_rule *rule, int is_exact, __u64 sp, __u64 fp)
{
	return !is_exact && !(rule->fp & UNWIND_FP_NO_END) && fp == 0 &&
	       !(sp & (UNWIND_STACK_ALIGN_BYTES - 1));
}

/* What a step reads of the memory of a process, for both walkers. */

/* Whether the caller's frame pointer is read from memory, and from which address. */
UNWIND_INLINE int unwind_rule_reads_fp(const struct unwind_rule *rule)
{
	__u32 kind = rule->fp & UNWIND_FP_MASK;
	return kind == UNWIND_FP_SAVED || kind == UNWIND_FP_AT_FP;
}

UNWIND_INLINE __u64 unwind_rule_fp_at(const struct unwind_rule *rule, __u64 cfa, __u64 fp)
{
	__u32 kind = rule->fp & UNWIND_FP_MASK;
	return (kind == UNWIND_FP_SAVED ? cfa : fp) + (__s64)rule->fp_off;
}

/* The caller's rbx, with UNWIND_BX_SAVED. */
UNWIND_INLINE __u64 unwind_rule_bx_at(const struct unwind_rule *rule, __u64 cfa)
{
	return cfa + (__s64)rule->ra_off;
}

/* The CFA is in memory at base + cfa_off, and ra_off is added to it. */
UNWIND_INLINE int unwind_rule_reads_cfa(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_DEREF_FP || rule->cfa == UNWIND_CFA_DEREF_SP;
}

/* UNWIND_CFA_CONTEXT: the _Unwind_Context. */
UNWIND_INLINE __u64 unwind_rule_context_at(const struct unwind_rule *rule, __u64 fp)
{
	return fp + (__s64)rule->cfa_off;
}

/* A frame pointer that may be followed: the caller's lies at it, the return address above it. */
#define UNWIND_FP_ALIGN_MASK 7
UNWIND_INLINE int unwind_fp_may_be_followed(__u64 fp, __u64 sp)
{
	return fp >= sp && !(fp & UNWIND_FP_ALIGN_MASK);
}

/* Registers of x86-64 lie in a signal frame from sp + 40 on, a word each; four bits for each DWARF
 * number say at which place, and pc is at the last. Source: the kernel's
 * arch/x86/include/uapi/asm/sigcontext.h. */
#define UNWIND_X86_SIGNAL_AT 40
#define UNWIND_X86_SIGNAL_PC 16
#define UNWIND_X86_SIGNAL_PLACES 0x76543210fa89becdULL
#define UNWIND_X86_SIGNAL_PLACE(dwarf) (UNWIND_X86_SIGNAL_PLACES >> ((dwarf)&15) * 4 & 15)

/* The distance from the byte that was looked up to the byte that names the frame. */
UNWIND_INLINE __u64 unwind_rule_early_bytes(const struct unwind_rule *rule, int is_exact)
{
	int is_early = (rule->cfa == UNWIND_CFA_SIGNAL || rule->cfa == UNWIND_CFA_STOP) &&
		       rule->cfa_off == UNWIND_OFF_EARLY;
	return is_early && !is_exact;
}

/* Where a page's blob lies in kernel memory. 8 bytes; all zero: nothing is known of this page. */
struct unwind_page {
	__u16 chunk; /* 64 KiB chunk: slab << SLAB_CHUNK_SHIFT (agent/bpf/layout.h) | chunk in slab
		      */
	__u16 off8;  /* offset in the chunk / 8 */
	__u16 rule_count;
	__u16 row_count; /* 0: dense */
};
