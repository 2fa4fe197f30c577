/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns states of the call frame information into rules. A state that no rule can express becomes
 * UNSUPPORTED if the frame cannot be found, and a rule with an undefined frame pointer if only that
 * is lost. Source of the numbers and of the frame: System V ABI x86-64, figure 3.36; of the PLT
 * expression: binutils, bfd/elfxx-x86.c.
 */
#include "unwind/x86.h"

#include <elf.h>

enum { REG_RBX = 3, REG_RBP = 6, REG_RSP = 7, REG_R15 = 15, REG_RA = 16 };
enum { DW_OP_DEREF = 0x06, DW_OP_CONST1U = 0x08, DW_OP_AND = 0x1a, DW_OP_PLUS = 0x22 };
enum { DW_OP_PLUS_UCONST = 0x23, DW_OP_SHL = 0x24, DW_OP_GE = 0x2a, DW_OP_LIT0 = 0x30 };
enum { DW_OP_BREG0 = 0x70, DW_OP_BREG31 = 0x8f };

/* DW_CFA_offset for rax and rdx. */
enum { CFA_OFFSET_RAX = 0x80, CFA_OFFSET_RDX = 0x81 };

#define RA_OFFSET (-8)      /* call pushes it */
#define PLT_LAZY_PUSH_AT 11 /* jmp *GOT (6 bytes); push $n (5); jmp PLT0 */

const struct cfi_registers x86_registers = { .sp = REG_RSP, .fp = REG_RBP, .bx = REG_RBX };

static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED };

static bool fits(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

/* breg REG OFFSET, and nothing behind it. */
static bool is_address(struct str expression, uint64_t *out_reg, int64_t *out_offset)
{
	struct reader r = reader_over(expression.p, expression.len);
	uint8_t op = reader_u8(&r);
	int64_t offset = reader_sleb(&r);
	if (op < DW_OP_BREG0 || op > DW_OP_BREG31 || r.failed || r.at != r.end)
		return false;
	*out_reg = op - DW_OP_BREG0;
	*out_offset = offset;
	return true;
}

/* rsp + 8 + ((rip & 15) >= N) << 3, as every linker writes it for the PLT. */
static bool is_plt(struct str expression, int16_t *out_n)
{
	static const uint8_t form[] = { DW_OP_BREG0 + REG_RSP, 8, DW_OP_BREG0 + REG_RA, 0,
		DW_OP_LIT0 + 15, DW_OP_AND, 0, DW_OP_GE, DW_OP_LIT0 + 3, DW_OP_SHL, DW_OP_PLUS };
	if (expression.len != sizeof(form))
		return false;
	for (size_t i = 0; i < sizeof(form); i++) {
		uint8_t byte = (uint8_t)expression.p[i];
		if (form[i] && byte != form[i])
			return false;
	}
	int n = (uint8_t)expression.p[6] - DW_OP_LIT0;
	if (expression.p[3] != 0 || n < 0 || n > 15)
		return false;
	*out_n = (int16_t)n;
	return true;
}

static int64_t read_addend(struct reader *r)
{
	uint8_t op = reader_u8(r);
	if (op == DW_OP_PLUS_UCONST)
		return (int64_t)reader_uleb(r);
	int64_t v = 0;
	if (op == DW_OP_CONST1U)
		v = reader_u8(r);
	else if (op >= DW_OP_LIT0 && op < DW_OP_LIT0 + 32)
		v = op - DW_OP_LIT0;
	else
		r->failed = true;
	if (reader_u8(r) != DW_OP_PLUS)
		r->failed = true;
	return v;
}

static struct unwind_rule cfa_by_register(uint64_t reg, int64_t offset)
{
	if (reg > REG_R15 || !fits(offset))
		return unsupported;
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_REGISTER,
		.cfa_off = (int16_t)offset,
		.ra_off = (int16_t)reg,
	};
}

