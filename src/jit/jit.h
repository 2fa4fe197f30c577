/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit: the names of code that a runtime makes while it runs, as the runtime itself writes them down
 * for profilers and debuggers: perf maps (`/tmp/perf-PID.map`), jitdump files, and the objects of
 * GDB's interface.
 *
 * Layer 2 (may use base, profile). No I/O: bytes in, a table of code out. Bytes of any content cost
 * no more than the limits below: a process that forges its files spoils only its own names. Not
 * thread safe.
 *
 * Sources of the formats: Linux, tools/perf/Documentation/jit-interface.txt and
 * jitdump-specification.txt; GDB's manual, JIT Compilation Interface.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* Pieces of code of one process. If there are more, overwritten pieces are forgotten; after that
 * new ones are refused. */
#define JIT_CODES_MAX 131072
/* Places (address, file, line) of one process. */
#define JIT_LINES_MAX 262144
/* Bytes of all names of one process. */
#define JIT_TEXT_BYTES_MAX ((size_t)8 << 20)
/* A longer name is cut. */
#define JIT_NAME_BYTES_MAX 1024
/* A larger size is no piece of code. */
#define JIT_CODE_BYTES_MAX ((uint64_t)1 << 30)
/* A longer line of a perf map is passed over. */
#define JIT_PERFMAP_LINE_MAX 16384
/* The part of a jitdump that must be in memory at once; a larger record of lines is skipped. */
#define JIT_DUMP_WINDOW_BYTES ((size_t)256 << 10)
/* How long overwritten code is kept: a sample of it may come later than the name of the new code.
 */
#define JIT_KEEP_NS ((uint64_t)60 * 1000000000)

/* ---- the code of one process ---- */

struct jit_map;

struct jit_place {
	uint64_t address;
	struct str file;
	uint32_t line;
};

struct jit_code {
	uint64_t start, size; /* bytes */
	/* CLOCK_MONOTONIC: since when the code is there, in place of what was there before. */
	uint64_t since_ns;
	struct str name;
	const struct jit_place *places; /* ascending; may be NULL */
	uint32_t place_count;
};

struct jit_found {
	struct str name; /* as the runtime wrote it; valid until the next jit_map_add() */
	uint64_t start;
	struct str file; /* place of the address; "" and 0 if the runtime does not give it */
	uint32_t line;
};

NODISCARD enum status jit_map_new(struct jit_map **out);
void jit_map_free(struct jit_map *m);
/* False: it is no code (empty, too large, nameless), or there is no room; counted. */
bool jit_map_add(struct jit_map *m, const struct jit_code *c);
/* The code that was at `address` at `time_ns`. */
bool jit_map_find(struct jit_map *m, uint64_t address, uint64_t time_ns, struct jit_found *out);
/* Memory that it takes, about. */
size_t jit_map_bytes(const struct jit_map *m);
uint32_t jit_map_len(const struct jit_map *m);
/* How many records could not be read, and how many had no room, so far. */
uint64_t jit_map_bad(const struct jit_map *m);
uint64_t jit_map_refused(const struct jit_map *m);

/* ---- perf map ---- */

/* Reads lines "START SIZE name" (hexadecimal, with or without 0x) that end in `text`. Returns how
 * many bytes they take: the rest is the beginning of a line whose end comes later. `since_ns`:
 * since when this code counts as being there; it replaces code of earlier lines. */
size_t jit_perfmap_read(struct jit_map *m, struct str text, uint64_t since_ns);

/* ---- jitdump ---- */

struct jit_dump { /* a file that is read piece by piece; all zero at first */
	bool has_header;
	bool other_clock; /* its times are of a clock that we do not know */
	bool has_places;  /* places.of is the code that they belong to */
	uint64_t places_of;
	uint32_t place_first, place_count; /* in the map */
};

/* Reads records in `window`, which begins where the last call ended. *out_taken: bytes that are
 * done; it is more than the window if machine code is skipped, and 0 if a longer window is needed,
 * up to JIT_DUMP_WINDOW_BYTES. `now_ns`: the time for code whose own time is of another clock.
 * E_UNSUPPORTED: of another machine or version. E_CORRUPT: it is no jitdump, or is one no longer.
 */
NODISCARD enum status jit_dump_read(struct jit_dump *d, struct jit_map *m, struct str window,
	uint64_t now_ns, uint64_t *out_taken, struct err *e);

/* ---- GDB's interface ---- */

/* A larger object is refused. */
#define JIT_OBJECT_BYTES_MAX ((size_t)8 << 20)

/* Symbols, or ranges of Erlang's code, that one call reads. */
#define JIT_OBJECT_SYMBOLS_MAX 1024u

/* The functions of an object that is loaded, as it lies in memory: an ELF file, whose lines are not
 * read, or what Erlang registers. `since_ns` as above. *next: where to begin, 0 at first;
 * afterwards where to go on, 0 if all were read. E_CORRUPT: it is no such object; counted as bad.
 */
NODISCARD enum status jit_object_read(
	struct jit_map *m, struct str bytes, uint64_t since_ns, uint32_t *next, struct err *e);

/* ---- metadata of .NET ---- */

/* Reads exactly `len` bytes of the metadata; bytes behind their end are zeros. */
typedef bool jit_read_fn(void *ctx, uint64_t offset, void *out, size_t len);
/* The name of the method with this row of MethodDef, from 1 on, appended as .NET's perf map has it:
 * "[App.dll] Space.Outer+Inner::Method". False: there is no such method. */
bool jit_dotnet_name(jit_read_fn *read, void *ctx, uint32_t method, struct buf *out);

/* ---- the parts of a name ---- */

struct jit_name {
	struct str function;  /* a part of the name, or a constant */
	struct str file;      /* "" where it says none */
	uint32_t line;        /* of the function's beginning; 0: not said */
	enum frame_kind kind; /* FRAME_JIT: not known whose */
};

/* Knows the forms that V8, CPython, HotSpot, .NET, BEAM, LuaJIT, PHP and YJIT write; any other name
 * is the function's. The level of optimization is left out, so that a function has one name. */
struct jit_name jit_name_parse(struct str name);
