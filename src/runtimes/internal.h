/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal: what the files of runtimes/ share: symbols by their names, and what each runtime gives
 * to find.c.
 */
#pragma once

#include "runtimes/runtimes.h"

struct runtime_symbol {
	const char *name;
	uint64_t address; /* 0: it is not there, or (with a size) the first variable of threads */
	uint64_t size;
};

/* Fills in those of `wanted` that are still missing and defined in the section of this type
 * (SHT_DYNSYM, SHT_SYMTAB), by one pass over it; of several of one name the first. */
NODISCARD enum status symbols_find(const struct objfile *obj, uint32_t section_type,
	struct runtime_symbol *wanted, uint32_t count, struct err *e);

/* Exactly `len` bytes of the file at an address; E_INVALID where no segment has them. */
NODISCARD enum status bytes_at(
	const struct objfile *obj, uint64_t address, void *out, size_t len, struct err *e);

/* Where the segment of code lies that has the byte at `text`, and from there the variable:
 * text_from, text_bytes and delta of a record. E_INVALID: no segment of code has it. */
NODISCARD enum status place_root(const struct objfile *obj, uint64_t variable, uint64_t text,
	struct runtime_record *out, struct err *e);

enum status hotspot_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
/* Where its code lies in the file: from, to; both stay as they are where that is not known. */
void place_function(
	const struct objfile *obj, const struct runtime_symbol *symbol, uint32_t out[2]);

/* The same of a function's cold part, in a file that has no name for it. */
void place_cold(const struct objfile *obj, const struct runtime_symbol *of, uint32_t out[2]);

/* Where the longest function is that this one calls, if it has 4 KiB at least; else `out` stays. */
void place_largest_callee(
	const struct objfile *obj, const struct runtime_symbol *of, uint32_t out[2]);

/* The longest function that this one leads to by `calls` calls at most (each may be a jump that
 * leaves its function), if it has 4 KiB at least. address 0: there is none. */
struct runtime_symbol largest_called(
	const struct objfile *obj, const struct runtime_symbol *of, unsigned calls);

/* What this function calls into, elsewhere than at its first byte: code of `least` bytes at least
 * with call frame information of its own. address 0: there is none. */
struct runtime_symbol called_inside(
	const struct objfile *obj, const struct runtime_symbol *of, uint64_t least);

/* How long the function is that begins at `address`, by the index of call frame information; 0:
 * none does. */
uint64_t function_bytes(const struct objfile *obj, uint64_t address);

/* The bytes that follow `prefix` where it is first in a section, up to a byte that is none of a
 * version's ("8.2.36"), with a NUL. E_NOTFOUND: it is not there. */
NODISCARD enum status version_in_section(const struct objfile *obj, const char *section,
	const char *prefix, char out[16], struct err *e);
/* The same among the file's constants. */
NODISCARD static inline enum status version_in_constants(
	const struct objfile *obj, const char *prefix, char out[16], struct err *e)
{
	return version_in_section(obj, ".rodata", prefix, out, e);
}

/* Where V8's own code is in a file without names for it. False: it was not found. */
struct v8_builtins {
	struct runtime_symbol all; /* its address only */
	struct runtime_symbol entry, first_handler, last_handler;
};
bool v8_builtins_find(const struct objfile *obj, struct v8_builtins *out);

/* Where Erlang's emulator has the descriptor of its JIT code, in a file without a name for it: by
 * an instruction that tells a debugger of new code, whose address goes to `code`. False: it was not
 * found. */
bool beam_descriptor(const struct objfile *obj, uint64_t *out, uint64_t *code);

enum status v8_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status dotnet_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status beam_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status luajit_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status lua_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status go_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status ruby_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status perl_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status php_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
enum status cpython_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