/* breg REGISTER OFFSET [deref, of rbp and rsp] [plus ADDEND] */
static struct unwind_rule cfa_of_expression(struct str expression)
{
	struct unwind_rule rule = { .ra_off = RA_OFFSET };
	if (is_plt(expression, &rule.cfa_off)) {
		rule.cfa = UNWIND_CFA_PLT;
		return rule;
	}
	struct reader r = reader_over(expression.p, expression.len);
	uint8_t op = reader_u8(&r);
	int64_t offset = reader_sleb(&r);
	int64_t addend = 0;
	bool is_deref = r.at < r.end && *r.at == DW_OP_DEREF;
	if (is_deref)
		reader_skip(&r, 1);
	if (r.at < r.end)
		addend = read_addend(&r);
	bool by_fp = op == DW_OP_BREG0 + REG_RBP;
	if (r.failed || r.at != r.end || !fits(offset) || !fits(addend))
		return unsupported;
	if (!by_fp && op != DW_OP_BREG0 + REG_RSP)
		return is_deref || op < DW_OP_BREG0
			       ? unsupported
			       : cfa_by_register((uint64_t)op - DW_OP_BREG0, offset + addend);
	if (is_deref) {
		rule.cfa = by_fp ? UNWIND_CFA_DEREF_FP : UNWIND_CFA_DEREF_SP;
		rule.ra_off = (int16_t)addend;
	} else {
		if (!fits(offset + addend))
			return unsupported;
		rule.cfa = by_fp ? UNWIND_CFA_FP : UNWIND_CFA_SP;
		offset += addend;
	}
	rule.cfa_off = (int16_t)offset;
	return rule;
}

/* Buffers of 32 KiB and more on the stack are common; a rule for such a frame has its offset in
 * words. */
static struct unwind_rule large_frame(int64_t offset)
{
	int64_t words = offset / 8;
	if (offset % 8 != 0 || !fits(words >> 16))
		return unsupported;
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_SP_WORDS,
		.cfa_off = (int16_t)(uint16_t)words,
		.ra_off = (int16_t)(words >> 16),
	};
}

static struct unwind_rule cfa_of(const struct cfi_state *state)
{
	if (state->cfa_expression.p)
		return cfa_of_expression(state->cfa_expression);
	bool by_fp = state->cfa_register == REG_RBP;
	if (!by_fp && state->cfa_register != REG_RSP)
		return cfa_by_register(state->cfa_register, state->cfa_offset);
	if (!by_fp && !fits(state->cfa_offset))
		return large_frame(state->cfa_offset);
	if (!fits(state->cfa_offset))
		return unsupported;
	return (struct unwind_rule){
		.cfa = by_fp ? UNWIND_CFA_FP : UNWIND_CFA_SP,
		.cfa_off = (int16_t)state->cfa_offset,
		.ra_off = RA_OFFSET,
	};
}

/* False: no rule can express where the return address is. */
static bool apply_ra(struct unwind_rule *rule, const struct cfi_rule *ra)
{
	if (ra->kind == CFI_UNSPECIFIED)
		return true;
	if (ra->kind == CFI_REGISTER && rule->cfa == UNWIND_CFA_SP && ra->offset <= REG_R15) {
		rule->cfa = UNWIND_CFA_RA_REGISTER; /* glibc's vfork */
		rule->ra_off = (int16_t)ra->offset;
		return true;
	}
	if (ra->kind != CFI_OFFSET || !fits(ra->offset))
		return false;
	if (ra->offset == RA_OFFSET)
		return true;
	/* Rules of other kinds have no room for this offset, or use the field for something
	 * else. */
	if (rule->cfa != UNWIND_CFA_SP && rule->cfa != UNWIND_CFA_FP)
		return false;
	rule->ra_off = (int16_t)ra->offset;
	return true;
}

/* The caller's rbp at the address of an expression. */
static void apply_fp_expression(struct unwind_rule *rule, struct str expression)
{
	uint64_t reg;
	int64_t offset;
	rule->fp = UNWIND_FP_UNDEFINED;
	if (!is_address(expression, &reg, &offset))
		return;
	bool from_cfa = (reg == REG_RBP && rule->cfa == UNWIND_CFA_FP) ||
			(reg == REG_RSP && rule->cfa == UNWIND_CFA_SP);
	if (from_cfa && fits(offset - rule->cfa_off)) {
		rule->fp = UNWIND_FP_SAVED;
		rule->fp_off = (int16_t)(offset - rule->cfa_off);
	} else if (reg == REG_RBP && fits(offset)) {
		rule->fp = UNWIND_FP_AT_FP;
		rule->fp_off = (int16_t)offset;
	}
}

