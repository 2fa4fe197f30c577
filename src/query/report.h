/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: the one engine of all reports about stacks, whichever API asks for them. In this order:
 *
 *	stacks.c  the store's tree of locations with its values, its locations named; with groups.c,
 *	          events.c and what they share, loader.c
 *	lines.c   the frames of each location, and which of them are one node: their keys
 *	tree.c    which stacks are kept, their totals, their children
 *	fold.c    a flame graph: places of the tree with the same path of keys are one node
 *	chart.c   the same in the order of time
 *	rows.c    a table: sums by key, and by caller and callee
 *
 * A report is what it writes from a fold, from rows, or from the stacks of the tree.
 *
 * Private to query/. Everything lies in the caller's arena but what has a _deinit.
 */
#pragma once

#include "query/internal.h"

/* ---- flame.c: a request of our own API as the engine takes it ---- */

struct query_shown {
	struct filter_condition condition;
	struct frame_filter filters[2];
};
/* Frames as they are shown. The filters `match` and `frames` lie in `room`. */
struct query_report_request query_shown_request(
	const struct query_request *r, struct query_shown *room);

/* ---- stacks.c: what the store has, symbolized ---- */

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
	/* 0 is the root, parents come before their children. Location 0: the root, or the node of
	 * a group of labels right below it. Values are in the report's unit. */
	VEC(struct samples_node) v;
	VEC(int64_t) diff;              /* by stack, of a comparison; else empty */
	VEC(uint32_t) group;            /* by stack, where labels are asked for; else empty */
	VEC(struct query_event) events; /* by time; only where the request is a chart's */
	struct map index;               /* of v, by (parent, location, group) */
	struct str *groups;     /* values of the request's labels, group by group from 1 on */
	uint32_t group_count;   /* with group 0 */
	struct str sample_type; /* what `unit` counts */
	struct str unit;
	struct str period_type, period_unit;
	int64_t period;
	int64_t per_sample; /* the value of one sample; 0: not known */
	int64_t first_ns;
	int64_t covered_ns; /* as in samples_tree */
	uint64_t sample_count;
	uint32_t pending;
	bool has_tables;
};
NODISCARD enum status query_stacks_load(struct query_stacks *s, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e);
void query_stacks_deinit(struct query_stacks *s);
/* So many bytes more are taken for the report. */
NODISCARD enum status query_stacks_hold(struct query_stacks *s, uint64_t bytes, struct err *e);

static inline int64_t query_stack_diff(const struct query_stacks *s, uint32_t i)
{
	return s->diff.len ? s->diff.v[i] : 0;
}

static inline uint32_t query_stack_group(const struct query_stacks *s, uint32_t i)
{
	return s->group.len ? s->group.v[i] : 0;
}

/* ---- lines.c: the frames of locations, as keys and as filters see them ---- */

#define QUERY_LINE_NONE UINT32_MAX

/* What makes two frames one node. By QUERY_BY_SHOWN: name and binary as they are shown, and the
 * kind of frame as `file`. */
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
/* The frames of all locations of `tables`, which gets the names that are missing. Of the request
 * count: by, filters, sandwich. */
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

/* ---- tree.c: which stacks, and what they sum to ---- */

struct query_tree {
	struct query_stacks stacks; /* a stack that is not kept has own value 0 */
	struct query_lines lines;
	uint32_t count;        /* of stacks */
	int64_t *total;        /* by stack: own and all below, of a sandwich down to the next cut */
	int64_t *total_diff;   /* NULL: not a comparison */
	uint8_t *live;         /* by stack: it or something below it is kept and is not nothing */
	uint8_t *left_out;     /* by stack; NULL: all are kept */
	uint32_t *first_child; /* live children of i: child[first_child[i] .. first_child[i + 1]) */
	uint32_t *child;
	uint32_t *cut; /* by stack, of a sandwich: the one where the function is */
	int64_t sum, sum_diff, filtered; /* of all stacks */
};
NODISCARD enum status query_tree_make(struct query_tree *t, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e);
void query_tree_deinit(struct query_tree *t);

/* The frames of stack i: lines.v[first .. *out_end), outermost first. */
static inline uint32_t query_tree_lines(const struct query_tree *t, uint32_t i, uint32_t *out_end)
{
	uint32_t location = t->stacks.v.v[i].location;
	*out_end = location ? t->lines.first[location + 1] : 0;
	return location ? t->lines.first[location] : 0;
}

