/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns: what the decoders of Parca's Arrow schemas share: the state of one decoding, and the
 * elements of a location.
 *
 * Private to parca/.
 */
#pragma once

#include "arrow/arrow.h"
#include "parca/parca.h"

/* Dictionary entries that were looked up already: one table of ids for each dictionary (by its
 * serial) and each thing that an entry may be made into. */
enum memo_kind {
	MEMO_STRING,
	MEMO_NAME,
	MEMO_TYPE_PART,
	MEMO_BUILD_ID,
	MEMO_FRAME_KIND,
	MEMO_FUNCTION,
	MEMO_LOCATION,
	MEMO_KINDS
};

struct memo {
	uint32_t *ids; /* id + 1; 0: not looked up yet */
	uint64_t count;
};

/* A struct array's members, found by name once. */
struct location_columns {
	const struct arrow_array *of; /* NULL: not found yet */
	const struct arrow_array *address, *frame_type, *file, *build_id, *start, *limit, *offset;
	const struct arrow_array *lines;
};
struct line_columns {
	const struct arrow_array *of;
	const struct arrow_array *line, *column, *function; /* function: schema v2 */
	const struct arrow_array *name, *system_name, *filename, *start_line;
};

struct parca_decoder {
	struct profile *out;
	struct parca_arrow_stats *stats;
	struct err *e;
	struct arena arena; /* memos */
	VEC(struct memo) memos[MEMO_KINDS];
	struct location_columns location;
	struct line_columns line;
	VEC(uint32_t) stack; /* scratch */
	uint64_t frames;     /* looked at so far: PARCA_FRAMES_MAX */
};

void parca_decoder_init(struct parca_decoder *d, struct profile *out,
	struct parca_arrow_stats *stats, size_t memory_bytes, struct err *e);
void parca_decoder_deinit(struct parca_decoder *d);
/* A new stream: serials begin again. */
void parca_decoder_forget(struct parca_decoder *d);

/* Where the id of a dictionary's entry is stored: 0 when it is not known yet. NULL: the value is in
 * no dictionary, or there is no memory. */
uint32_t *parca_memo(struct parca_decoder *d, enum memo_kind kind, const struct arrow_value *v);
/* A text as an id of the profile, made as `kind` says; "" for null. */
NODISCARD enum status parca_text(
	struct parca_decoder *d, enum memo_kind kind, const struct arrow_value *v, uint32_t *out);

/* A struct array of locations (either schema): E_INVALID when a member has another type than the
 * schema says. */
NODISCARD enum status parca_check_locations(
	struct parca_decoder *d, const struct arrow_field *locations);
/* Elements first .. first + count of an array of locations, leaf first, as a stack. */
NODISCARD enum status parca_stack(struct parca_decoder *d, const struct arrow_array *locations,
	uint64_t first, uint64_t count, uint32_t *out);

/* The column `name` of a batch, whose values must be of that kind; NULL (and OK) when it is absent
 * and `needed` is not set. */
enum column_kind { COLUMN_TEXT, COLUMN_INT, COLUMN_BOOL, COLUMN_LIST, COLUMN_STRUCT };
NODISCARD enum status parca_column(struct parca_decoder *d, const struct arrow_array *batch,
	const char *name, enum column_kind kind, bool needed, const struct arrow_array **out);

/* Reads the rows of a batch of samples; `stack_of` finds the stack of each row. */
struct parca_rows {
	struct parca_decoder *d;
	/* The stack of the row as a number: an index of the profile's stacks, or any other number
	 * that `add` knows how to use. */
	enum status (*stack_of)(struct parca_rows *rows, uint64_t row, uint32_t *out);
	enum status (*add)(struct parca_rows *rows, const struct profile_sample *sample);
	void *ctx;
};
NODISCARD enum status parca_read_rows(struct parca_rows *rows, const struct arrow_array *batch);