static void apply_fp(struct unwind_rule *rule, const struct cfi_rule *fp)
{
	switch (fp->kind) {
	case CFI_UNSPECIFIED:
	case CFI_SAME:
		rule->fp = UNWIND_FP_SAME;
		break;
	case CFI_OFFSET:
		rule->fp = fits(fp->offset) ? UNWIND_FP_SAVED : UNWIND_FP_UNDEFINED;
		rule->fp_off = fits(fp->offset) ? (int16_t)fp->offset : 0;
		break;
	case CFI_EXPRESSION:
		apply_fp_expression(rule, fp->expression);
		break;
	case CFI_UNDEFINED:
	case CFI_VAL_OFFSET:
	case CFI_REGISTER:
	case CFI_VAL_EXPRESSION:
		rule->fp = UNWIND_FP_UNDEFINED;
		break;
	}
}

/* The caller's rbx, where there is room to say it. */
static void apply_bx(struct unwind_rule *rule, const struct cfi_rule *bx)
{
	bool has_room = (rule->cfa == UNWIND_CFA_SP || rule->cfa == UNWIND_CFA_FP) &&
			rule->ra_off == RA_OFFSET;
	if (bx->kind == CFI_UNSPECIFIED || bx->kind == CFI_SAME) {
		rule->fp |= UNWIND_BX_SAME;
	} else if (bx->kind == CFI_OFFSET && has_room && fits(bx->offset)) {
		rule->fp |= UNWIND_BX_SAVED;
		rule->ra_off = (int16_t)bx->offset;
	}
}

bool x86_needs_bx(const struct cfi_state *state)
{
	return !state->cfa_expression.p && state->cfa_register == REG_RBX;
}

/* The caller's rsp is the CFA unless something else is said. */
static bool sp_is_cfa(const struct cfi_rule *sp)
{
	return sp->kind == CFI_UNSPECIFIED || (sp->kind == CFI_VAL_OFFSET && sp->offset == 0);
}

struct unwind_rule x86_rule(const struct cfi_state *state, bool is_signal, bool with_bx)
{
	if (is_signal)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_SIGNAL };
	if (state->ra.kind == CFI_UNDEFINED)
		return (struct unwind_rule){ .cfa = UNWIND_CFA_STOP };
	struct unwind_rule rule = cfa_of(state);
	if (rule.cfa == UNWIND_CFA_UNSUPPORTED || !sp_is_cfa(&state->sp) ||
		!apply_ra(&rule, &state->ra))
		return unsupported;
	apply_fp(&rule, &state->fp);
	if (with_bx)
		apply_bx(&rule, &state->bx);
	return rule;
}

/* Searches for the bytes that both forms have in common, so that each byte is looked at once. */
ptrdiff_t x86_find_sigreturn(const uint8_t *code, size_t len, size_t *out_len)
{
	static const uint8_t common[] = { 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0 };
	static const uint8_t eax[] = { 0xb8 };
	static_assert(sizeof(rax) + sizeof(common) == X86_SIGRETURN_BYTES_MAX, "the longer form");
	size_t from = 0;
	const uint8_t *at;
	while ((at = memmem(code + from, len - from, common, sizeof(common)))) {
		size_t before = (size_t)(at - code);
		bool is_eax = before >= sizeof(eax) && at[-1] == eax[0];
		bool is_rax =
			before >= sizeof(rax) && memcmp(at - sizeof(rax), rax, sizeof(rax)) == 0;
		size_t more = is_eax ? sizeof(eax) : sizeof(rax);
		if (is_eax || is_rax) {
			*out_len = more + sizeof(common);
			return (ptrdiff_t)(before - more);
		}
		from = before + 1;
	}
	return -1;
}

