/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rules from the code itself, where there is no call frame information: musl's libc, assembly
 * of codecs and crypto libraries.
 *
 * The code is read instruction by instruction, and each change of rsp is followed. A forward branch
 * carries the state to its target, if the code in between ends with a return or a jump. A function
 * ends at a return or jump behind which no branch leads. Its rules count only if it returns each
 * time with rsp where it was at its beginning, and calls with rsp aligned as the ABI wants. If not,
 * two other readings are tried: the function ends at a call that does not return, with padding or
 * the next function behind it; or it never returns, but calls or enters the kernel as functions do.
 *
 * A function that aligns its stack by a copy of its CFA (GCC: lea 8(%rsp), %r10; and $-64, %rsp;
 * push -8(%r10); push %rbp; mov %rsp, %rbp; push %r10) has it in that register first, and then in
 * its frame.
 *
 * A function is read again as long as branches back give more states, for code that nothing else
 * leads to.
 *
 * Jumps back into code behind a return are not followed, nor are tables of jumps: code behind an
 * indirect jump counts as its cases. Code behind such a function, or code that jumps back into it,
 * counts as a function of its own only if it returns.
 */
#include "unwind/x86.h"
#include "unwind/x86insn.h"

#include <stdlib.h>

#define TARGETS_MAX 4096 /* power of two; half as many targets of branches in one function */
#define TARGETS_MIN 32   /* power of two; in short pieces of code the table is smaller */
#define ROWS_MAX 2048    /* of one function */
#define DEPTH_MAX 0x7000
#define STEPS_PER_BYTE_MAX 6 /* real code takes 1 to 2 */
#define TIMES_MAX 3          /* how often a function is read at most */
#define NEAR_BYTES 256       /* a branch not farther than this is no tail call */
#define PADDING_ALIGN 16

/* ---- one function ---- */

enum { RSP = 4, RBP = 5 };

struct known {            /* at an instruction */
	int32_t depth;    /* bytes that the function has pushed; below 0: not known */
	int32_t fp_depth; /* rbp is the frame pointer: depth where it was set; below 0: it is not */
	int16_t fp_off;   /* where the caller's rbp is saved, relative to the CFA; 0: nowhere */
	int16_t ra_reg; /* the register that the return address was popped into, with depth 0; below
			   0: none */
	bool has_kept_fp; /* the caller's rbp is in memory or in another register, too */
	bool is_outermost;
	int8_t cfa_reg;   /* the register that has the CFA; below 0: none */
	uint8_t aligned;  /* enum aligned */
	int16_t below_fp; /* bytes of pushes below the new rbp, ALIGNED_BY_FP; below 0: not known */
	int16_t cfa_slot; /* the CFA is saved at rbp + cfa_slot; 0: nowhere */
};

/* How far a function is that aligns its stack and has the CFA in cfa_reg. */
enum aligned { ALIGNED_NOT, ALIGNED, ALIGNED_PUSHED_FP, ALIGNED_BY_FP };

struct target {
	size_t offset; /* + 1; 0: free */
	struct known known;
};

struct function {
	const uint8_t *code;
	size_t code_len;
	uint64_t steps; /* instructions read so far; one that is read twice counts twice */
	size_t begin;
	size_t last_target; /* the branch that leads furthest ahead */
	size_t call_end;    /* behind a call that may be the last instruction; 0: there is none */
	uint32_t target_count;
	size_t target_mask; /* the table is the first target_mask + 1 slots of `targets` */
	struct target targets[TARGETS_MAX];
	uint16_t used[TARGETS_MAX / 2]; /* which slots of `targets` are used */
	uint32_t row_count;
	struct machine_row rows[ROWS_MAX];
	uint32_t calls; /* calls with rsp aligned */
	bool has_syscall;
	bool has_gap; /* there is padding behind a call, and no branch leads past it */
	bool returns;
	bool is_wrong;
	bool has_table; /* of jumps: what follows may be its cases */
	/* Where the last function that returned begins, and whether the code that follows may still
	 * belong to it. */
	size_t before;
	bool is_suspect;
};

