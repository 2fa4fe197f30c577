/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: samples in memory, in the one form that every decoder makes (OTLP, pprof, Arrow), the
 * store takes, queries answer with, and every encoder writes.
 *
 * Layer 1 (may use base). Tables refer to each other by index. Index 0 of every table is its null
 * element ("", no function, no mapping, …), present from profile_init() on. All texts are in
 * `strings`. Everything belongs to the profile and goes with profile_deinit(). Not thread safe.
 *
 * The profile_add_… functions intern: equal content gives the same index. Adding fails with
 * E_LIMIT at the limits below and E_NOMEM.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

/* Frames of one stack: 1,024 of the program, those of the kernel, and a marker. Deeper ones are cut
 * at the root side. */
#define PROFILE_STACK_MAX 2048
/* Inlined calls at one address. */
#define PROFILE_LINES_MAX 256
/* Labels of one set. */
#define PROFILE_LABELS_MAX 128
/* Characters of a build id (that of Go in hex has 166). */
#define PROFILE_BUILD_ID_MAX 256
/* Elements of any one table. */
#define PROFILE_TABLE_MAX (1u << 26)

/* What a frame is, as in OTLP's `profile.frame.type`; stored, so numbers are never reused. */
/* clang-format off */
#define FRAME_KIND_LIST(X)                                                \
	X(UNKNOWN, 0, "")         /* the sender did not say */            \
	X(NATIVE, 1, "native")    X(KERNEL, 2, "kernel")                  \
	X(CPYTHON, 3, "cpython")  X(JVM, 4, "jvm")      X(V8JS, 5, "v8js") \
	X(RUBY, 6, "ruby")        X(PHP, 7, "php")      X(PERL, 8, "perl") \
	X(DOTNET, 9, "dotnet")    X(BEAM, 10, "beam")   X(GO, 11, "go")    \
	X(RUST, 12, "rust")       X(LUAJIT, 13, "luajit")                 \
	X(JIT, 14, "jit")         /* machine code without a file */       \
	X(MARKER, 15, "marker")   /* not code: "[truncated]", … */        \
	X(LUA, 16, "lua")         /* PUC-Rio's; LuaJIT's are LUAJIT */
/* clang-format on */
enum frame_kind {
#define FRAME_KIND_ENUM(name, number, text) FRAME_##name = number,
	FRAME_KIND_LIST(FRAME_KIND_ENUM)
#undef FRAME_KIND_ENUM
};
#define FRAME_KIND_COUNT 17
const char *frame_kind_name(enum frame_kind k);
enum frame_kind frame_kind_parse(struct str name); /* FRAME_UNKNOWN for others */

struct profile_function {
	uint32_t name;        /* for people: demangled where the sender did so */
	uint32_t system_name; /* as in the symbol table */
	uint32_t filename;
	uint32_t start_line;
};

/* An object mapped into a process. start, limit, offset as in pprof. All three 0 means: addresses
 * are virtual addresses of the ELF file itself (what our agent sends). Otherwise the file offset of
 * a location is address - start + offset. */
struct profile_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint32_t filename;
	uint32_t build_id; /* as the sender has it: lower-case hex of the GNU build id, a content id
			    * (objfile.h), another kind of id (Go's a/b/c/d, a UUID), or "" */
};

struct profile_line {
	uint32_t function;
	uint32_t line; /* 0: not known */
	uint32_t column;
};

struct profile_location {
	uint64_t address;
	uint32_t mapping;
	uint32_t line_first; /* lines[line_first .. + line_count): innermost inlined call first */
	uint32_t line_count; /* 0: not symbolized yet */
	uint8_t kind;        /* enum frame_kind */
	bool unnamed;        /* the symbolizer found no function: the line has the place instead */
};

struct profile_stack {
	uint32_t first; /* stack_locations[first .. + count): leaf first */
	uint32_t count;
};

struct profile_label {
	uint32_t name;
	uint32_t value;
};

/* The numeric label of heap profiles: the size of the objects that a sample stands for. */
#define PROFILE_LABEL_BYTES "bytes"
/* The other numeric labels of a pprof sample, as text: "name=5,other=7:unit". Lists of labels leave
 * it out. */
#define PROFILE_LABEL_NUMBERS "__numbers__"
#define PROFILE_NUMBERS_BYTES_MAX 1024
/* The comments of the pprof file that a sample came in, as one text: PROFILE_COMMENTS_END between
 * them. Lists leave it out too. */