bool x86_is_eh_return(struct str instructions)
{
	const uint8_t *p = (const uint8_t *)instructions.p;
	for (size_t i = 0; i + 4 <= instructions.len; i++) {
		bool is_dx_ax = p[i] == CFA_OFFSET_RDX && p[i + 2] == CFA_OFFSET_RAX;
		if (is_dx_ax && p[i + 3] == p[i + 1] + 1)
			return true;
	}
	return false;
}

/* mov DISPLACEMENT(%rbp), REG, of 8 or 32 bits; its length, 0: another instruction. */
static size_t load_by_rbp(const uint8_t *code, size_t len, uint8_t *out_reg, int32_t *out_off)
{
	enum { RM_RBP = 5 };
	if (len < 7 || code[0] != 0x48 || code[1] != 0x8b || (code[2] & 7) != RM_RBP)
		return 0;
	*out_reg = code[2] >> 3 & 7;
	if (code[2] >> 6 == 1) {
		*out_off = (int8_t)code[3];
		return 4;
	}
	memcpy(out_off, code + 3, sizeof(*out_off));
	return code[2] >> 6 == 2 ? 7 : 0;
}

/* call uw_install_context_1, which overwrites the registers that its caller saved; then the
 * arguments of the debugger's hook: the context's cfa in rdi and its ra in rsi. */
bool x86_find_context(
	const uint8_t *code, size_t len, size_t *out_from, struct unwind_rule *out_rule)
{
	enum { CALL = 0xe8, CALL_BYTES = 5, RSI = 6, RDI = 7 };
	for (size_t i = 0; i + CALL_BYTES < len; i++) {
		int32_t first, second;
		uint8_t reg[2];
		if (code[i] != CALL)
			continue;
		size_t at = i + CALL_BYTES;
		size_t n = load_by_rbp(code + at, len - at, &reg[0], &first);
		if (n == 0 || load_by_rbp(code + at + n, len - at - n, &reg[1], &second) == 0)
			continue;
		int64_t cfa_at = reg[0] == RDI ? first : second;
		int64_t ra_at = reg[0] == RDI ? second : first;
		if (reg[0] + reg[1] != RSI + RDI || reg[0] == reg[1] ||
			(reg[0] != RSI && reg[0] != RDI) ||
			ra_at - cfa_at != UNWIND_CONTEXT_RA - UNWIND_CONTEXT_CFA ||
			!fits(cfa_at - UNWIND_CONTEXT_CFA))
			continue;
		*out_from = i;
		*out_rule = (struct unwind_rule){ .cfa = UNWIND_CFA_CONTEXT,
			.cfa_off = (int16_t)(cfa_at - UNWIND_CONTEXT_CFA) };
		return true;
	}
	return false;
}

/* The stack of the context that comes next is in rbx. */
bool x86_is_context_start(const uint8_t *code, size_t len)
{
	/* mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi */
	static const uint8_t form[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85,
		0xff };
	return memmem(code, len, form, sizeof(form)) != NULL;
}

bool x86_is_thread_start(const uint8_t *code, size_t len)
{
	/* mov $SYS_clone, %eax; then syscall, and xor %ebp, %ebp in the thread */
	static const uint8_t number[] = { 0xb8, 0x38, 0, 0, 0 }, call[] = { 0x0f, 0x05 },
			     clear[] = { 0x31, 0xed };
	const uint8_t *end = code + len;
	if (len < sizeof(number) || memcmp(code, number, sizeof(number)) != 0)
		return false;
	const uint8_t *at = memmem(code, len, call, sizeof(call));
	return at && memmem(at, (size_t)(end - at), clear, sizeof(clear));
}

bool x86_is_entry(const uint8_t *code, size_t len)
{
	/* clang-format off */
	static const struct { uint8_t bytes[6]; uint8_t len; } forms[] = {
		{ { 0x31, 0xed }, 2 },                         /* xor %ebp, %ebp: the ABI's advice */
		{ { 0x48, 0x31, 0xed }, 3 },                   /* xor %rbp, %rbp: musl */
		{ { 0x48, 0x89, 0xe7, 0xe8 }, 4 },             /* mov %rsp, %rdi; call: ld.so */
		{ { 0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4 }, 6 }, /* mov %rsp, %rdi; and $…, %rsp */
	};
	/* clang-format on */
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	if (len > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0) {
		code += sizeof(endbr64);
		len -= sizeof(endbr64);
	}
	for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
		if (len >= forms[i].len && memcmp(code, forms[i].bytes, forms[i].len) == 0)
			return true;
	}
	return false;
}