static const struct known at_entry = { .fp_depth = -1, .ra_reg = -1, .cfa_reg = -1 };
/* The depth where no instruction that was read leads. */
#define DEPTH_UNREACHED (-2)
static const struct known unreached = {
	.depth = DEPTH_UNREACHED, .fp_depth = -1, .ra_reg = -1, .cfa_reg = -1
};

static struct target *target_slot(struct function *f, size_t offset)
{
	size_t i = offset * 0x9e3779b1u & f->target_mask;
	while (f->targets[i].offset && f->targets[i].offset != offset + 1)
		i = (i + 1) & f->target_mask;
	return &f->targets[i];
}

/* Notes a branch. `goes_on`: the function reaches at least to its target. */
static void branch_to(struct function *f, size_t offset, struct known k, bool goes_on)
{
	struct target *t = target_slot(f, offset);
	if (goes_on)
		f->last_target = MAX(f->last_target, offset);
	if (t->offset || k.depth == DEPTH_UNREACHED)
		return;
	if (f->target_count > f->target_mask / 2) {
		f->is_wrong = true;
		return;
	}
	*t = (struct target){ offset + 1, k };
	f->used[f->target_count++] = (uint16_t)(t - f->targets);
}

/* System V ABI x86-64, figure 3.36. */
static uint8_t dwarf_of(uint32_t reg)
{
	static const uint8_t low[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	return reg < ARRAY_COUNT(low) ? low[reg] : (uint8_t)reg;
}

static struct unwind_rule rule_of_aligned(const struct known *k)
{
	bool is_by_fp = k->aligned == ALIGNED_BY_FP;
	struct unwind_rule rule = { .cfa = UNWIND_CFA_REGISTER,
		.fp = UNWIND_FP_NO_END | (is_by_fp ? UNWIND_FP_AT_FP : UNWIND_FP_SAME),
		.ra_off = dwarf_of((uint32_t)k->cfa_reg) };
	if (is_by_fp && k->cfa_slot) {
		rule.cfa = UNWIND_CFA_DEREF_FP;
		rule.cfa_off = k->cfa_slot;
		rule.ra_off = 0;
	}
	return rule;
}

static struct unwind_rule rule_of(const struct known *k)
{
	if (k->is_outermost)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_STOP };
	if (k->aligned)
		return rule_of_aligned(k);
	if (k->ra_reg >= 0)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_RA_REGISTER,
			.fp = UNWIND_FP_NO_END,
			.ra_off = dwarf_of((uint32_t)k->ra_reg) };
	bool by_fp = k->fp_depth >= 0;
	int32_t depth = by_fp ? k->fp_depth : k->depth;
	struct unwind_rule rule = { .cfa = by_fp ? UNWIND_CFA_FP : UNWIND_CFA_SP,
		.fp = UNWIND_FP_NO_END,
		.cfa_off = (int16_t)(depth + 8),
		.ra_off = -8 };
	if (depth < 0)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_NONE };
	if (k->fp_off) {
		rule.fp |= UNWIND_FP_SAVED;
		rule.fp_off = k->fp_off;
	}
	return rule;
}

static void add_row(struct function *f, size_t offset, const struct known *k)
{
	struct unwind_rule rule = rule_of(k);
	if (f->row_count && memcmp(&f->rows[f->row_count - 1].rule, &rule, sizeof(rule)) == 0)
		return;
	if (f->row_count == ROWS_MAX)
		f->is_wrong = true;
	else
		f->rows[f->row_count++] = (struct machine_row){ offset, rule };
}

static void lose(struct known *k)
{
	k->depth = -1;
	k->ra_reg = -1;
	k->aligned = ALIGNED_NOT;
}

static void push_aligned(struct known *k, uint32_t reg)
{
	if (k->aligned == ALIGNED && reg == RBP) {
		k->aligned = ALIGNED_PUSHED_FP;
	} else if (k->aligned == ALIGNED_BY_FP && k->below_fp >= 0 && k->cfa_slot == 0) {
		k->below_fp += 8;
		if ((int8_t)reg == k->cfa_reg)
			k->cfa_slot = (int16_t)-k->below_fp;
	}
}

