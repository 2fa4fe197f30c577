/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Erlang's emulator with its JIT compiler is told by a function of that compiler, and its version
 * stands among its constants: that of the emulator, 13.0 in OTP 25. All else is found in the
 * process (agent/bpf/beam.h).
 */
#include "runtimes/private.h"

#include <elf.h>
#include <stdio.h>

/* OTP's version is the emulator's and so many. */
#define OTP_AHEAD 12
#define OTP_FIRST 25

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
	if (!jit.address)
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