#define PROFILE_LABEL_COMMENTS "__comments__"
#define PROFILE_COMMENTS_END '\x1e'
#define PROFILE_COMMENTS_MAX 64
#define PROFILE_COMMENTS_BYTES_MAX 4096
/* Labels of single samples: they are no part of a series. */
#define PROFILE_SAMPLE_LABELS                                                                 \
	"pid", "thread_id", "thread_name", "cpu", "span_id", "trace_id", PROFILE_LABEL_BYTES, \
		PROFILE_LABEL_NUMBERS, PROFILE_LABEL_COMMENTS
bool profile_label_is_of_sample(struct str name);
bool profile_label_is_hidden(struct str name);

/* A set: sorted by name (bytes), names distinct, no empty values. */
struct profile_labels {
	uint32_t first; /* labels[first .. + count) */
	uint32_t count;
};

struct profile_link {
	uint8_t trace_id[16];
	uint8_t span_id[8];
};

/* "name:sample_type:sample_unit:period_type:period_unit[:delta]" */
struct profile_type {
	uint32_t name;
	uint32_t sample_type;
	uint32_t sample_unit;
	uint32_t period_type;
	uint32_t period_unit;
	bool delta; /* values belong to [time, time + duration); otherwise they are a gauge */
};

/* What the samples of one profile have in common. */
struct profile_head {
	uint32_t type;       /* types[] */
	int64_t period;      /* units of period_unit between samples; 0: not known */
	int64_t time_ns;     /* since 1970 */
	int64_t duration_ns; /* 0: not known */
};

struct profile_sample {
	int64_t value;
	int64_t time_ns; /* its own where the sender keeps it, else the head's */
	uint32_t head;
	uint32_t stack;
	uint32_t resource; /* label_sets[]: host, container, process */
	uint32_t own;      /* label_sets[]: thread, cpu, what the program attached. Where both have
			    * a name, `resource` wins. */
	uint32_t link;     /* links[], 0: none */
};

struct profile {
	struct strtab strings;
	VEC(struct profile_function) functions;
	VEC(struct profile_mapping) mappings;
	VEC(struct profile_line) lines;
	VEC(struct profile_location) locations;
	VEC(uint32_t) stack_locations;
	VEC(struct profile_stack) stacks;
	VEC(struct profile_label) labels;
	VEC(struct profile_labels) label_sets;
	VEC(struct profile_link) links;
	VEC(struct profile_type) types;
	VEC(struct profile_head) heads;
	VEC(struct profile_sample) samples;
	struct map function_index; /* has the first ones, as many as its count; the same for
				      locations */
	struct map mapping_index;
	struct map location_index;
	uint32_t name_max;     /* of the functions: a function with a later name is new */
	uint32_t function_max; /* of the locations' first lines, in the same way */
	struct map stack_index;
	struct map label_set_index;
	struct map type_index;
	uint64_t cut_stacks;     /* calls of profile_add_stack() that cut a stack */
	uint64_t zero_samples;   /* samples with the value 0, left out by decoders */
	uint64_t bad_lines;      /* lines of text that decoders could not read and left out */
	uint64_t label_work;     /* bytes compared and moved by profile_add_labels() */
	uint64_t label_work_max; /* limit of label_work (E_LIMIT); 0: none */
	uint32_t stack_max; /* longer stacks are cut: PROFILE_STACK_MAX, or less (at least 2) */
};

/* limit_bytes: the limit of all texts, and also that of all tables. */
NODISCARD enum status profile_init(struct profile *p, size_t limit_bytes);
void profile_deinit(struct profile *p);
/* Back to the state after profile_init(); table memory is kept. */
NODISCARD enum status profile_clear(struct profile *p);

/* All texts are UTF-8: each byte that is not becomes U+FFFD. */
NODISCARD enum status profile_add_string(struct profile *p, struct str s, uint32_t *out);
/* A label's or profile's name from a sender's text: each byte outside [a-zA-Z0-9_] becomes '_', and
 * one is put before a leading digit. Cut after 1,024 bytes. */
NODISCARD enum status profile_add_name(struct profile *p, struct str s, uint32_t *out);
/* A type or unit. Characters that the text form of a profile type reserves (colon, braces, quotes,
 * white space, …) become '_'. Cut after 256 bytes. */
NODISCARD enum status profile_add_type_part(struct profile *p, struct str s, uint32_t *out);
/* Any text up to PROFILE_BUILD_ID_MAX; longer ones give "". */
NODISCARD enum status profile_add_build_id(struct profile *p, struct str s, uint32_t *out);
NODISCARD enum status profile_add_function(
	struct profile *p, const struct profile_function *f, uint32_t *out);
NODISCARD enum status profile_add_mapping(
	struct profile *p, const struct profile_mapping *m, uint32_t *out);