/* rsp is aligned downwards. The CFA is then in cfa_reg, or lost. */
static void align_sp(struct known *k)
{
	bool is_kept = k->cfa_reg >= 0 && k->depth >= 0 && k->fp_depth < 0;
	k->depth = -1;
	k->aligned = is_kept ? ALIGNED : ALIGNED_NOT;
	k->cfa_slot = 0;
}

static void move_sp(struct known *k, int64_t by)
{
	if (k->ra_reg >= 0)
		lose(k);
	if (k->depth < 0)
		return;
	int64_t depth = k->depth + by;
	k->depth = depth < 0 || depth > DEPTH_MAX ? -1 : (int32_t)depth;
}

static void push(struct known *k, uint32_t reg)
{
	push_aligned(k, reg);
	if (k->ra_reg == (int16_t)reg) {
		k->ra_reg = -1;
		return;
	}
	move_sp(k, 8);
	if (reg == RBP && k->fp_off == 0 && k->depth >= 0 && k->fp_depth < 0)
		k->fp_off = (int16_t)(-k->depth - 8);
}

static void pop(struct known *k, uint32_t reg)
{
	if (k->depth == 0 && k->fp_depth < 0 && k->ra_reg < 0 && reg != RSP && reg != RBP) {
		k->ra_reg = (int16_t)reg; /* vfork: the child will overwrite the stack */
		return;
	}
	move_sp(k, -8);
	if (reg == RBP) {
		k->fp_off = 0;
		k->fp_depth = -1;
		if (k->aligned) /* the register has the CFA again */
			k->aligned = ALIGNED;
	}
}

/* rsp from rbp + displacement */
static void sp_from_fp(struct known *k, int64_t displacement)
{
	int64_t depth = k->fp_depth - displacement;
	k->depth = k->fp_depth < 0 || depth < 0 || depth > DEPTH_MAX ? -1 : (int32_t)depth;
}

struct operands {
	uint32_t reg, rm;
	bool is_register; /* rm is a register, not memory */
	bool by_rsp;      /* memory at rsp + displacement */
};

static struct operands operands_of(const struct x86_insn *i)
{
	bool is_register = i->modrm >> 6 == 3;
	return (struct operands){
		.reg = (i->modrm >> 3 & 7) | (i->rex & 4) << 1,
		.rm = (i->modrm & 7) | (i->rex & 1) << 3,
		.is_register = is_register,
		.by_rsp = !is_register && (i->modrm & 7) == 4 && i->sib == 0x24 && !(i->rex & 3),
	};
}

/* add, or, adc, sbb, and, sub, xor, cmp with an immediate */
static void apply_immediate(struct known *k, const struct x86_insn *i, const struct operands *o)
{
	uint32_t operation = o->reg & 7;
	if (!o->is_register || o->rm != RSP)
		return;
	if (operation == 0)
		move_sp(k, -i->immediate);
	else if (operation == 5)
		move_sp(k, i->immediate);
	else if (operation == 4)
		align_sp(k);
	else if (operation != 7)
		k->depth = -1;
	if (operation == 5 && k->cfa_slot == 0)
		k->below_fp = -1;
}

static void apply_mov(struct known *k, uint32_t to, uint32_t from, bool is_register)
{
	if (is_register && to == RBP && from == RSP && k->aligned == ALIGNED_PUSHED_FP) {
		k->aligned = ALIGNED_BY_FP;
		k->below_fp = 0;
	} else if (to == RBP && k->aligned)
		lose(k);
	else if (is_register && to == RBP && from == RSP && k->fp_off)
		k->fp_depth = k->depth;
	else if (is_register && to == RSP && from == RBP)
		sp_from_fp(k, 0);
	else if (to == RSP)
		k->depth = -1;
	else if (to == RBP)
		k->fp_depth = -1;
}

