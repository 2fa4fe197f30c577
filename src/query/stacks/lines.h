/* SPDX-License-Identifier: Apache-2.0 */
/* lines: the frames of locations, as keys and as filters see them. */
#pragma once

#include "query/plan/plan.h"
#include "query/query.h"

#define QUERY_LINE_NONE UINT32_MAX

/* Frames with equal keys are one node. With QUERY_BY_SHOWN the key has name and binary as they are
 * shown, and the kind of frame as `file`. */
struct query_key {
	uint32_t name;    /* 0: no function, then mapping and address */
	uint32_t mapping; /* the number of a mapping, or of a text about it */
	uint32_t file;
	uint32_t line;
	uint64_t address;
};

/* A frame of a location. */
struct query_line {
	uint32_t key;
	uint32_t location;
	uint32_t line; /* tables.lines; QUERY_LINE_NONE: the location has no function */
	bool inlined;
	bool kept;     /* by the filters of frames */
	bool sandwich; /* the function that stacks are cut at */
	uint64_t seen; /* conditions of filters of stacks that hold, or negative ones that do not */
};

/* Where a function begins: of any of its frames; the smallest line that was seen. 0: not known. */
struct query_origin {
	uint32_t file;
	uint32_t line;
};

struct query_lines {
	struct query_line *v;
	uint32_t *first; /* of location l: v[first[l] .. first[l + 1]), outermost first */
	struct query_key *keys;
	struct query_origin *origins; /* by key; only by QUERY_BY_SHOWN */
	uint32_t key_count;
	bool some_frame; /* a stack of none is not kept */
	uint64_t must;   /* a stack is kept when all of these are seen */
	uint64_t must_not;
};
/* Makes the frames of all locations of `tables`, and adds missing names to it. Uses by, filters and
 * sandwich of the request. */
NODISCARD enum status query_lines_make(struct profile *tables, const struct query_report_request *r,
	struct arena *a, struct query_lines *out, struct err *e);

/* The texts of a frame; "" where there is none. */
struct query_line_texts {
	struct str function, system_name, file, mapping, build_id;
	uint32_t line, start_line;
	uint64_t address;
	bool has_mapping, has_function;
};
struct query_line_texts query_line_texts(const struct profile *tables, const struct query_line *l);
/* Its name as it is shown: of the function, else "binary+0x10", which lies in `text`. */
struct str query_line_name(const struct query_line_texts *t, char text[QUERY_ADDRESS_NAME_MAX]);

/* Columns of a node that differ between the frames that it stands for. */
#define QUERY_MIXED_MAPPING 0x01u
#define QUERY_MIXED_BUILD_ID 0x02u
#define QUERY_MIXED_ADDRESS 0x04u
#define QUERY_MIXED_LINE 0x08u
#define QUERY_MIXED_START_LINE 0x10u
#define QUERY_MIXED_SYSTEM_NAME 0x20u
#define QUERY_MIXED_FILE 0x40u
#define QUERY_MIXED_INLINED 0x80u
uint8_t query_lines_differ(
	const struct profile *tables, const struct query_line *a, const struct query_line *b);
