/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths and operands of instructions, as an assembler makes them, and each cut short. */
#include "test.h"

#include "unwind/x86insn.h"

/* clang-format off */
static const struct {
	const char *name;
	uint8_t code[16]; size_t len;
	int64_t displacement, immediate;
} cases[] = {
	{ "nop", { 0x90 }, 1, 0, 0 },
	{ "push %r12", { 0x41, 0x54 }, 2, 0, 0 },
	{ "mov %rsp, %rbp", { 0x48, 0x89, 0xe5 }, 3, 0, 0 },
	{ "sub $0x20, %rsp", { 0x48, 0x83, 0xec, 0x20 }, 4, 0, 0x20 },
	{ "sub $-0x80, %rsp", { 0x48, 0x83, 0xec, 0x80 }, 4, 0, -0x80 },
	{ "sub $0x100, %rsp", { 0x48, 0x81, 0xec, 0, 1, 0, 0 }, 7, 0, 0x100 },
	{ "add $0x1234, %ax", { 0x66, 0x05, 0x34, 0x12 }, 4, 0, 0x1234 },
	{ "mov $imm64, %rax", { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 }, 10, 0, 0x0807060504030201 },
	{ "mov $1, %eax", { 0xb8, 1, 0, 0, 0 }, 5, 0, 1 },
	{ "lea -0x18(%rbp), %rsp", { 0x48, 0x8d, 0x65, 0xe8 }, 4, -0x18, 0 },
	{ "mov 0x40(%rsp), %rax", { 0x48, 0x8b, 0x44, 0x24, 0x40 }, 5, 0x40, 0 },
	{ "mov 0x1000(%rip), %rax", { 0x48, 0x8b, 0x05, 0, 0x10, 0, 0 }, 7, 0x1000, 0 },
	{ "mov 0x10(,%rax,8), %rax", { 0x48, 0x8b, 0x04, 0xc5, 0x10, 0, 0, 0 }, 8, 0x10, 0 },
	{ "movl $5, -4(%rbp)", { 0xc7, 0x45, 0xfc, 5, 0, 0, 0 }, 7, -4, 5 },
	{ "test $1, %cl", { 0xf6, 0xc1, 1 }, 3, 0, 1 },
	{ "not %ecx", { 0xf7, 0xd1 }, 2, 0, 0 },
	{ "test $1, %ecx", { 0xf7, 0xc1, 1, 0, 0, 0 }, 6, 0, 1 },
	{ "call", { 0xe8, 0xfb, 0xff, 0xff, 0xff }, 5, 0, -5 },
	{ "je, short", { 0x74, 0xfe }, 2, 0, -2 },
	{ "je, near", { 0x0f, 0x84, 0, 1, 0, 0 }, 6, 0, 0x100 },
	{ "nopl 0(%rax,%rax,1)", { 0x0f, 0x1f, 0x44, 0, 0 }, 5, 0, 0 },
	{ "enter $0x20, $1", { 0xc8, 0x20, 0, 1 }, 4, 0, 0x010020 },
	{ "ret $8", { 0xc2, 8, 0 }, 3, 0, 8 },
	{ "pshufb %xmm1, %xmm0", { 0x66, 0x0f, 0x38, 0, 0xc1 }, 5, 0, 0 },
	{ "palignr $8, %xmm1, %xmm0", { 0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8 }, 6, 0, 8 },
	{ "vzeroupper", { 0xc5, 0xf8, 0x77 }, 3, 0, 0 },
	{ "vmovdqu 0x20(%rsi), %ymm0", { 0xc5, 0xfe, 0x6f, 0x46, 0x20 }, 5, 0x20, 0 },
	{ "vpalignr $8, %ymm1, %ymm2, %ymm3", { 0xc4, 0xe3, 0x6d, 0x0f, 0xd9, 8 }, 6, 0, 8 },
	{ "vmovdqu64 (%rsi), %zmm16", { 0x62, 0xe1, 0xfe, 0x48, 0x6f, 0x06 }, 6, 0, 0 },
	{ "lock cmpxchg %ecx, (%rdi)", { 0xf0, 0x0f, 0xb1, 0x0f }, 4, 0, 0 },
	{ "endbr64", { 0xf3, 0x0f, 0x1e, 0xfa }, 4, 0, 0 },
};

static const struct {
	const char *name;
	uint8_t code[16];
} none[] = {
	{ "pusha", { 0x60 } },
	{ "push %es", { 0x06 } },
	{ "a far call", { 0x9a } },
	{ "a map that is none", { 0xc4, 0xe0, 0, 0, 0 } },
	{ "prefixes only", { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90 } },
};
/* clang-format on */

static void decodes_what_assemblers_make(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct x86_insn i;
		CHECK_CASE(c, x86_insn_decode(c->code, sizeof(c->code), &i) && i.len == c->len);
		CHECK_CASE(c, i.displacement == c->displacement && i.immediate == c->immediate);
		for (size_t cut = 0; cut < c->len; cut++)
			CHECK_CASE(c, !x86_insn_decode(c->code, cut, &i));
	}
}

static void refuses_what_is_no_instruction(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, none) {
		struct x86_insn i;
		CHECK_CASE(c, !x86_insn_decode(c->code, sizeof(c->code), &i));
	}
}

TEST_MAIN(cmocka_unit_test(decodes_what_assemblers_make),
	cmocka_unit_test(refuses_what_is_no_instruction))