static void apply_lea(struct known *k, const struct x86_insn *i, const struct operands *o)
{
	if (o->reg != RSP && o->reg != RBP && o->by_rsp && k->depth >= 0 &&
		i->displacement == k->depth + 8)
		k->cfa_reg = (int8_t)o->reg;
	else if (o->reg == RSP && k->aligned == ALIGNED && (int8_t)o->rm == k->cfa_reg &&
		 !o->by_rsp && i->displacement == -8)
		*k = at_entry;
	else if (o->reg == RSP && o->by_rsp)
		move_sp(k, -i->displacement);
	else if (o->reg == RSP && o->rm == RBP && i->modrm >> 6 != 0)
		sp_from_fp(k, i->displacement);
	else if (o->reg == RSP)
		k->depth = -1;
	else if (o->reg == RBP && o->by_rsp && k->fp_off && i->displacement >= 0 &&
		 k->depth >= i->displacement)
		k->fp_depth = k->depth - (int32_t)i->displacement;
	else if (o->reg == RBP)
		k->fp_depth = -1;
}

/* Opcodes of 64 bits with modrm, where they write rsp or rbp. */
static void apply_modrm(struct known *k, const struct x86_insn *i)
{
	struct operands o = operands_of(i);
	if (i->opcode == 0x81 || i->opcode == 0x83) {
		apply_immediate(k, i, &o);
	} else if (i->opcode == 0x89) {
		k->has_kept_fp = k->has_kept_fp || o.reg == RBP;
		if (o.is_register)
			apply_mov(k, o.rm, o.reg, true);
	} else if (i->opcode == 0x8b) {
		apply_mov(k, o.reg, o.rm, o.is_register);
	} else if (i->opcode == 0x8d) {
		apply_lea(k, i, &o);
	} else if (i->opcode == 0x8f) {
		move_sp(k, -8);
	} else if (i->opcode == 0xff) {
		if ((o.reg & 7) == 6)
			move_sp(k, 8);
	} else if ((i->opcode < 0x38 || i->opcode == 0x87) && o.is_register) {
		/* add, sub … of registers, xchg */
		k->has_kept_fp = k->has_kept_fp || i->opcode == 0x87;
		uint32_t to = i->opcode & 2 && i->opcode != 0x87 ? o.reg : o.rm;
		if (to == RSP)
			k->depth = k->below_fp = -1;
		else if (to == RBP)
			k->fp_depth = -1;
	}
}

/* System V ABI 3.4.1: a function that clears rbp, and has not kept it for a caller, is the
 * outermost frame from there on (musl's clone, the entry of a program). */
static void apply_clear(struct known *k)
{
	k->is_outermost = !k->fp_off && !k->has_kept_fp && k->depth >= 0;
	if (k->is_outermost)
		lose(k);
	k->fp_depth = -1;
}

static void apply(struct known *k, const struct x86_insn *i)
{
	uint32_t reg = (i->opcode & 7) | (i->rex & 1) << 3;
	if (i->is_vector || i->map != 0)
		return;
	if (i->opcode >= 0x50 && i->opcode <= 0x57)
		push(k, reg);
	else if (i->opcode >= 0x58 && i->opcode <= 0x5f)
		pop(k, reg);
	else if (i->opcode == 0x68 || i->opcode == 0x6a || i->opcode == 0x9c)
		move_sp(k, 8);
	else if (i->opcode == 0x9d)
		move_sp(k, -8);
	else if (i->opcode == 0xc9) { /* leave */
		sp_from_fp(k, 0);
		pop(k, RBP);
	} else if ((i->opcode == 0x31 || i->opcode == 0x33) && i->modrm == 0xed && !(i->rex & 5)) {
		apply_clear(k); /* xor %ebp, %ebp */
	} else if (i->has_modrm && (i->rex & 8 || i->opcode == 0xff || i->opcode == 0x8f))
		apply_modrm(k, i);
}

/* Free Pascal's linker fills with zeros: add %al, (%rax), which no compiler writes. */
static bool is_padding(const struct x86_insn *i)
{
	bool is_zero = i->opcode == 0 && i->len == 2 && i->modrm == 0 && !i->rex;
	return (i->map == 0 && (i->opcode == 0x90 || i->opcode == 0xcc || is_zero)) ||
	       (i->map == 1 && (i->opcode == 0x1f || i->opcode == 0x0b));
}

