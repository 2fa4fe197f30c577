/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope: decodes the messages of Pyroscope's SDKs, Alloy and profilecli into a struct profile,
 * with the names that Pyroscope would give: push.v1.PushRequest, and the bodies of POST /ingest
 * (pprof, folded stacks, lines, trie, tree, JFR, speedscope; raw or multipart).
 *
 * Layer 3 (may use base, conf, codec, pb, profile, pprof, jfr, stacktext). No I/O. Not thread safe.
 * Source: what the SDKs were recorded to send (docs/clients.md), grafana/pyroscope pkg/og and
 * pkg/ingester/pyroscope.
 *
 * Labels: dots become '_' as everywhere in firn; names that begin with "__" (__session_id__,
 * __delta__) are dropped, but for __name__. A series without service_name gets one: the
 * application's name for /ingest, else "unspecified". Types whose sums mean nothing (inuse_*,
 * goroutines, live) are gauges; the others are deltas, even if the duration of the profile is not
 * known.
 */
#pragma once

#include "profile/profile.h"

/* All profiles of a message, decompressed. */
#define PYROSCOPE_BYTES_MAX ((size_t)256 << 20)
/* A decompressed body of POST /ingest: at most this many times its length, but the minimum is
 * always allowed.
 */
#define PYROSCOPE_EXPANSION_MAX 16
#define PYROSCOPE_EXPANDED_MIN ((size_t)16 << 20)
/* Parts of a multipart body, and bytes of the head of one. */
#define PYROSCOPE_PARTS_MAX 16
#define PYROSCOPE_PART_HEAD_MAX 4096
/* Bytes of all stacks of a trie or a tree written out in full: in the body their nodes share their
 * callers. */
#define PYROSCOPE_SPELLED_MAX ((uint64_t)256 << 20)
/* Frames of one stack: more are refused. Above profile.h's limit, which is lower, a stack is cut.
 */
#define PYROSCOPE_FRAMES_MAX 65536u

/* push.v1.PushRequest. Adds to `out`, no samples on failure; now_ns is for profiles without a time.
 * E_INVALID and E_LIMIT name series, sample and field. */
NODISCARD enum status pyroscope_push_decode(
	struct str message, int64_t now_ns, struct profile *out, struct err *e);

/* "now", "now-3h", "20260131", seconds, milliseconds, microseconds or nanoseconds since 1970 by
 * their number of digits; "" is now. False: anything else, and *out stays as it was. */
NODISCARD bool pyroscope_time(struct str text, int64_t now_ns, int64_t *out);

/* Whether it is a name that SDKs, Alloy and scrapes give profiles: "process_cpu", "memory",
 * "goroutine", … */
bool pyroscope_is_profile_name(struct str name);

/* The query of POST /ingest as it came, percent-decoded; "": a parameter is missing. */
struct pyroscope_ingest {
	struct str name; /* "app{key=value,…}" */
	struct str format;
	struct str content_type; /* the header */
	struct str from;
	struct str until;
	struct str sample_rate;
	struct str spy;
	struct str aggregation;
};
/* E_INVALID: there is no name, or format, from or until is not known. To be called first: a wrong
 * query and a wrong body have different statuses. */
NODISCARD enum status pyroscope_ingest_check(const struct pyroscope_ingest *q, struct err *e);
/* Adds to `out`, no samples on failure. E_INVALID names part and place, E_LIMIT the limit;
 * E_UNSUPPORTED: a format that is not known, or an SDK from before 2023. */
NODISCARD enum status pyroscope_ingest_decode(const struct pyroscope_ingest *q, struct str body,
	int64_t now_ns, struct profile *out, struct err *e);

/* ---- querier.v1 and /pyroscope/render ---- */

/* Appends "TYPE{service_name="app",…}" for "app.cpu{…}", as /ingest names an application and its
 * sample type. E_INVALID: it is no such name, or the type is not known. */
NODISCARD enum status pyroscope_name_query(struct str name, struct buf *out, struct err *e);