/* loc->line_first and line_count are ignored: the lines are given. */
NODISCARD enum status profile_add_location(struct profile *p, const struct profile_location *loc,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out);
/* The same for a location that the caller knows to be new: the index is not searched. */
NODISCARD enum status profile_append_location(struct profile *p, const struct profile_location *loc,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out);
/* A location that is no code: kind MARKER, one line whose function is `name` ("[truncated]"). */
NODISCARD enum status profile_add_marker(struct profile *p, struct str name, uint32_t *out);
/* If there are more than p->stack_max locations, the marker "[truncated]" replaces the last ones.
 */
NODISCARD enum status profile_add_stack(
	struct profile *p, const uint32_t *locations, uint32_t count, uint32_t *out);
/* Adds a set of labels, given in any order. If a name is given twice, the first one counts. Empty
 * names and values are left out. E_LIMIT beyond PROFILE_LABELS_MAX, and beyond p->label_work_max.
 */
NODISCARD enum status profile_add_labels(
	struct profile *p, const struct profile_label *labels, uint32_t count, uint32_t *out);
NODISCARD enum status profile_add_type(
	struct profile *p, const struct profile_type *t, uint32_t *out);
NODISCARD enum status profile_add_link(
	struct profile *p, const struct profile_link *l, uint32_t *out); /* not interned */
NODISCARD enum status profile_add_head(
	struct profile *p, const struct profile_head *h, uint32_t *out); /* not interned */
NODISCARD enum status profile_add_sample(struct profile *p, const struct profile_sample *s);

static inline struct str profile_str(const struct profile *p, uint32_t id)
{
	return strtab_get(&p->strings, id);
}

/* Checks that every index is in range, sets are sorted, and counts are within limits. A decoder
 * asserts it at its end, and the store checks it before it takes a profile. E_INVALID names the
 * table and the element. */
NODISCARD enum status profile_validate(const struct profile *p, struct err *e);

/* How many elements a message has, if a decoder knows it: tables then get their memory at once, and
 * not as they grow. It is only a hint. A sender's numbers are believed up to PROFILE_EXPECTED_MAX
 * of each (16 times that for frames). Tables that are large enough already are left alone. */
#define PROFILE_EXPECTED_MAX ((size_t)1 << 16)
struct profile_room {
	size_t strings, functions, locations, frames, samples;
};
void profile_expect(struct profile *p, const struct profile_room *r);

/* About how many bytes of memory it takes. */
uint64_t profile_bytes(const struct profile *p);

/* The text form of a type, appended. */
void profile_type_write(struct buf *out, const struct profile *p, const struct profile_type *t);

/* ---- limits of what a server accepts ---- */

struct profile_limits {
	uint32_t labels_max; /* of a sample, of both sets together */
	uint32_t label_name_bytes_max;
	uint32_t label_value_bytes_max;
	int64_t time_min_ns;
	int64_t time_max_ns;
};

/* clang-format off */
#define PROFILE_REFUSALS(X)                                                   \
	X(LABELS, "labels", "more labels than allowed")                       \
	X(LABEL_NAME, "label_name", "a label's name is too long")             \
	X(LABEL_VALUE, "label_value", "a label's value is too long")          \
	X(OLD, "old", "the time is before retention begins")                  \
	X(FUTURE, "future", "the time is in the future")                      \
	X(PERIOD, "period", "the period or the duration is negative")
/* clang-format on */
enum profile_refusal {
#define PROFILE_REFUSAL_ENUM(id, name, help) PROFILE_REFUSED_##id,
	PROFILE_REFUSALS(PROFILE_REFUSAL_ENUM)
#undef PROFILE_REFUSAL_ENUM
		PROFILE_REFUSALS_COUNT
};
const char *profile_refusal_name(enum profile_refusal r);

struct profile_refused {
	uint64_t samples;
	uint64_t by_reason[PROFILE_REFUSALS_COUNT];
	char reason[192]; /* why the first sample was refused: the field, its value and the limit */
	enum profile_refusal first;
};
/* Removes the samples beyond a limit from the profile. */
NODISCARD enum status profile_limit(
	struct profile *p, const struct profile_limits *l, struct profile_refused *out);

/* ---- locations, reported one by one ---- */

/* `mapping` is called first, for each mapping with a build id, and returns a number for its
 * locations, or PROFILE_LOCATIONS_NONE to leave them out. The numbers of texts in `m` mean nothing.
 */
#define PROFILE_LOCATIONS_NONE UINT32_MAX
struct profile_locations {
	uint32_t (*mapping)(
		void *ctx, struct str build_id, struct str path, const struct profile_mapping *m);
	void (*location)(void *ctx, uint32_t mapping, uint64_t address);
};