enum flow { FLOW_ON, FLOW_ENDS };

/* A jump or a branch with its target in the instruction. */
static void follow_branch(struct function *f, const struct x86_insn *i, size_t at,
	const struct known *k, size_t len, bool is_jump)
{
	int64_t to = (int64_t)(at + i->len) + i->immediate;
	/* A jump with nothing on the stack may be a tail call; then it does not prove that the
	 * function goes on at its target, unless that is near. If it is no tail call, the code
	 * behind the next return has nothing on the stack either. */
	bool is_bare = k->depth == 0 && k->fp_depth < 0 && k->ra_reg < 0;
	bool is_near = !is_jump && i->immediate < NEAR_BYTES;
	/* A jump where nothing is known any more counts as one that leaves the function. */
	bool is_lost = is_jump && k->depth < 0 && k->fp_depth < 0 && !k->aligned;
	if (to > (int64_t)at && to < (int64_t)len && !is_lost)
		branch_to(f, (size_t)to, *k, !is_bare || is_near);
	else if (to >= (int64_t)f->begin && to <= (int64_t)at && (k->depth >= 0 || k->aligned))
		branch_to(f, (size_t)to, *k, false); /* for the next reading */
	bool into_before = to > (int64_t)f->before && to < (int64_t)f->begin;
	bool leaves = to < (int64_t)f->begin || to > (int64_t)at;
	if (is_jump && is_bare && leaves && !into_before && !f->is_suspect)
		f->returns = true;
}

static bool is_branch(const struct x86_insn *i)
{
	if (i->map == 1)
		return (i->opcode & 0xf0) == 0x80;
	return i->map == 0 &&
	       ((i->opcode & 0xf0) == 0x70 || (i->opcode >= 0xe0 && i->opcode <= 0xe3));
}

static bool is_call(const struct x86_insn *i)
{
	return !i->is_vector && i->map == 0 &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && (i->modrm >> 3 & 7) == 2));
}

static bool is_syscall(const struct x86_insn *i)
{
	return !i->is_vector && i->map == 1 && i->opcode == 0x05;
}

/* Does it call a function that only stops the program? (musl's __stack_chk_fail: nothing need be
 * between such a call and the next function.) */
static bool calls_halt(const struct function *f, const struct x86_insn *i, size_t at)
{
	if (i->map != 0 || i->opcode != 0xe8) /* of others the immediate may be any 64 bits */
		return false;
	int64_t to = (int64_t)(at + i->len) + i->immediate;
	return to >= 0 && to < (int64_t)f->code_len && f->code[to] == 0xf4;
}

/* The effect of the instruction at `at` on the flow; `k` is the state before it. */
static enum flow follow(
	struct function *f, const struct x86_insn *i, size_t at, const struct known *k, size_t len)
{
	if (i->is_vector || i->map > 1)
		return FLOW_ON;
	bool is_jump = i->map == 0 && (i->opcode == 0xeb || i->opcode == 0xe9);
	if (is_jump || is_branch(i)) {
		follow_branch(f, i, at, k, len, is_jump);
		return is_jump ? FLOW_ENDS : FLOW_ON;
	}
	if (i->map == 1)
		return i->opcode == 0x0b ? FLOW_ENDS : FLOW_ON; /* ud2 */
	if (i->opcode == 0xc3 || i->opcode == 0xc2) {
		f->returns = true;
		bool is_right = k->depth == 0 && k->ra_reg < 0;
		f->is_wrong = f->is_wrong || !(is_right || k->depth == DEPTH_UNREACHED);
		return FLOW_ENDS;
	}
	if (i->opcode == 0xff && (i->modrm >> 3 & 7) == 4) {
		if (k->depth == 0 && k->fp_depth < 0 && k->ra_reg < 0) {
			f->returns = true; /* a tail call, or a jump table whose cases begin with
					      nothing on the stack */
			return FLOW_ENDS;
		}
		f->has_table = true;
	}
	if (calls_halt(f, i, at))
		return FLOW_ENDS;
	return i->opcode == 0xf4 ? FLOW_ENDS : FLOW_ON; /* hlt */
}