/* Of the frames first .. end the one where the sandwich cuts: of a recursion the outermost for the
 * callers, the innermost for the called. `end`: none does. */
static inline uint32_t query_tree_cut_line(
	const struct query_tree *t, uint32_t first, uint32_t end, bool outermost)
{
	uint32_t at = end;
	for (uint32_t i = first; i < end && (at == end || !outermost); i++)
		if (t->lines.v[i].sandwich)
			at = i;
	return at;
}

/* ---- pgo.c: stacks cut to their innermost locations ---- */

struct query_cut {
	uint32_t first, count; /* paths[first .. + count): leaf first */
	int64_t value;
};
struct query_cuts { /* starts as zero bytes */
	VEC(struct query_cut) v;
	VEC(uint32_t) paths;
	struct map index;
};
struct query_pprof_writer;
/* Adds a value of a stack. A stack may be added again. */
NODISCARD enum status query_cuts_add(
	struct query_cuts *c, const uint32_t *path, uint32_t count, int64_t value, struct err *e);
NODISCARD enum status query_cuts_write(
	const struct query_cuts *c, struct query_pprof_writer *w, struct err *e);
void query_cuts_deinit(struct query_cuts *c);
/* The location without address and line of its innermost frame. */
NODISCARD enum status query_callee_copy(
	struct profile *p, uint32_t location, uint32_t *out, struct err *e);

/* What goes with each report. */
void query_tree_info(const struct query_tree *t, struct query_report *info);

/* Which nodes are left out, with all that is below them. */
enum query_trim {
	QUERY_TRIM_WHOLE, /* |total| below `least`, which is not 0 */
	QUERY_TRIM_ABOVE, /* total not above the request's share of the parent's, as a whole number
			   */
	QUERY_TRIM_LEAST, /* total below the request's share of the parent's, or nothing */
};
/* Whether a node of this total is kept below a parent of that one. */
bool query_trim_keeps(enum query_trim trim, double share, uint64_t least, int64_t parent,
	int64_t total, int64_t total_diff);

/* ---- fold.c, chart.c ---- */

struct query_fold_node {
	uint32_t parent; /* always smaller; node 0 is the root, its own parent */
	uint32_t line;   /* lines.v, of the first frame; QUERY_LINE_NONE: root, group of labels */
	uint32_t group;
	uint8_t mixed; /* QUERY_MIXED_… */
	bool inlined;  /* the first frame */
	int64_t self, total, total_diff;
	int64_t time_ns; /* of a chart: when it began */
};
/* A tree of frames: depth first, children by descending total, of a chart by time. */
struct query_fold {
	VEC(struct query_fold_node) nodes;
	int64_t trimmed;   /* what the nodes that were left out sum to */
	size_t memory_max; /* bytes, of everything that grows in the making */
};

/* From the root down, or where the request says so from the leaves up; a chart. Free with
 * query_fold_deinit(), also after a failure. */
NODISCARD enum status query_fold_make(struct query_fold *f, const struct query_tree *t,
	const struct query_report_request *r, enum query_trim trim, uint64_t least,
	size_t memory_max, struct err *e);
void query_fold_deinit(struct query_fold *f);

NODISCARD enum status query_chart_make(struct query_fold *f, const struct query_tree *t,
	enum query_trim trim, double share, struct err *e);

/* ---- rows.c: sums by key ---- */

struct query_key_row {
	uint32_t line; /* lines.v: of its frames in a mapping that with the smallest address */
	uint32_t row;  /* number among those that occur, or QUERY_LINE_NONE */
	int64_t total, total_diff, self, self_diff;
	bool many; /* frames of more than one line, of more than one mapping */
	bool many_mappings;
};
struct query_key_edge {
	uint32_t caller, callee; /* keys */
	int64_t total;
	uint32_t on_path; /* of the walk */
};
struct query_key_rows {
	struct query_key_row *v; /* by key */
	uint32_t *order;         /* keys: by descending self, then address */
	uint32_t count;
	VEC(struct query_key_edge) edges; /* by caller, then callee */
};
/* A function counts once in a stack, however often it recurs. invert: as the tree was made. edges:
 * those are wanted, too. */
NODISCARD enum status query_rows_make(struct query_key_rows *r, const struct query_tree *t,
	bool invert, bool edges, struct arena *a, struct err *e);
void query_rows_deinit(struct query_key_rows *r);
