/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal: what the files of runtimes/ share: symbols by their names, and the functions by which
 * find.c finds each runtime.
 */
#pragma once

#include "runtimes/runtimes.h"

struct runtime_symbol {
	const char *name;
	uint64_t address; /* 0: not found, or (with a size) the first thread-local variable */
	uint64_t size;
};

/* Reads the section of this type (SHT_DYNSYM, SHT_SYMTAB) once, and fills in each entry of `wanted`
 * that is still missing and defined there. If several symbols have the same name, the first one
 * counts. */
NODISCARD enum status symbols_find(const struct objfile *obj, uint32_t section_type,
	struct runtime_symbol *wanted, uint32_t count, struct err *e);

/* Exactly `len` bytes of the file at an address; E_INVALID where no segment has them. */
NODISCARD enum status bytes_at(
	const struct objfile *obj, uint64_t address, void *out, size_t len, struct err *e);

/* Finds the code segment that has the byte at `text`, and the distance of the variable from it:
 * fills in text_from, text_bytes and delta of a record. E_INVALID: no code segment has that byte.
 */
NODISCARD enum status place_root(const struct objfile *obj, uint64_t variable, uint64_t text,
	struct runtime_record *out, struct err *e);

enum status hotspot_find(const struct objfile *obj, struct runtime_record *out, struct err *e);
/* Where a function's code lies in the file: from, to. Both are left unchanged if that is not known.
 */
void place_function(
	const struct objfile *obj, const struct runtime_symbol *symbol, uint32_t out[2]);

/* The same of a function's cold part, in a file that has no name for it. */
void place_cold(const struct objfile *obj, const struct runtime_symbol *of, uint32_t out[2]);

/* Where the longest function lies that this one calls, if it has at least 4 KiB; else `out` is left
 * unchanged. */
void place_largest_callee(
	const struct objfile *obj, const struct runtime_symbol *of, uint32_t out[2]);

/* The longest function that can be reached from this one by at most `calls` calls (each may also be
 * a jump out of its function), if it has at least 4 KiB. address 0: there is none. */
struct runtime_symbol largest_called(
	const struct objfile *obj, const struct runtime_symbol *of, unsigned calls);

/* Code that this function calls at another place than its first byte: at least `least` bytes, with
 * call frame information of its own. address 0: there is none. */
struct runtime_symbol called_inside(
	const struct objfile *obj, const struct runtime_symbol *of, uint64_t least);

/* The length of the function that begins at `address`, by the index of call frame information; 0:
 * no function begins there. */
uint64_t function_bytes(const struct objfile *obj, uint64_t address);

/* The version ("8.2.36") that follows the first `prefix` in a section: it ends at the first byte
 * that no version has, and gets a NUL. E_NOTFOUND: the section has no such prefix. */
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

/* Finds the descriptor of the JIT code in Erlang's emulator, in a file without a symbol for it. It
 * is found by an instruction that tells a debugger of new code, whose address goes to `code`.
 * False: it was not found. */
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