/* Elements of a repeated field of a request. */
#define PYROSCOPE_LIST_MAX 64
/* Nodes of a flame graph whose request has no limit, and the highest limit that a request may have,
 * as in Pyroscope. */
#define PYROSCOPE_NODES_DEFAULT 8192
#define PYROSCOPE_NODES_MAX 1048576

enum pyroscope_request {
	PYROSCOPE_PROFILE_TYPES,
	PYROSCOPE_LABEL_VALUES,
	PYROSCOPE_LABEL_NAMES,
	PYROSCOPE_SERIES,
	PYROSCOPE_STACKTRACES,
	PYROSCOPE_SPAN_PROFILE,
	PYROSCOPE_PROFILE,
	PYROSCOPE_SELECT_SERIES,
	PYROSCOPE_HEATMAP,
	PYROSCOPE_REQUEST_COUNT
};
enum pyroscope_format { PYROSCOPE_FLAMEGRAPH = 1, PYROSCOPE_TREE, PYROSCOPE_DOT, PYROSCOPE_PPROF };
enum pyroscope_exemplars {
	PYROSCOPE_EXEMPLARS_NONE,
	PYROSCOPE_EXEMPLARS_PROFILES,
	PYROSCOPE_EXEMPLARS_SPANS
};
struct pyroscope_list {
	struct str v[PYROSCOPE_LIST_MAX];
	uint32_t count;
};
/* The fields of all requests; texts lie in the message. */
struct pyroscope_query {
	struct str type, selector, label;
	int64_t start_ms, end_ms;
	int64_t nodes_max; /* 0: not said */
	int64_t series_max;
	uint64_t format; /* 0: not said */
	bool average;
	bool by_span; /* heat map: its points are spans, else profiles */
	enum pyroscope_exemplars exemplars;
	struct str calls; /* stack_trace_selector, to be read by pyroscope_calls_decode() */
	double step_s;
	struct pyroscope_list matchers, names, spans, traces, profiles;
};
/* E_INVALID: malformed; E_LIMIT: a list is too long. */
NODISCARD enum status pyroscope_query_decode(struct str message, enum pyroscope_request kind,
	struct pyroscope_query *out, struct err *e);
/* A stack_trace_selector: it keeps stacks that begin with these functions, outermost first, and
 * that have (or do not have) frames of these names. It may also cut them for Go's profile-guided
 * optimization. Texts lie in the message.
 */
#define PYROSCOPE_CALLS_MAX 2048
#define PYROSCOPE_FRAME_NAMES_MAX 64
struct pyroscope_frame {
	struct str name;
	bool is_regex;
	bool excluded;
};
struct arena;
struct pyroscope_calls {
	const struct str *v; /* in the arena */
	uint32_t count;
	uint64_t innermost; /* locations to keep; 0: all */
	bool plain_callee;
	struct pyroscope_frame frames[PYROSCOPE_FRAME_NAMES_MAX];
	uint32_t frame_count;
};
NODISCARD enum status pyroscope_calls_decode(
	struct str message, struct arena *a, struct pyroscope_calls *out, struct err *e);
/* DiffRequest. */
NODISCARD enum status pyroscope_diff_decode(struct str message, struct pyroscope_query *left,
	struct pyroscope_query *right, struct err *e);

/* One side of a flame graph, nodes behind their parents; node 0 is the root, whose name is not
 * read. Nodes of one parent may have the same name. Nodes that are not among the nodes_max largest
 * may be left out: they count in the totals. */
struct pyroscope_side {
	uint32_t count;
	const uint32_t *parent;
	const uint32_t *name; /* strings */
	const struct str *strings;
	const int64_t *self;
	const int64_t *total; /* NULL: nothing is left out */
};
/* Levels of tuples as Pyroscope's: (x - end of the one before, total, self, name), or for two sides
 * (x, total, self, x, total, self, name). Nodes that are not among the nodes_max largest are
 * "other". */
