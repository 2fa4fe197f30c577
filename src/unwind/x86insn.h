/* SPDX-License-Identifier: Apache-2.0 */
/* x86insn: decodes the length and the operands of one x86-64 instruction. Private to unwind/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct x86_insn {
	size_t len;
	uint8_t map; /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
	uint8_t opcode;
	uint8_t modrm;
	bool has_modrm;
	bool is_vector; /* VEX or EVEX */
	uint8_t rex;
	int64_t displacement; /* of modrm */
	int64_t immediate;
	uint8_t sib;
	uint8_t imm_len;
};

/* The instruction at the beginning of `code`. False: it is no instruction of 64-bit mode, or passes
 * the end.
 */
bool x86_insn_decode(const uint8_t *code, size_t len, struct x86_insn *out);
