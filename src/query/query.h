/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: reports over the samples of a database (samples/samples.h).
 *
 * Layer 5 (may use base, os, codec, pb, arrow, profile, pprof, samples, symbolize).
 * Thread safety: one query is one thread's; many may run at a time.
 *
 * The values of a `samples:count` type with a period are multiplied by the period and reported in
 * its unit, as Parca does (CPU samples become nanoseconds).
 */
#pragma once

#include "base/clock.h"
#include "samples/samples.h"
#include "symbolize/symbolize.h"

/* How long one query may take. */
#define QUERY_TIME_MAX_NS (60 * NS_PER_SEC)
/* Nodes of one flame graph after trimming. */
#define QUERY_FLAME_NODES_MAX (4u << 20)
/* Nodes of one flame chart, where each sample may need nodes of its own. */
#define QUERY_CHART_NODES_MAX (1u << 18)
#define QUERY_PENDING_FILES_MAX 16

struct os_pool;
struct query_engine {
	struct samples_db *samples;
	struct symbolizer *symbolizer;
	struct os_pool *pool; /* threads that help a query; NULL: none help */
};

struct query_request {
	struct str tenant;
	struct str selector; /* text; without a profile type in it a report chooses one: the CPU
			      * time of firn's agent, CPU time, other time, anything */
	int64_t from_ns;
	int64_t to_ns;
	double trim;      /* nodes below this share of the total are left out; 0: none */
	uint32_t limit;   /* rows of a table, series of a graph, values of a label in a flame graph;
			   * 0: no limit */
	int64_t step_ns;  /* series; 0: chosen so that about 300 points come out */
	struct str by[8]; /* series: sum by these labels; pprof: labels to keep (none: all but those
			   * of threads and CPUs); flame graph: one, whose values are frames below
			   * the root */
	uint32_t by_count;
	bool by_total; /* rows of a table by total, else by self */
	/* Values of a `samples:count` type stay counts. Only for flame graphs and query_range(). */
	bool counts;
	bool required; /* a report without samples is E_NOTFOUND and says why; else it is empty */
	bool invert;   /* flame graph from the leaves up */
	bool depth;    /* flame graph as JSON: the depth of each node in place of its parent */
	/* Flame graph: frames of the same name are one node, whatever their binary and kind, which
	 * are then left out. */
	bool by_name;
	/* Flame graph: keep at least this many nodes, the ones with the largest totals. Others may
	 * be left out, but count in the totals of the nodes above them. 0: keep all. */
	uint32_t nodes_wanted;
	/* Flame graph in the order of time: a call is one node as long as samples of it follow each
	 * other. It is not inverted, not trimmed, and written as JSON only; E_LIMIT above
	 * QUERY_CHART_NODES_MAX nodes. With a label in `by`, each of its values has a node, and
	 * samples without the label are right below the root. */
	bool chart;
	uint32_t width;  /* of a table as text, in characters; 0: as wide as it needs */
	struct str note; /* pprof: a comment of the file; "": none */
	struct str
		match; /* keep stacks with a function whose name contains this (no case); "": all */
	/* Flame graph: keep stacks that begin with these functions, the outermost first. The names
	 * are those that the graph shows. */
	const struct str *calls;
	uint32_t call_count;
	/* A filter of whole stacks, applied as well as `match`; NULL: none. */
	const struct frame_filter *frames;
	/* If it is not NULL, there are several profile types and the selector names none: gets a
	 * line for people with the type that was chosen. */
	struct buf *chosen;
	samples_cancel_fn *cancel;
	void *cancel_ctx;
	int64_t deadline_ns; /* monotonic: E_TIMEOUT after it; 0: QUERY_TIME_MAX_NS from now */
};

/* Time as people and other tools write it: "now", "now-15m", "now-1M", "now/d", "now-7d/d"; RFC
 * 3339, also without seconds, time of day or zone; unix time in seconds (with a fraction) down to
 * nanoseconds, by the number of its digits. Years 1970 to 2261; shifts of "now" end there. */