static void emit(const struct function *f, size_t end, machine_row_fn *put, void *ctx)
{
	bool is_good = f->returns && !f->is_wrong;
	for (uint32_t i = 0; is_good && i < f->row_count && f->rows[i].offset < end; i++)
		put(ctx, f->rows[i].offset, f->rows[i].rule);
	if (!is_good && f->begin < end)
		put(ctx, f->begin, (struct unwind_rule){ .cfa = UNWIND_CFA_NONE });
}

static void begin_reading(struct function *f)
{
	f->last_target = 0;
	f->row_count = 0;
	f->call_end = 0;
	f->calls = 0;
	f->has_syscall = false;
	f->has_gap = false;
	f->returns = false;
	f->is_wrong = false;
	f->has_table = false;
}

static void begin_function(struct function *f, size_t at)
{
	f->begin = at;
	while (f->target_count)
		f->targets[f->used[--f->target_count]].offset = 0;
	begin_reading(f);
}

/* The state at an instruction that neither the one before it nor a known branch leads to. Behind a
 * return nothing is known. Behind a jump the state before the jump is assumed, since compilers lay
 * blocks of equal depth side by side. */
static struct known known_behind(const struct known *k)
{
	return k->depth == 0 && k->fp_depth < 0 ? unreached : *k;
}

/* Notes what a call proves about the function. */
static void note_call(struct function *f, struct known *k)
{
	if (k->ra_reg >= 0) /* registers are not known after a call */
		lose(k);
	if (!k->aligned)
		k->cfa_reg = -1;
	if (k->depth < 0)
		return;
	f->calls++;
	/* The ABI: rsp + 8 is a multiple of 16 where a function begins. */
	if (k->depth % 16 != 8)
		f->is_wrong = true;
}

/* Padding that aligns the beginning of a loop, behind a call that returns. */
static bool is_padding_to_target(struct function *f, size_t at, size_t len)
{
	struct x86_insn i;
	while (at < len && x86_insn_decode(f->code + at, len - at, &i) && is_padding(&i))
		at += i.len;
	return f->target_count && target_slot(f, at)->offset;
}

/* Reads one function from f->begin up to `len`; returns its end. With `calls_end` a call with
 * padding behind it ends the function. A function that does not end before `len` is wrong. */
static size_t read_function(struct function *f, size_t len, bool calls_end)
{
	struct known k = at_entry;
	size_t at = f->begin;
	bool ended = false; /* no way leads here from the instruction before */
	bool after_call = false;
	while (at < len) {
		struct x86_insn i;
		const struct target *t = f->target_count ? target_slot(f, at) : NULL;
		bool is_target = t && t->offset;
		f->steps++;
		if (!x86_insn_decode(f->code + at, len - at, &i)) {
			f->is_wrong = true;
			return MIN((at | (PADDING_ALIGN - 1)) + 1, len);
		}
		if (ended && at > f->last_target && (!is_padding(&i) || i.opcode == 0))
			return at;
		if (is_target && (ended || k.depth < 0))
			k = t->known;
		else if (ended && !is_padding(&i))
			k = known_behind(&k);
		ended = ended && !is_target && is_padding(&i);
		if (after_call && is_padding(&i) && at > f->last_target &&
			!is_padding_to_target(f, at, len)) {
			f->has_gap = true;
			if (calls_end)
				ended = f->returns = true;
		}
		after_call = is_call(&i);
		if (after_call)
			note_call(f, &k);
		f->has_syscall = f->has_syscall || is_syscall(&i);
		add_row(f, at, &k);
		if (follow(f, &i, at, &k, len) == FLOW_ENDS)
			ended = true;
		apply(&k, &i);
		at += i.len;
		if (after_call && !f->call_end && at > f->last_target && f->returns && !f->is_wrong)
			f->call_end = at;
	}
	f->is_wrong = f->is_wrong || !ended;
	return len;
}

static bool is_believed(const struct function *f)
{
	return f->returns && !f->is_wrong;
}

