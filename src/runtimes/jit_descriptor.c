/* SPDX-License-Identifier: Apache-2.0 */
/* A library exports the variable. A program that is linked with the compiler may not; then the
 * variable is among its other symbols, where debuggers find it too. A stripped program has none of
 * these. */
#include "runtimes/internal.h"

#include <elf.h>

bool runtimes_jit_descriptor(const struct objfile *obj, struct vaddr *out)
{
	struct runtime_symbol wanted = { .name = "__jit_debug_descriptor" };
	uint64_t code;
	if (symbols_find(obj, SHT_DYNSYM, &wanted, 1, NULL) != OK ||
		(!wanted.address && symbols_find(obj, SHT_SYMTAB, &wanted, 1, NULL) != OK) ||
		(!wanted.address && !beam_descriptor(obj, &wanted.address, &code)))
		return false;
	out->v = wanted.address;
	return true;
}
