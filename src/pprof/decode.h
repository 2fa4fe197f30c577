/* SPDX-License-Identifier: Apache-2.0 */
/* decode: what the files of the decoder share. Private to pprof/. */
#pragma once

#include "base/arena.h"
#include "pb/pb.h"
#include "pprof/ids.h"
#include "pprof/pprof.h"

#define FIELD(number, wire) ((uint64_t)(number) << 3 | (wire))

enum profile_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_TABLES = 7
};

struct table_run {
	const uint8_t *first;
	const uint8_t *end;
	size_t count;
};

/* Where a mapping was in memory, one for each element of the table. */
struct loaded {
	uint64_t start;
	uint64_t offset;
};

struct decoder {
	struct str message;
	const struct pprof_options *options;
	bool has_shapes;       /* names of functions may have Go's shapes, to be removed */
	struct loaded *loaded; /* NULL: addresses stay as they are */
	struct profile *out;
	struct err *e;
	struct arena arena;
	struct table_run runs[PPROF_TABLES];
	uint32_t *strings;
	size_t string_count;
	struct id_table mappings, locations, functions;
	uint64_t *lost_ids;       /* ids for functions that have none; NULL: they have ids */
	struct profile_head head; /* of all columns, without the type */
	uint64_t period_type[2];
	uint32_t *columns; /* heads[] of each sample type */
	size_t column_count;
	int64_t *values;    /* of one sample: column_count */
	struct buf numbers; /* of one sample: PROFILE_LABEL_NUMBERS */
	VEC(uint32_t) stack;
	uint64_t comments[PROFILE_COMMENTS_MAX]; /* texts of the message; further ones are left out
						  */
	size_t comment_count;
	uint32_t comment; /* all comments as one text: PROFILE_LABEL_COMMENTS of each sample; 0:
			     none */
	uint32_t comment_name;
};

extern const char *const pprof_table_names[PPROF_TABLES];

/* Errors: an element is malformed, refers to nothing, or could not be added (a limit, or no
 * memory). */
enum status pprof_torn(struct decoder *d, const struct reader *r, int table, size_t index);
enum status pprof_dangling(
	struct decoder *d, int table, size_t index, const char *field, uint64_t value);
enum status pprof_not_added(struct decoder *d, enum status s, int table, size_t index);

/* decode_code.c: mappings, functions and locations. The first is called before strings are read,
 * the second after.
 */
NODISCARD enum status pprof_code_begin(struct decoder *d);
NODISCARD enum status pprof_code_read(struct decoder *d);

/* The profile's number of a string of the message; NO_ID: there is none. */
static inline uint32_t string_at(const struct decoder *d, uint64_t index)
{
	return index < d->string_count ? d->strings[index] : NO_ID;
}

/* The fields 1 to n of a message that are numbers go to v[1] to v[n], n below 16; the first other
 * one is in *f. False at the end and on malformed bytes. Most messages have numbers only, in order.
 */
static inline bool next_other(struct reader *r, uint64_t *v, uint32_t n, struct pb_field *f)
{
	for (;;) {
		while (!reader_done(r) && (*r->at & 0x87) == PB_VARINT && (*r->at >> 3) - 1u < n) {
			uint32_t number = *r->at++ >> 3;
			v[number] = reader_varint(r);
		}
		if (!pb_next_inline(r, f))
			return false;
		if (f->wire != PB_VARINT || f->number > n)
			return true;
		v[f->number] = f->u64;
	}
}

typedef enum status element_fn(struct decoder *d, struct str bytes, size_t index);

/* Calls fn for each element of a table, in order, until one fails. */
static inline enum status each_element(struct decoder *d, int table, element_fn *fn)
{
	const struct table_run *run = &d->runs[table];
	if (run->count == 0)
		return OK;
	struct reader r = reader_over(run->first, (size_t)(run->end - run->first));
	struct pb_field f;
	const uint8_t tag = (uint8_t)FIELD(table, PB_BYTES);
	for (size_t i = 0; !reader_done(&r);) {
		struct str bytes;
		if (*r.at == tag) { /* as nearly all are */
			r.at++;
			bytes = reader_str(&r, reader_varint(&r));
		} else {
			if (!pb_next_inline(&r, &f))
				break;
			if (f.number != (uint32_t)table || f.wire != PB_BYTES)
				continue;
			bytes = f.bytes;
		}
		enum status s = fn(d, bytes, i++);
		if (s != OK)
			return s;
	}
	assert(!r.failed); /* find_tables() has read it */
	return OK;
}
