/* SPDX-License-Identifier: Apache-2.0 */
/* jfr's own: one chunk, its classes and constants, and how values are read by them. */
#pragma once

#include "base/arena.h"
#include "base/reader.h"
#include "base/vec.h"
#include "jfr/jfr.h"

/* How a value of a class lies in the file. */
enum jfr_kind { JFR_OBJECT, JFR_INTEGER, JFR_BYTE, JFR_FLOAT, JFR_DOUBLE, JFR_STRING };

struct jfr_field {
	struct str name;
	uint32_t class;   /* classes[] */
	bool is_constant; /* the value is the key of a constant */
	bool is_array;
	int8_t slot; /* number of the value that jfr_read() is asked for now; -1: skipped */
};
struct jfr_class {
	uint64_t id;
	struct str name; /* "jdk.types.StackTrace" */
	enum jfr_kind kind;
	uint32_t first_field, field_count;
	uint32_t varints; /* its values are this many varints; 0: they are not only varints */
	const char *const *asked; /* the names for which its fields' slots were set */
	uint32_t asked_end;       /* fields from this one on were not asked for */
	int event;                /* decode.c's: 0 is not looked up yet */
};
struct jfr_constant {
	uint32_t class;
	uint32_t bytes; /* of the value */
	uint64_t key;
	uint32_t offset; /* of the value, in the chunk */
	uint32_t made;   /* number of the element that was made of it */
	uint32_t labels; /* decode.c's, of a thread: labels of samples that have no others, + 1 */
	uint8_t made_as; /* decode.c's; 0: nothing yet */
};

struct jfr_chunk {
	struct str bytes;
	int64_t start_ns, duration_ns;
	uint64_t ticks_per_second;
	size_t metadata_offset;
	struct arena arena; /* texts that do not lie in the file as they are */
	struct err *e;
	VEC(struct jfr_class) classes;
	VEC(struct jfr_field) fields;
	struct map class_index;
	VEC(uint32_t) class_of; /* classes[] by id, of small ids; MAP_NONE: none */
	uint32_t string_class;  /* java.lang.String; MAP_NONE: there is none */
	VEC(struct jfr_constant) constants;
	struct map constant_index;
	VEC(uint32_t) events; /* offsets of the events that were wanted */
	size_t reread_bytes;  /* how many bytes of constants may still be read */
};

/* ---- value.c ---- */

enum jfr_value_kind { JFR_ABSENT, JFR_NUMBER, JFR_TEXT, JFR_LIST };
struct jfr_value {
	uint8_t kind; /* enum jfr_value_kind */
	bool is_constant;
	uint32_t class;  /* of a constant, of the elements of a list */
	uint64_t number; /* integer, or key of a constant; of a list, its length */
	union {
		struct str text;
		size_t at; /* of a list: offset of the first element */
	};
};
#define JFR_VALUES_MAX 12

/* LEB128 whose ninth byte has eight bits. */
uint64_t jfr_varint_long(struct reader *r);
static inline uint64_t jfr_varint(struct reader *r)
{
	bool is_short = !r->failed && r->at < r->end && *r->at < 0x80;
	return is_short ? *r->at++ : jfr_varint_long(r);
}
/* Skips so many varints. False: the bytes end too early. */
bool jfr_skip_varints(struct reader *r, uint64_t count);
/* A string in whichever of its six forms. */
NODISCARD enum status jfr_text(struct jfr_chunk *c, struct reader *r, struct str *out);
/* Reads the fields of these names (NULL at the end) of an object at the reader. `names` must be a
 * constant array of the program. The reader stands behind the last of these fields then, or before
 * its length if it is a list. */
NODISCARD enum status jfr_read(struct jfr_chunk *c, struct reader *r, uint32_t class,
	const char *const *names, struct jfr_value *out);
/* Reads a whole object of a class that has only integers: the numbers of the fields of these names,
 * and 0 for fields that it lacks. False: it is no such class, or the object is torn; the reader is
 * not moved. */
bool jfr_read_numbers(struct jfr_chunk *c, struct reader *r, uint32_t class,
	const char *const *names, uint64_t *out);
/* Skips the rest of an object after jfr_read(). */
NODISCARD enum status jfr_skip_rest(struct jfr_chunk *c, struct reader *r, uint32_t class);
/* Skips a value of a class. */
NODISCARD enum status jfr_skip(struct jfr_chunk *c, struct reader *r, uint32_t class);
struct reader jfr_at(const struct jfr_chunk *c, size_t offset);
NODISCARD enum status jfr_torn(struct jfr_chunk *c, const struct reader *r, const char *what);
/* NULL: absent (keys of null are 0). */
struct jfr_constant *jfr_constant_find(struct jfr_chunk *c, uint32_t class, uint64_t key);
/* To be called whenever bytes of a constant were read. E_LIMIT: JFR_REREAD_FACTOR. */
NODISCARD enum status jfr_spend(struct jfr_chunk *c, size_t bytes);
/* jfr_read() of a constant; counts all its bytes by jfr_spend(). */
NODISCARD enum status jfr_constant_read(struct jfr_chunk *c, const struct jfr_constant *k,
	const char *const *names, struct jfr_value *out);
/* jfr_text() of a constant. */
NODISCARD enum status jfr_constant_text(
	struct jfr_chunk *c, const struct jfr_constant *k, struct str *out);

/* ---- chunk.c ---- */

struct jfr_event {
	uint64_t type;
	struct reader r; /* behind size and type */
};
/* Header, classes, constants and events[] of the first chunk of `bytes`; *out_bytes is its length.
 * `wanted` says which events, by their classes (NULL: none). jfr_chunk_deinit() must be called
 * after a failure too. */
NODISCARD enum status jfr_chunk_open(struct jfr_chunk *c, struct str bytes,
	bool (*wanted)(struct jfr_class *), size_t *out_bytes, struct err *e);
void jfr_chunk_deinit(struct jfr_chunk *c);
/* Reads the event at *io_offset, and moves *io_offset to the next. */
NODISCARD enum status jfr_event_read(struct jfr_chunk *c, size_t *io_offset, struct jfr_event *out);
/* MAP_NONE: no such class. */
uint32_t jfr_class_find(const struct jfr_chunk *c, uint64_t id);

/* ---- names.c ---- */

/* Cuts off the part of a name that differs in each process: "App$$Lambda$669.0x0000000800fd7318"
 * becomes "App$$Lambda_". The result lies in the chunk, in its arena or in the program. */
NODISCARD enum status jfr_stable_name(struct jfr_chunk *c, struct str *io);

/* ---- metadata.c ---- */

NODISCARD enum status jfr_metadata_read(struct jfr_chunk *c);
