/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit: the names of code that a runtime makes while it runs, as the runtime itself writes them down
 * for profilers and debuggers: perf maps (`/tmp/perf-PID.map`), jitdump files, and the objects of
 * GDB's interface.
 *
 * Layer 2 (may use base, profile). No I/O: bytes in, a table of code out. Whatever the bytes say,
 * they cost no more than the limits below: a process that forges its files spoils its own names.
 * Not thread safe.
 *
 * Sources of the formats: Linux, tools/perf/Documentation/jit-interface.txt and
 * jitdump-specification.txt; GDB's manual, JIT Compilation Interface.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "profile/profile.h"

/* Pieces of code of one process. Beyond that, pieces that were written over are forgotten; then new
 * ones are refused. */
#define JIT_CODES_MAX 131072
/* Places (address, file, line) of one process. */
#define JIT_LINES_MAX 262144
/* Bytes of all names of one process. */
#define JIT_TEXT_BYTES_MAX ((size_t)8 << 20)
/* A longer name is cut. */
#define JIT_NAME_BYTES_MAX 1024
/* A larger piece of code is none. */
#define JIT_CODE_BYTES_MAX ((uint64_t)1 << 30)
/* A longer line of a perf map is passed over. */
#define JIT_PERFMAP_LINE_MAX 16384
/* What must be seen of a jitdump at once; a larger record of lines is passed over. */
#define JIT_DUMP_WINDOW_BYTES ((size_t)256 << 10)
/* Code that was written over is kept for so long: a sample of it may come later than what tells of
 * the new code. */
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
	/* CLOCK_MONOTONIC: from then on the code is there; what was there before is gone. */
	uint64_t since_ns;
	struct str name;
	const struct jit_place *places; /* ascending; may be NULL */
	uint32_t place_count;
};

struct jit_found {
	struct str name; /* as the runtime wrote it; valid until the next jit_map_add() */
	uint64_t start;
	struct str file; /* of the address; "" and 0 where the runtime says nothing of it */
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
/* What could not be read, and what had no room, so far. */
uint64_t jit_map_bad(const struct jit_map *m);
uint64_t jit_map_refused(const struct jit_map *m);

/* ---- perf map ---- */

/* Lines "START SIZE name", hexadecimal, with 0x or without. All that end in `text`; how many bytes
 * they take: the rest is the beginning of a line that comes later. `since_ns`: the code is taken to
 * be there since then, and what stands in earlier lines is gone. */
size_t jit_perfmap_read(struct jit_map *m, struct str text, uint64_t since_ns);

/* ---- jitdump ---- */

struct jit_dump { /* a file that is read piece by piece; all zero at first */
	bool has_header;
	bool other_clock; /* its times are of a clock that we do not know */
	bool has_places;  /* places.of is the code that they belong to */
	uint64_t places_of;
	uint32_t place_first, place_count; /* in the map */
};

/* Records in `window`, which begins where the last call ended; *out_taken: bytes that are done,
 * more than there are where machine code is passed over. With 0 a longer window is needed, up to
 * JIT_DUMP_WINDOW_BYTES. `now_ns`: the time of code whose own is of another clock.
 * E_UNSUPPORTED: another machine's, or version's. E_CORRUPT: no jitdump, or not any more. */
NODISCARD enum status jit_dump_read(struct jit_dump *d, struct jit_map *m, struct str window,
	uint64_t now_ns, uint64_t *out_taken, struct err *e);

/* ---- GDB's interface ---- */

/* A larger object is none. */
#define JIT_OBJECT_BYTES_MAX ((size_t)8 << 20)

/* Symbols, or ranges of Erlang's code, that are looked at by one call. */
#define JIT_OBJECT_SYMBOLS_MAX 1024u

/* The functions of an object that is loaded, as it lies in memory: an ELF file, whose lines are not
 * read, or what Erlang registers. `since_ns` as above. *next: where to begin, 0 at first; then to
 * go on, 0 when all were read. E_CORRUPT: it is no such object; counted as bad. */
NODISCARD enum status jit_object_read(
	struct jit_map *m, struct str bytes, uint64_t since_ns, uint32_t *next, struct err *e);

/* ---- metadata of .NET ---- */

/* Exactly `len` bytes of the metadata; less at their end, and then zeros. */
typedef bool jit_read_fn(void *ctx, uint64_t offset, void *out, size_t len);
/* The name of the method with this row of MethodDef, from 1 on, appended as .NET's perf map has it:
 * "[App.dll] Space.Outer+Inner::Method". False: there is no such method. */
bool jit_dotnet_name(jit_read_fn *read, void *ctx, uint32_t method, struct buf *out);

/* ---- what a name says ---- */

struct jit_name {
	struct str function;  /* a part of the name, or a constant */
	struct str file;      /* "" where it says none */
	uint32_t line;        /* of the function's beginning; 0: not said */
	enum frame_kind kind; /* FRAME_JIT: not known whose */
};

/* By the forms that V8, CPython, HotSpot, .NET, BEAM, LuaJIT, PHP and YJIT write; any other name is
 * the function's. How far code is optimized is left out: a function is one. */
struct jit_name jit_name_parse(struct str name);