#define QUERY_TIME_END 0x1u   /* the later end of a range: "now/d" is the day's end, or now */
#define QUERY_TIME_LOCAL 0x2u /* months, days and what has no zone are local; else in UTC */
NODISCARD enum status query_parse_time(
	struct str s, int64_t now_ns, unsigned flags, int64_t *out, struct err *e);
/* "15m", "1h30m", "2d", "250ms". */
NODISCARD enum status query_parse_duration(struct str s, int64_t *out, struct err *e);

/* A flame graph: columns of nodes in depth-first order, children by descending total, so that
 * child k's subtree follows child k-1's. */
struct query_flame {
	uint32_t count; /* node 0 is the root */
	uint32_t *parent;
	uint32_t *name; /* strings */
	uint32_t *file; /* source file, strings */
	uint32_t *line;
	uint32_t *binary; /* mapping's base name, strings */
	uint8_t *kind;    /* enum frame_kind */
	uint8_t *inlined;
	int64_t *self;
	int64_t *total;
	int64_t *time_ns; /* charts only, else NULL: time of the first sample; 0 for root and labels
			   */
	struct str *strings;
	uint32_t string_count;
	struct str unit;       /* of the values, after scaling: "nanoseconds" */
	int64_t trimmed;       /* value of the nodes that were left out */
	uint64_t sample_count; /* rows found, before `match`; 0: there are no samples */
	int64_t taken;         /* how many samples were taken for the shown stacks; -1: not known */
	uint32_t pending;      /* locations whose symbols are on their way */
	struct str *pending_files; /* names of their executables, at most QUERY_PENDING_FILES_MAX */
	uint32_t pending_file_count;
};
NODISCARD enum status query_flame(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_flame *out, struct err *e);

struct query_row {
	struct str name, binary, file;
	uint32_t line; /* where the function begins, else the smallest line seen; 0: not known */
	uint8_t kind;
	int64_t self;  /* the function is the leaf */
	int64_t total; /* it is anywhere in the stack: once, however often it recurs */
};
struct query_table {
	struct query_row
		*rows; /* by self, descending, then by total and name; or by total, then self */
	uint32_t count;
	uint32_t functions; /* rows before the limit */
	int64_t total;
	struct str unit;
};
NODISCARD enum status query_top(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_table *out, struct err *e);

/* Values by place in code. */
#define QUERY_BUILDS_MAX 16
struct query_place {
	uint64_t at;   /* a line from 1 on; an address of the ELF file */
	int64_t self;  /* a stack ends there */
	int64_t total; /* it is anywhere in the stack: once, however often it recurs */
};
struct query_places {
	struct query_place *v; /* ascending */
	uint32_t count;
	struct str *builds; /* build ids with such places, the costliest first; at most
			       QUERY_BUILDS_MAX */
	uint32_t build_count;
	struct str path; /* the mapped file of the costliest of `v` */
	int64_t total;   /* of all samples that the selector matches */
	struct str unit;
	uint32_t pending; /* locations whose symbols are on their way */
};
/* Lines of a source file (its whole path), of one build or with `build` "" of all. */
NODISCARD enum status query_source_places(const struct query_engine *q,
	const struct query_request *r, struct str file, struct str build, struct arena *a,
	struct query_places *out, struct err *e);
/* Instructions of a function and of the functions inlined into it, in one build; with `build` "",
 * in the build that costs most, builds[0]. binary: the base name, as it is shown; "": any. */
NODISCARD enum status query_code_places(const struct query_engine *q, const struct query_request *r,
	struct str function, struct str binary, struct str build, struct arena *a,
	struct query_places *out, struct err *e);

/* gzipped profile.proto, labels kept as sample labels. */
NODISCARD enum status query_pprof(const struct query_engine *q, const struct query_request *r,
	struct buf *out, struct err *e);

/* Lists from the index, sorted; the texts lie in `a`. The types are those of the time range; their
 * selector is ignored. Labels are listed only if their values are texts, as in Parca. */