size_t x86_entry_bytes(const uint8_t *code, size_t len)
{
	size_t last_target = 0;
	struct x86_insn i;
	for (size_t at = 0; at < len && x86_insn_decode(code + at, len - at, &i); at += i.len) {
		bool is_plain = !i.is_vector && i.map == 0;
		bool is_jump = is_plain && (i.opcode == 0xeb || i.opcode == 0xe9);
		int64_t to = (int64_t)(at + i.len) + i.immediate;
		if ((is_jump || is_branch(&i)) && to > 0 && to < (int64_t)len)
			last_target = MAX(last_target, (size_t)to);
		bool is_left = is_jump || (is_plain && (i.opcode == 0xc3 || i.opcode == 0xf4)) ||
			       (is_plain && i.opcode == 0xff && (i.modrm >> 3 & 7) == 4);
		struct x86_insn behind;
		if (is_call(&i) && x86_insn_decode(code + at + i.len, len - at - i.len, &behind))
			is_left = is_padding(&behind);
		if (is_left && last_target < at + i.len)
			return at + i.len;
	}
	return len;
}

/* Whether a function that does not return is real code, and not data: the beginning of a thread, a
 * child of posix_spawn, _Exit.
 */
static bool is_endless(const struct function *f)
{
	return !f->returns && !f->is_wrong && !f->is_suspect && (f->calls >= 2 || f->has_syscall);
}

/* Reads the function again until its backward branches give no new states. */
static size_t read_again(struct function *f, size_t len, bool calls_end)
{
	size_t end = 0;
	for (uint32_t known = 0, times = 0;
		times == 0 || (known < f->target_count && times < TIMES_MAX); times++) {
		known = f->target_count;
		begin_reading(f);
		end = read_function(f, len, calls_end);
	}
	return end;
}

/* The function that begins at `at`; its end. */
static size_t find_function(struct function *f, size_t at, size_t len)
{
	len = MIN(len, at + X86_FUNCTION_BYTES_MAX);
	begin_function(f, at);
	size_t end = read_again(f, len, false);
	size_t call_end = f->call_end;
	bool is_right = is_believed(f);
	if (is_right && !f->has_gap)
		return end;
	bool is_last_way = is_right || is_endless(f);
	begin_function(f, at);
	end = read_again(f, len, true);
	if (is_believed(f) || !(call_end || is_last_way))
		return end;
	if (is_last_way) {
		begin_function(f, at);
		end = read_again(f, len, false);
		f->returns = true;
		return end;
	}
	/* The function is right up to a call that no branch leads past: that call does not return,
	 * and another function is right behind it. */
	begin_function(f, at);
	end = read_again(f, call_end, false);
	f->is_wrong = false;
	return end;
}

size_t x86_code_rows(const uint8_t *code, size_t len, bool is_last, machine_row_fn *put, void *ctx)
{
	CLEANUP(free_cleanup) struct function *f = malloc(sizeof(*f));
	size_t at = 0;
	if (!f)
		return len; /* without memory there are no rules */
	size_t targets = TARGETS_MIN;
	while (targets < TARGETS_MAX && targets < 2 * len)
		targets *= 2;
	memset(f, 0, offsetof(struct function, targets) + targets * sizeof(f->targets[0]));
	f->target_mask = targets - 1;
	f->row_count = 0;
	f->code = code;
	f->code_len = len;
	f->before = 0;
	f->is_suspect = false;
	while (at < len) {
		if (code[at] == 0) { /* no function begins with a zero byte */
			at++;
			continue;
		}
		if (!is_last && at > 0 && len - at < X86_FUNCTION_BYTES_MAX)
			return at;
		if (f->steps > STEPS_PER_BYTE_MAX * len) { /* made to take long to read */
			put(ctx, at, (struct unwind_rule){ .cfa = UNWIND_CFA_NONE });
			return len;
		}
		size_t end = find_function(f, at, len);
		if (f->returns && !f->is_wrong)
			f->before = f->begin;
		f->is_suspect = f->has_table || f->is_wrong || (f->is_suspect && !f->returns);
		emit(f, end, put, ctx);
		at = end;
	}
	return len;
}
