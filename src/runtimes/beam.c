/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Erlang's emulator with its JIT compiler is recognized by a function of that compiler, and its
 * version is among its constants: that of the emulator, 13.0 in OTP 25. Everything else is found in
 * the process (agent/bpf/beam.h).
 *
 * A stripped emulator may export nothing of its compiler, as Debian's of OTP 29. Then the compiler
 * is recognized by its code: it stores 1 (JIT_REGISTER_FN of GDB's interface for JIT code) to the
 * second word of a variable whose first word is 1 and whose other five are 0 in the file.
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* Code of the program that is searched; no release has more. */
#define TEXT_BYTES_MAX ((size_t)32 << 20)
#define STORE_BYTES 10 /* movl $NUMBER, DISTANCE(%rip) */
#define REGISTER 1
/* How many stores of REGISTER are looked at; a release has some seventy. */
#define STORES_MAX 65536

/* OTP's version is the emulator's plus this. */
#define OTP_AHEAD 12
#define OTP_FIRST 25

/* struct jit_descriptor as it is before any code is registered. */
static bool is_descriptor(const struct objfile *obj, uint64_t address)
{
	static const uint32_t fresh[6] = { 1 };
	uint32_t words[6];
	return address % 8 == 0 && bytes_at(obj, address, words, sizeof(words), NULL) == OK &&
	       memcmp(words, fresh, sizeof(words)) == 0;
}

bool beam_descriptor(const struct objfile *obj, uint64_t *out, uint64_t *code)
{
	/* The emulator exports this function for tests of its allocators. */
	struct runtime_symbol of_tests = { .name = "erts_alc_test" };
	const struct objfile_section *text = objfile_section(obj, ".text");
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, TEXT_BYTES_MAX);
	if (symbols_find(obj, SHT_DYNSYM, &of_tests, 1, NULL) != OK || !of_tests.address || !text ||
		objfile_read_section(obj, text, &b, NULL) != OK)
		return false;
	unsigned stores = 0;
	for (size_t at = 0; at + STORE_BYTES <= b.len && stores < STORES_MAX; at++) {
		int32_t distance;
		uint32_t number;
		if (b.data[at] != 0xc7 || b.data[at + 1] != 0x05)
			continue;
		memcpy(&distance, b.data + at + 2, sizeof(distance));
		memcpy(&number, b.data + at + 6, sizeof(number));
		uint64_t to = text->addr + at + STORE_BYTES + (uint64_t)(int64_t)distance;
		if (number != REGISTER)
			continue;
		stores++;
		if (!is_descriptor(obj, to - 4))
			continue;
		*out = to - 4;
		*code = text->addr + at;
		return true;
	}
	return false;
}

enum status beam_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol jit = { .name = "beamasm_init" };
	struct runtime_record r = { .kind = RUNTIME_BEAM };
	char text[16];
	unsigned major = 0;
	enum status s = symbols_find(obj, SHT_DYNSYM, &jit, 1, e);
	if (s == OK && !jit.address)
		s = symbols_find(obj, SHT_SYMTAB, &jit, 1, e);
	if (s != OK && s != E_LIMIT) /* the emulator's tables are smaller */
		return s;
	uint64_t descriptor;
	if (!jit.address && !beam_descriptor(obj, &descriptor, &jit.address))
		return err_set(
			e, E_NOTFOUND, "%s: no Erlang with a JIT compiler", objfile_name(obj));
	s = version_in_constants(obj, "(BEAM) emulator version ", text, e);
	if (s != OK || sscanf(text, "%3u", &major) != 1)
		return err_set(e, E_UNSUPPORTED, "%s: an Erlang that does not say its version",
			objfile_name(obj));
	if (major + OTP_AHEAD < OTP_FIRST)
		return err_set(e, E_UNSUPPORTED, "%s: Erlang/OTP %u is not known",
			objfile_name(obj), major + OTP_AHEAD);
	r.version = (uint16_t)((major + OTP_AHEAD) << 8);
	s = place_root(obj, jit.address, jit.address, &r, e);
	if (s == OK)
		*out = r;
	return s;
}