NODISCARD enum status query_list_types(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct samples_type **out, size_t *out_count, struct err *e);
NODISCARD enum status query_list_labels(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct str **out, size_t *out_count, struct err *e);
NODISCARD enum status query_list_values(const struct query_engine *q, const struct query_request *r,
	struct str name, struct arena *a, struct str **out, size_t *out_count, struct err *e);

/* ---- the reports of Parca's API ---- */

struct query_range_point {
	int64_t time_ns; /* begin of the step */
	int64_t value;
	int64_t duration_ns;
	double per_second; /* of CPU time: cores; of a gauge: the value */
	uint32_t count;    /* samples */
};
struct query_range_series {
	struct str *values; /* one for each name, "" when absent */
	struct query_range_point *points;
	size_t point_count;
};
struct query_range {
	const struct str *names;
	size_t name_count;
	struct query_range_series *series; /* each with a point */
	size_t count;
	bool delta;
	struct str sample_type, unit, period_type, period_unit;
};
/* The selector must name a type. r->limit: points wanted, where r->step_ns is 0. Without `by` a
 * delta type is one series, and a gauge has a series for each set of its labels, but for labels of
 * samples. Everything lies in `a`. */
NODISCARD enum status query_range(const struct query_engine *q, const struct query_request *r,
	const struct str *by, size_t by_count, struct arena *a, struct query_range *out,
	struct err *e);

#define QUERY_LABELS_MAX 16 /* to group by */

/* The same for only the stacks that `calls` and `frames` of the request keep. A step in which no
 * stack is kept has the value 0. E_LIMIT: more than QUERY_LABELS_MAX labels. */
NODISCARD enum status query_range_chosen(const struct query_engine *q,
	const struct query_request *r, const struct str *by, size_t by_count, struct arena *a,
	struct query_range *out, struct err *e);

/* One side of a comparison, or the whole query. */
struct query_side {
	struct str selector;
	int64_t from_ns, to_ns; /* from <= time < to */
	bool single;            /* one profile: counts are not multiplied by their period */
};

#define QUERY_INNERMOST_MAX 64

/* By what frames are grouped, as well as by their function: the fields of Parca's group_by. */
#define QUERY_BY_ADDRESS 0x1u
#define QUERY_BY_MAPPING 0x2u
#define QUERY_BY_FILE 0x4u
#define QUERY_BY_SOURCE 0x8u    /* instead of the function: file and line */
#define QUERY_BY_SHOWN 0x10u    /* as firn shows it: name, base name of the binary, kind of frame */
#define QUERY_BY_LOCATION 0x20u /* instead of the function: build id and address */
#define QUERY_BY_NAME 0x40u     /* with QUERY_BY_SHOWN: its name alone */

struct query_report_request {
	struct str tenant;
	struct query_side side;
	struct query_side base; /* compared with, where `diff` */
	bool diff;
	bool absolute; /* else the smaller side is scaled up to the other's total */
	bool any_type; /* the type may be left out of selectors where there is only one */
	const struct frame_filter *filters;
	uint32_t filter_count;
	const struct str *calls; /* stacks that begin with these functions, as in query_request */
	uint32_t call_count;
	unsigned by;                         /* QUERY_BY_… */
	struct str labels[QUERY_LABELS_MAX]; /* not for a comparison */
	uint32_t label_count;
	/* Keep at most this many groups, the largest. Samples with none of the labels are one group
	 * ("no NAME"); the groups left out are one more ("everything else"). 0: keep all groups;
	 * samples with none of the labels are in no group. Not for a chart. */
	uint32_t group_max;
	bool chart; /* in the order of time */
	/* For a chart: events of one stack in one step become one, at the begin of the step. 0: all
	 * events stay. */
	int64_t step_ns;
	/* For a pprof file without labels, which a compiler reads for profile-guided optimization.
	 * innermost: keep this many innermost locations of each stack, and join stacks that are
	 * then equal (0: whole stacks; at most QUERY_INNERMOST_MAX). plain_callee: leave out the
	 * line and address of the called function.
	 */
	uint32_t innermost;
	bool plain_callee;
	bool durations; /* a pprof file says how long its profiles took, unless by labels */
	bool invert;
	struct str sandwich;   /* "": none; else keep only the calls below a function whose name
				  contains this (no case), or with `invert` the calls above it */
	double trim;           /* calls at or below this share of their parent are left out */
	uint32_t nodes_wanted; /* as in query_request */
	samples_cancel_fn *cancel;
	void *cancel_ctx;
	int64_t deadline_ns; /* monotonic: E_TIMEOUT after it; 0: QUERY_TIME_MAX_NS from now */
};

