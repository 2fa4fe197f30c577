/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal: what the files of query/ share: the opened query, the frames of its locations, the
 * folded tree of frames.
 *
 * Private to query/.
 *
 * Sums are taken modulo 2^64 (query_add(), query_scale()): values near the edge give figures that
 * wrap, and the equations between them hold all the same.
 */
#pragma once

#include "query/query.h"

/* Memory of one report's texts and tables, where the caller gives no arena. */
#define QUERY_REPORT_BYTES_MAX ((size_t)512 << 20)
/* How long a report waits for symbol tables that are being built. */
#define QUERY_WAIT_MS 250
#define QUERY_PPROF_WAIT_MS 5000

static inline int64_t query_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t query_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t query_scale(int64_t value, int64_t factor)
{
	return (int64_t)((uint64_t)value * (uint64_t)factor);
}

static inline uint64_t query_abs(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

/* ---- plan.c ---- */

/* A request made ready: selector parsed, its type found where the text named none, the store's
 * snapshot open. Close with query_plan_close(). */
struct query_plan {
	struct selector selector;
	struct samples_view *view;
	struct samples_query store;
	bool empty; /* the store holds no type at all: every report is empty */
};
/* need_type: a report, which is about one profile type. */
NODISCARD enum status query_plan_open(const struct query_engine *q, const struct query_request *r,
	bool need_type, struct arena *a, struct query_plan *out, struct err *e);
void query_plan_close(struct query_plan *p);
/* Whether samples of the type meet the selector's conditions, in the request's time. */
NODISCARD enum status query_type_has(const struct query_plan *p, const struct query_request *r,
	const struct samples_type *t, struct arena *a, bool *out, struct err *e);
/* Counts `bytes` in all for the report's own memory, until the plan is closed, in the quota of all
 * queries. To be called before it is allocated; fewer bytes than before change nothing.
 * E_UNAVAILABLE: other queries have it. E_LIMIT: more than one query may have. */
NODISCARD enum status query_hold(const struct query_plan *p, uint64_t bytes, struct err *e);
/* The same for memory with a limit of its own (an arena's): beyond the query's limit it succeeds,
 * and what was counted until then stays counted. */
NODISCARD enum status query_count(const struct query_plan *p, uint64_t bytes, struct err *e);

/* The unit of the values of a type, and what to multiply them by. */
struct query_unit {
	struct str name;
	int64_t factor;
};
struct query_unit query_unit_of(
	struct str sample_type, struct str sample_unit, struct str period_unit, int64_t period);

/* The points that a chosen step aims at, where the request does not say. */
#define QUERY_POINTS_WANTED 300
/* The step of the request; without one, a round step (whole minutes and the like) that gives about
 * `wanted` points. The same for every API. */
NODISCARD enum status query_choose_step(
	const struct query_request *r, uint32_t wanted, int64_t *out_ns, struct err *e);

/* "binary+0xaddress": how a place without a name is shown. */
#define QUERY_ADDRESS_NAME_MAX 320
struct str query_address_name(
	struct str binary, uint64_t address, char text[QUERY_ADDRESS_NAME_MAX]);

/* ---- series.c ---- */

struct query_points {
	struct str *labels; /* values of the request's `by`, "" when absent; NULL: the rest */
	struct samples_point *points;
	size_t count;
	int64_t total;
};
struct query_graph {
	struct query_points *series; /* largest first, the rest last */
	size_t count;
	int64_t step_ns;
	struct str unit;
	bool gauge; /* totals are averages over the time */
};
NODISCARD enum status query_series(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_graph *out, struct err *e);

/* ---- write_labels.c ---- */

/* E_INVALID for what is for flame graphs only. */
NODISCARD enum status query_format_check(enum query_format format, struct err *e);
/* OK, or why the answer in `out` could not be written. */
NODISCARD enum status query_written(const struct buf *out, struct err *e);

/* ---- write_flame.c, export.c, html.c ---- */

void query_flame_json(const struct query_flame *f, bool depth, struct buf *b);
NODISCARD enum status query_export_speedscope(const struct query_flame *f, struct str name,
	struct arena *a, struct buf *b, struct err *e);
NODISCARD enum status query_export_firefox(const struct query_flame *f, struct str name,
	struct arena *a, struct buf *b, struct err *e);
NODISCARD enum status query_export_html(const struct query_flame *f, struct buf *b, struct err *e);

/* ---- json.c ---- */

void query_json_i64(struct buf *b, int64_t v);
/* A member that is an array of `count` numbers of `size` bytes: uint8_t, uint32_t or int64_t. */
void query_json_column(struct buf *b, const char *key, const void *v, size_t size, size_t count);
/* ,"key": with the comma left out after an opening bracket */
void query_json_key(struct buf *b, const char *key);
void query_json_pair_i64(struct buf *b, const char *key, int64_t v);
void query_json_pair_str(struct buf *b, const char *key, struct str v);

/* ---- text.c ---- */

/* Says which condition of a query matches nothing: E_NOTFOUND, with a sentence for people. label:
 * whose values were asked for; else "". */
NODISCARD enum status query_nothing(const struct query_engine *q, const struct query_request *r,
	struct str label, struct err *e);

/* A table with aligned columns for a terminal: begin, cells row by row, end. */
#define QUERY_TEXT_COLUMNS_MAX 12
struct query_text {
	struct buf cells; /* texts, NUL after each */
	uint32_t columns;
	bool right[QUERY_TEXT_COLUMNS_MAX]; /* flush right: numbers */
	uint32_t width[QUERY_TEXT_COLUMNS_MAX];
	uint32_t at;     /* column of the next cell */
	uint32_t fit;    /* characters of a line; 0: as they come */
	uint32_t binary; /* the column of long names that may be cut; 0: none */
};
void query_text_begin(struct query_text *t, uint32_t columns, size_t max_bytes);
void query_text_deinit(struct query_text *t);
void query_text_right(struct query_text *t, uint32_t column);
/* Lines of `width` characters (0: no limit): names in the columns of binaries (0: there is none)
 * and functions, the last one, are shortened. Without a limit they are whole, and a long binary
 * pushes the rest of its own line only. */
void query_text_fit(struct query_text *t, uint32_t binary, uint32_t width);
/* A name in at most `width` characters: without folders, then without what is in brackets, then
 * without its middle. Blanks and lines before it stay. */
void query_text_shorten(struct str name, uint32_t width, struct buf *out);
/* Control characters become '?'. */
void query_text_cell(struct query_text *t, struct str s);
/* The binary of a frame; "[cpython]" for a frame of a language runtime, which has none. */
void query_text_binary(struct query_text *t, struct str binary, uint8_t kind);
void query_text_value(struct query_text *t, int64_t value, struct str unit);
void query_text_share(struct query_text *t, int64_t part, int64_t whole); /* "45.6%" */
void query_text_end(struct query_text *t, struct buf *out);
/* "2026-01-02 03:04:05Z" */
void query_text_time(int64_t ns, char out[32]);
/* Text with control characters replaced, so that a name cannot drive the terminal. */
void query_text_clean(struct buf *out, struct str s);
