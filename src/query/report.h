/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: what the reports of Parca's API are made from: stacks with values, and the tree of calls
 * that filters, grouping, inversion and comparison make of them.
 *
 * Private to query/. Everything lies in the caller's arena but what has a _deinit.
 */
#pragma once

#include "query/internal.h"

/* ---- stacks.c: what the store has, symbolized ---- */

/* A tree of locations; 0 is the root, parents come before their children. */
struct query_stack {
	uint32_t parent;
	uint32_t location;   /* 0: the root, or the node of a group of labels right below it */
	uint32_t group;      /* 0: none */
	int64_t value, diff; /* of the stacks that end here, in the report's unit */
};

/* A sample of a flame chart. */
struct query_event {
	int64_t time_ns;
	int64_t value;
	uint32_t stack;
};

struct query_stacks {
	struct query_plan plan; /* of the shown side; open as long: its memory counts there */
	uint64_t held;          /* by query_stacks_hold() */
	struct profile tables;
	VEC(struct query_stack) v;
	VEC(struct query_event) events; /* by time; only where the request is a chart's */
	struct map index;               /* of v, by (parent, location, group) */
	struct str *groups;     /* values of the request's labels, group by group from 1 on */
	uint32_t group_count;   /* with group 0 */
	uint8_t *unnamed;       /* by location: it has no function */
	struct str sample_type; /* what `unit` counts */
	struct str unit;
	struct str period_type, period_unit;
	int64_t period;
	int64_t first_ns, last_ns;
	uint64_t sample_count;
	uint32_t pending;
	bool has_tables;
};
NODISCARD enum status query_stacks_load(struct query_stacks *s, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e);
void query_stacks_deinit(struct query_stacks *s);
/* So many bytes more are taken for the report. */
NODISCARD enum status query_stacks_hold(struct query_stacks *s, uint64_t bytes, struct err *e);

/* ---- lines.c: the frames of locations, as keys and as filters see them ---- */

#define QUERY_LINE_NONE UINT32_MAX

/* What makes two frames one node. */
struct query_key {
	uint32_t name; /* 0: no function, then mapping and address */
	uint32_t mapping;
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

struct query_lines {
	struct query_line *v;
	uint32_t *first; /* of location l: v[first[l] .. first[l + 1]), outermost first */
	struct query_key *keys;
	uint32_t key_count;
	bool some_frame; /* a stack of none is not kept */
	uint64_t must;   /* a stack is kept when all of these are seen */
	uint64_t must_not;
};
NODISCARD enum status query_lines_make(const struct query_stacks *s,
	const struct query_report_request *r, struct arena *a, struct query_lines *out,
	struct err *e);

/* The texts of a frame; "" where there is none. */
struct query_line_texts {
	struct str function, system_name, file, mapping, build_id;
	uint32_t line, start_line;
	uint64_t address;
	bool has_mapping, has_function;
};
struct query_line_texts query_line_texts(
	const struct query_stacks *s, uint32_t location, uint32_t line);

/* ---- calls.c ---- */

/* Columns of a call that differ between the frames that it stands for. */
#define QUERY_MIXED_MAPPING 0x01u
#define QUERY_MIXED_BUILD_ID 0x02u
#define QUERY_MIXED_ADDRESS 0x04u
#define QUERY_MIXED_LINE 0x08u
#define QUERY_MIXED_START_LINE 0x10u
#define QUERY_MIXED_SYSTEM_NAME 0x20u
#define QUERY_MIXED_FILE 0x40u
#define QUERY_MIXED_INLINED 0x80u

struct query_call {
	uint32_t parent;         /* always smaller; 0 is the root, its own parent */
	uint32_t key;            /* QUERY_LINE_NONE: the root, or a group of labels */
	uint32_t location, line; /* of the first frame */
	uint32_t group;
	uint8_t mixed;
	bool inlined;
	int64_t self, total, self_diff, total_diff;
	int64_t time_ns; /* of a chart: when it began */
};
struct query_calls {
	struct query_stacks stacks;
	struct query_lines lines;
	VEC(struct query_call) v;
	struct map index;
	uint32_t *first_child; /* children of i: child[first_child[i] .. first_child[i + 1]) */
	uint32_t *child;       /* by descending total, of a chart by time */
	uint8_t *kept;         /* by stack: it passes the filters and is not nothing */
	uint32_t *cut;         /* by stack, of a sandwich: the one where the function is */
	int64_t total, filtered, total_diff;
};
NODISCARD enum status query_calls_make(struct query_calls *c, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e);
void query_calls_deinit(struct query_calls *c);

/* ---- rows.c: calls by function ---- */

struct query_key_row {
	uint32_t call; /* the first */
	uint32_t row;  /* number among those with a value, or QUERY_LINE_NONE */
	int64_t total, total_diff, self, self_diff;
	bool many; /* frames of more than one line, of more than one mapping */
	bool many_mappings;
};
struct query_key_edge {
	uint32_t caller, callee; /* keys */
	int64_t total;
};
struct query_key_rows {
	struct query_key_row *v; /* by key */
	uint32_t *order;         /* keys: by descending self, then address */
	uint32_t count;
	VEC(struct query_key_edge) edges; /* by caller, then callee */
};
/* A function counts once in a stack, however often it recurs. */
NODISCARD enum status query_rows_make(
	struct query_key_rows *r, const struct query_calls *c, struct arena *a, struct err *e);
void query_rows_deinit(struct query_key_rows *r);

/* ---- report_flame.c ---- */

/* What is the same for all reports. */
void query_report_info(const struct query_calls *c, struct query_report *info);