/* Figures of each report. */
struct query_report {
	int64_t total;    /* value of the stacks that the filters kept */
	int64_t filtered; /* value of the stacks that they dropped */
	int64_t trimmed;
	int32_t height;
	bool found; /* there was a sample, before all filters */
	char unit[64];
};

/* Parca's Arrow records, as IPC streams appended to `out`. The columns are Parca's. */
NODISCARD enum status query_flame_arrow(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e);
NODISCARD enum status query_table_arrow(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e);
/* Values by line of the source files whose path ends in `filename`; build_id "": of any. */
NODISCARD enum status query_source_arrow(const struct query_engine *q,
	const struct query_report_request *r, struct str build_id, struct str filename,
	struct buf *out, struct query_report *info, struct err *e);
/* Parca's messages Top, Callgraph and Flamegraph, in protobuf. */
NODISCARD enum status query_top_message(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e);
NODISCARD enum status query_callgraph_message(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e);
NODISCARD enum status query_flame_message(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e);
/* gzipped profile.proto with one sample type, in the report's unit. */
NODISCARD enum status query_report_pprof(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e);
/* The mapped files of the stacks, sorted; the texts lie in `a`. */
NODISCARD enum status query_mapping_files(const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct str **out, size_t *out_count,
	struct err *e);

/* The same queries with the answer as text for an HTTP body or a terminal. The formats from
 * QUERY_FOLDED on are for flame graphs only (E_INVALID elsewhere): one line "root;…;leaf value" for
 * each stack; a page of its own; files of speedscope and of the Firefox profiler. */
enum query_format {
	QUERY_JSON,
	QUERY_TEXT,
	QUERY_FOLDED,
	QUERY_HTML,
	QUERY_SPEEDSCOPE,
	QUERY_FIREFOX
};
NODISCARD enum status query_write_types(const struct query_engine *q, const struct query_request *r,
	enum query_format f, struct buf *out, struct err *e);
NODISCARD enum status query_write_labels(const struct query_engine *q,
	const struct query_request *r, enum query_format f, struct buf *out, struct err *e);
NODISCARD enum status query_write_label_values(const struct query_engine *q,
	const struct query_request *r, struct str name, enum query_format f, struct buf *out,
	struct err *e);
/* Which series ran a function whose name contains `match`, and when. */
NODISCARD enum status query_write_functions(const struct query_engine *q,
	const struct query_request *r, enum query_format f, struct buf *out, struct err *e);
NODISCARD enum status query_write_series(const struct query_engine *q,
	const struct query_request *r, enum query_format f, struct buf *out, struct err *e);
NODISCARD enum status query_write_flame(const struct query_engine *q, const struct query_request *r,
	enum query_format f, struct buf *out, struct err *e);
NODISCARD enum status query_write_top(const struct query_engine *q, const struct query_request *r,
	enum query_format f, struct buf *out, struct err *e);
/* Compares two tables of query_top() by function; the functions that changed most come first.
 * Limit, width and `required` are those of `side`. worse_above: the answer begins with "worse" if a
 * function's own share of its side's total grew by more than this (E_NOTFOUND if a side has no
 * samples); below 0: no such check. */
NODISCARD enum status query_write_diff(const struct query_engine *q,
	const struct query_request *side, const struct query_request *base, double worse_above,
	enum query_format f, struct buf *out, struct err *e);