bool x86_find_frame(
	const uint8_t *code, size_t len, size_t *out_from, size_t *out_to, int *out_bytes)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t sub[] = { 0x48, 0x83, 0xec, 0 }; /* sub $N, %rsp … add $N, %rsp; ret */
	uint8_t end[] = { 0x48, 0x83, 0xc4, 0, 0xc3 };
	static const uint8_t pop[] = { 0x58, 0xc3 }; /* push %rax … pop %rax; ret: musl */
	size_t at = 0;
	if (len > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	const uint8_t *back = NULL;
	if (len - at > sizeof(sub) && memcmp(code + at, sub, 3) == 0 && code[at + 3] < 0x80) {
		end[3] = code[at + 3];
		*out_bytes = code[at + 3];
		*out_from = at + sizeof(sub);
		back = memmem(code + *out_from, len - *out_from, end, sizeof(end));
		*out_to = back ? (size_t)(back - code) + 4 : 0;
	} else if (len > at && code[at] == 0x50) {
		*out_bytes = 8;
		*out_from = at + 1;
		back = memmem(code + *out_from, len - *out_from, pop, sizeof(pop));
		*out_to = back ? (size_t)(back - code) + 1 : 0;
	}
	return back != NULL;
}

static uint32_t crt_rows(const uint8_t *code, size_t len, struct machine_row *out)
{
	size_t from, to;
	int bytes;
	struct unwind_rule bare = { .cfa = UNWIND_CFA_SP, .cfa_off = 8, .ra_off = RA_OFFSET };
	struct unwind_rule framed = bare;
	if (!x86_find_frame(code, len, &from, &to, &bytes))
		return 0;
	framed.cfa_off = (int16_t)(8 + bytes);
	out[0] = (struct machine_row){ 0, bare };
	out[1] = (struct machine_row){ from, framed };
	out[2] = (struct machine_row){ to, bare };
	return 3;
}

uint32_t x86_section_rows(struct str section, const uint8_t *code, size_t len,
	struct machine_row out[MACHINE_ROWS_MAX])
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP, .cfa_off = 8, .ra_off = RA_OFFSET };
	if (str_eq(section, STR(".init")) || str_eq(section, STR(".fini")))
		return crt_rows(code, len, out);
	if (str_eq(section, STR(".plt"))) {
		rule.cfa = UNWIND_CFA_PLT;
		rule.cfa_off = PLT_LAZY_PUSH_AT;
	} else if (!str_eq(section, STR(".plt.got")) && !str_eq(section, STR(".plt.sec")) &&
		   !str_eq(section, STR(".iplt"))) {
		return 0;
	}
	out[0] = (struct machine_row){ 0, rule };
	return 1;
}

const struct unwind_machine x86_machine = {
	.elf = EM_X86_64,
	.registers = &x86_registers,
	.sigreturn_bytes_max = X86_SIGRETURN_BYTES_MAX,
	.called_cfa_off = 8,
	.rule = x86_rule,
	.needs_bx = x86_needs_bx,
	.is_eh_return = x86_is_eh_return,
	.find_context = x86_find_context,
	.is_context_start = x86_is_context_start,
	.is_thread_start = x86_is_thread_start,
	.find_sigreturn = x86_find_sigreturn,
	.is_entry = x86_is_entry,
	.entry_bytes = x86_entry_bytes,
	.section_rows = x86_section_rows,
	.code_rows = x86_code_rows,
};

const struct unwind_machine *machine_find(uint16_t elf)
{
	static const struct unwind_machine *const all[] = { &x86_machine, &arm64_machine };
	for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
		if (all[i]->elf == elf)
			return all[i];
	}
	return NULL;
}
