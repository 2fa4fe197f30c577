/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instruction has prefixes, opcode, ModRM and SIB, displacement, immediate, in this order. Which
 * of them an opcode has is taken from ranges of Intel's opcode maps (Software Developer's Manual,
 * volume 2, appendix A). In 64-bit mode only.
 */
#include "unwind/x86insn.h"

#include "base/status.h"

/* No instruction is longer. */
#define INSN_BYTES_MAX ((size_t)15)

struct cursor {
	const uint8_t *p;
	size_t len;
	size_t at;
	bool failed;
};

static uint8_t next(struct cursor *c)
{
	if (c->at >= c->len || c->failed) {
		c->failed = true;
		return 0;
	}
	return c->p[c->at++];
}

static int64_t next_signed(struct cursor *c, uint32_t bytes)
{
	uint64_t v = 0;
	for (uint32_t i = 0; i < bytes; i++)
		v |= (uint64_t)next(c) << 8 * i;
	uint32_t shift = 64 - 8 * bytes;
	return bytes ? (int64_t)(v << shift) >> shift : 0;
}

static bool has_modrm_0(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8f) ||
	       (op >= 0xc0 && op <= 0xc1) || op == 0xc6 || op == 0xc7 ||
	       (op >= 0xd0 && op <= 0xd3) || (op >= 0xd8 && op <= 0xdf) || op == 0xf6 ||
	       op == 0xf7 || op >= 0xfe;
}

static bool has_modrm_1(uint8_t op)
{
	return !((op >= 0x05 && op <= 0x0b) || op == 0x0e || (op >= 0x30 && op <= 0x37) ||
		 op == 0x77 || (op >= 0x80 && op <= 0x8f) || (op >= 0xa0 && op <= 0xa2) ||
		 (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf));
}

/* Bytes of the immediate of a one-byte opcode; 0xff: no such instruction in 64-bit mode. */
static uint32_t immediate_0(const struct x86_insn *i, bool is_16)
{
	uint32_t z = is_16 ? 2 : 4;
	uint8_t op = i->opcode;
	if (op < 0x40) {
		if ((op & 7) >= 6)
			return 0xff;
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? z : 0;
	}
	switch (op) {
	case 0x60 ... 0x62:
	case 0x82:
	case 0x9a:
	case 0xc4 ... 0xc5:
	case 0xce:
	case 0xd4 ... 0xd6:
	case 0xea:
		return 0xff;
	case 0x68:
	case 0x69:
	case 0x81:
	case 0xa9:
	case 0xc7:
		return z;
	case 0x6a:
	case 0x6b:
	case 0x70 ... 0x7f:
	case 0x80:
	case 0x83:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xc0 ... 0xc1:
	case 0xc6:
	case 0xcd:
	case 0xe0 ... 0xe7:
	case 0xeb:
		return 1;
	case 0xa0 ... 0xa3:
		return 8;
	case 0xb8 ... 0xbf:
		return i->rex & 8 ? 8 : z;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xe8:
	case 0xe9:
		return 4;
	case 0xf6:
		return (i->modrm & 0x30) == 0 ? 1 : 0;
	case 0xf7:
		return (i->modrm & 0x30) == 0 ? z : 0;
	default:
		return 0;
	}
}

static uint32_t immediate_1(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return 4;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6) || op == 0x0f;
}

static void read_modrm(struct cursor *c, struct x86_insn *i)
{
	i->modrm = next(c);
	uint8_t mod = i->modrm >> 6;
	uint8_t rm = i->modrm & 7;
	uint32_t bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	if (mod == 3)
		return;
	if (rm == 4)
		i->sib = next(c);
	if (mod == 0 && (rm == 5 || (rm == 4 && (i->sib & 7) == 5)))
		bytes = 4;
	i->displacement = next_signed(c, bytes);
}

/* VEX and EVEX: the prefix says the map; the opcode follows. */
static void read_vector_prefix(struct cursor *c, struct x86_insn *i, uint8_t first)
{
	i->is_vector = true;
	uint8_t p0 = next(c);
	i->map = first == 0xc5 ? 1 : p0 & (first == 0x62 ? 7 : 0x1f);
	if (first != 0xc5)
		next(c);
	if (first == 0x62)
		next(c);
	i->opcode = next(c);
	i->has_modrm = i->map != 1 || i->opcode != 0x77 || first == 0x62;
	if (i->map == 0 || i->map == 4 || i->map > 6)
		c->failed = true;
}

static void read_opcode(struct cursor *c, struct x86_insn *i, uint8_t first)
{
	i->opcode = first;
	if (first == 0xc4 || first == 0xc5 || first == 0x62) {
		read_vector_prefix(c, i, first);
		return;
	}
	if (first != 0x0f) {
		i->has_modrm = has_modrm_0(first);
		return;
	}
	i->opcode = next(c);
	i->map = i->opcode == 0x38 ? 2 : i->opcode == 0x3a ? 3 : 1;
	if (i->map > 1)
		i->opcode = next(c);
	i->has_modrm = i->map > 1 || has_modrm_1(i->opcode);
}

bool x86_insn_decode(const uint8_t *code, size_t len, struct x86_insn *out)
{
	struct cursor c = { code, MIN(len, INSN_BYTES_MAX), 0, false };
	struct x86_insn i = { 0 };
	bool is_16 = false;
	uint8_t byte = next(&c);
	while (byte == 0x66 || byte == 0x67 || byte == 0x2e || byte == 0x36 || byte == 0x3e ||
		byte == 0x26 || byte == 0x64 || byte == 0x65 || byte == 0xf0 || byte == 0xf2 ||
		byte == 0xf3) {
		is_16 = is_16 || byte == 0x66;
		byte = next(&c);
		if (c.failed)
			return false;
	}
	if ((byte & 0xf0) == 0x40) {
		i.rex = byte;
		byte = next(&c);
	}
	read_opcode(&c, &i, byte);
	if (i.has_modrm)
		read_modrm(&c, &i);
	uint32_t bytes = i.map == 3 ? 1 : i.map == 1 ? immediate_1(i.opcode) : 0;
	if (i.map == 0)
		bytes = immediate_0(&i, is_16 && !(i.rex & 8));
	if (bytes == 0xff)
		return false;
	i.imm_len = (uint8_t)bytes;
	i.immediate = next_signed(&c, bytes);
	i.len = c.at;
	*out = i;
	return !c.failed;
}