struct pyroscope_level {
	int64_t *v;
	size_t count;
	uint32_t *children; /* how many each tuple has, on the next level */
};
struct pyroscope_flame {
	struct str *names; /* [0]: "total" */
	size_t name_count;
	struct pyroscope_level *levels;
	size_t level_count;
	int64_t total, max_self;
	int64_t side_totals[2];
	int sides;
};
/* Everything lies in `a`, except for the texts of names, which lie in the sides. `right` NULL: one
 * side. */
NODISCARD enum status pyroscope_flame_make(const struct pyroscope_side *left,
	const struct pyroscope_side *right, int64_t nodes_max, struct arena *a,
	struct pyroscope_flame *out, struct err *e);
/* FlameGraph or FlameGraphDiff as a field of a message. */
void pyroscope_flame_encode(const struct pyroscope_flame *f, uint32_t field, struct buf *out);

/* ---- single files, of adhocprofiles.v1 ---- */

/* Decodes a file, gzipped or not, whose format is known by its first bytes: pprof, JFR,
 * speedscope's, folded stacks, the text of `perf script`, or the JSON that
 * pyroscope_flamebearer_write() makes of one side. Adds to `out`, with the time now_ns if the file
 * has none; no samples on failure. E_INVALID and E_LIMIT name the place. */
NODISCARD enum status pyroscope_file_decode(
	struct str bytes, int64_t now_ns, struct profile *out, struct err *e);
/* The types of such a profile by the names that Pyroscope gives them: the sample type ("cpu"), or
 * if two types have the same one, with the profile's name before it ("mutex:contentions"). Names
 * lie in the profile or in `a`. */
struct pyroscope_file_type {
	struct str name, unit;
	uint32_t type; /* types */
};
NODISCARD enum status pyroscope_file_types(const struct profile *p, struct arena *a,
	struct pyroscope_file_type **out, size_t *out_count, struct err *e);
/* The stacks of a type; p and `a` keep what it refers to. */
NODISCARD enum status pyroscope_file_side(struct profile *p, uint32_t type, struct arena *a,
	struct pyroscope_side *out, struct err *e);

/* One side as Pyroscope's tree: nodes in preorder, each (length of the name, name, self, number of
 * children), numbers as varints; the root has no name. It writes nothing if the total is 0. Scratch
 * lies in `a`. */
NODISCARD enum status pyroscope_tree_write(
	const struct pyroscope_flame *f, struct arena *a, struct buf *out, struct err *e);

/* One side as a graph of functions in Graphviz's language: own values, totals, and calls. It has
 * the nodes_max functions with the largest totals, or PYROSCOPE_DOT_DEFAULT if that is not above 0.
 * A function that calls itself counts once in a stack. Scratch lies in `a`. */
#define PYROSCOPE_DOT_DEFAULT 100
#define PYROSCOPE_DOT_MAX 8192
NODISCARD enum status pyroscope_dot_write(const struct pyroscope_flame *f, struct str unit,
	int64_t nodes_max, struct arena *a, struct buf *out, struct err *e);

/* Sums by steps, the first of which begins at start_s: of all samples, and for each value of a
 * label ("*": without it). */
struct pyroscope_timeline {
	struct str group;
	const int64_t *v;
};
struct pyroscope_timelines {
	int64_t start_s, step_s;
	size_t steps;
	const int64_t *all;
	const struct pyroscope_timeline *groups; /* NULL: not asked for */
	size_t group_count;
};
/* The step that Pyroscope's render chooses for such a range: 15 s at least, of 1,500 steps, rounded
 * to what people count by. */
int64_t pyroscope_timeline_step(int64_t start_ms, int64_t end_ms);
/* The answer of /pyroscope/render and render-diff. `name` is the sample type, `unit` its unit.
 * `lines` NULL: none. */
void pyroscope_flamebearer_write(const struct pyroscope_flame *f, struct str name, struct str unit,
	const struct pyroscope_timelines *lines, struct buf *out);
