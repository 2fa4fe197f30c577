/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes: finds language runtimes in ELF files (which runtime, in which version, where its
 * structures are), and decodes their data: lines of instructions, and texts.
 *
 * Layer 3 (may use base, objfile). Thread safety: no state.
 *
 * To add a runtime:
 *   record.h             its number, and the layout that the walk needs
 *   <name>.c             finds it in a file; a row in the table of find.c
 *   agent/bpf/<name>.h   its walk; a case in the dispatch of agent/bpf/runtimes.h
 *   lines, texts         here, where it has its own
 * docs/extending.md has the other places: its kind of frame, its flags, its tests.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "objfile/objfile.h"
#include "runtimes/record.h"

/* Symbols of one table; a file with a larger table is refused (E_LIMIT). */
#define RUNTIMES_SYMBOLS_MAX (1u << 19)
/* Bytes of their names. */
#define RUNTIMES_NAMES_BYTES_MAX ((size_t)32 << 20)
/* Bytes of constants that are searched for a version. */
#define RUNTIMES_CONSTANTS_BYTES_MAX ((size_t)32 << 20)

/* "cpython"; "" for none. As frame kinds have it (profile.h). */
const char *runtime_name(unsigned kind);

/* Which runtime this file holds. E_NOTFOUND: no known runtime, as in nearly all files.
 * E_UNSUPPORTED: the runtime cannot be walked; `e` says which it is, in which version, and why.
 * E_INVALID: its tables are broken. Reads the dynamic symbols, and the others only if these name a
 * runtime. */
NODISCARD enum status runtimes_find(
	const struct objfile *obj, struct runtime_record *out, struct err *e);

/* The line of an instruction of CPython: `index` counts units of two bytes from the code's first
 * one. `table` is co_lnotab (to 3.9) or co_linetable, or its first CPYTHON_LINES_BYTES_MAX
 * bytes. False: the table has no line for it, or was cut before it. Source: CPython,
 * Objects/lnotab_notes.txt, Objects/locations.md, Python/assemble.c. */
bool cpython_line(uint16_t version, uint32_t first_line, struct str table, uint32_t index,
	uint32_t *out_line);

/* Appends the name of a function as people read it in its language, as UTF-8. The first
 * `owner_bytes` of `text` are the name of its owner, the rest its own; `form` is an enum
 * runtime_form. If the runtime ends names by a zero byte, the name ends there. */
void runtimes_name(struct buf *out, unsigned kind, unsigned form, size_t owner_bytes,
	struct str text, unsigned character_bytes);
/* The same for a function of Lua, from its form, its file and the line where it begins. */
void lua_name(struct buf *out, unsigned form, struct str file, uint32_t first_line);
/* Bytes that this adds to a text at most. */
#define RUNTIMES_NAME_MORE_BYTES_MAX 32
#define RUNTIMES_NAME_PLACED_BYTES 1024
/* The name with its place ("(anonymous) app.js:24") if several functions of a file may have this
 * name and the language's own profiler tells them apart like that; then it lies in `out`. Else
 * `name` itself: also if `first_line` is 0, or the result would be too long. */
struct str runtimes_name_placed(unsigned kind, struct str name, struct str file,
	uint32_t first_line, char out[RUNTIMES_NAME_PLACED_BYTES]);

/* Characters of 1, 2 or 4 bytes each (Latin-1, UCS-2, UCS-4), or RUNTIME_TEXT_UTF8, as UTF-8,
 * appended. An invalid character becomes U+FFFD, a control character '?'. False: there is no such
 * size. */
bool runtimes_text(struct buf *out, struct str bytes, unsigned character_bytes);

/* The line of a bytecode of HotSpot, `index` bytes from the method's first one. `table` is the
 * compressed table of the ConstMethod and what lies behind it, or its first
 * HOTSPOT_LINES_BYTES_MAX bytes. False: the table has no line for it, or ends before
 * it. */
bool hotspot_line(uint16_t version, struct str table, uint32_t index, uint32_t *out_line);

/* Appends label `i` of a goroutine as UTF-8; `table` is what the BPF program sent. False: there is
 * no such label, or no memory. */
bool runtimes_label(struct str table, uint32_t i, struct buf *name, struct buf *value);

/* Where a file has OpenTelemetry's thread-local variable `otel_thread_ctx_v1`. `at`: a distance
 * from the thread pointer (FIXED), or an address in the file. False: it has none. Source: OTEP
 * 4947; psABI x86-64, relocation types. */
struct runtimes_thread_context {
	enum thread_context_form form;
	uint64_t at;
};
bool runtimes_thread_context(const struct objfile *obj, struct runtimes_thread_context *out);

/* Where a file has `__jit_debug_descriptor`, by which a compiler tells debuggers of the code that
 * it makes. False: it has none. Source: GDB's manual, JIT Compilation Interface. */
bool runtimes_jit_descriptor(const struct objfile *obj, struct vaddr *out);

/* Where a file has `g_dacTable`, by which the runtime of .NET tells debuggers where its variables
 * are, and which version it is. False: it has none, or one whose tables are not known. */
bool runtimes_dotnet(const struct objfile *obj, struct vaddr *out, unsigned *out_version);

/* "class/of/Method.name" as people read it, appended as UTF-8; `file` tells the language. */
void hotspot_name(struct buf *out, struct str name, struct str file);
/* The name of a stub, up to a NUL. */
void hotspot_stub_name(struct buf *out, struct str name);

/* What the BPF program sent about a function of V8 (struct v8_told and its table). Positions count
 * characters from the beginning of its script's source. */
struct v8_function {
	uint16_t version;    /* as in runtime_record */
	uint64_t source;     /* the number of the source's first piece */
	uint32_t first_line; /* of the script in its file, from 0 on */
	uint32_t begin, end; /* of the function */
	struct str table;    /* of places */
	bool is_cut;         /* there is more of it */
}; /* False: its place in the source was not sent. `out->table` points into `told`. */
bool v8_function_told(uint16_t version, struct str told, struct v8_function *out);
/* Where in the source the instruction is, `index` bytes from the function's first one. False: the
 * table does not say it. */
bool v8_source_position(const struct v8_function *f, uint32_t index, uint32_t *out);
/* Where newlines are in a piece of a source, of 1 or 2 bytes a character: a u16 each, appended. */
bool v8_newlines(struct buf *out, struct str text, unsigned character_bytes);
/* How many of them are before a character of the piece. */
uint32_t v8_newlines_before(struct str newlines, uint32_t character);

/* What the BPF program sent about machine code that V8 made of a function and of functions that it
 * calls (struct v8_code_told and what follows it). */
struct v8_code {
	uint16_t version;
	uint64_t function;
	uint32_t functions; /* how many were inlined */
	struct str numbers, inlining, table;
	bool is_cut;
};
/* A frame of it: the function's number, 0 if it is not known, and where in its source. */
struct v8_code_frame {
	uint64_t function;
	uint32_t character; /* V8_CHARACTER_NONE: not known */
};
#define V8_CHARACTER_NONE UINT32_MAX
/* Frames of one place. If there are more, outer ones are left out, but not the outermost. */
#define V8_CODE_FRAMES_MAX 16
bool v8_code_told(uint16_t version, struct str told, struct v8_code *out);
/* The frames of an instruction, `index` bytes from the code's first one, the innermost first; how
 * many, at least one. */
size_t v8_code_frames(
	const struct v8_code *c, uint32_t index, struct v8_code_frame out[V8_CODE_FRAMES_MAX]);
