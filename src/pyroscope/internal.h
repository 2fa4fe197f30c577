/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope's own: labels of a series, parts of a body, and what is done to decoded profiles. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jfr/jfr.h"
#include "pyroscope/pyroscope.h"

/* Sums are taken modulo 2^64, as in all of firn: senders choose the values. */
static inline int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrap_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* ---- labels.c ---- */

struct series_labels {
	struct profile_label v[PROFILE_LABELS_MAX];
	uint32_t count;
	struct str name; /* __name__; "" for none */
	bool has_service;
};
/* As the header says; of a name given twice the first counts. */
NODISCARD enum status labels_add(struct series_labels *l, struct profile *p, struct str name,
	struct str value, struct err *e);
/* The set's id; with `service` where none was given. */
NODISCARD enum status labels_intern(struct series_labels *l, struct profile *p, struct str service,
	uint32_t *out, struct err *e);
/* "app{key=value,…}": *out_app, and the text between the braces. False: no app. */
bool name_split(struct str name, struct str *out_app, struct str *out_labels);
NODISCARD enum status labels_add_text(
	struct series_labels *l, struct profile *p, struct str text, struct err *e);

/* ---- multipart.c ---- */

struct part {
	struct str name;
	struct str body;
};
struct parts {
	struct part v[PYROSCOPE_PARTS_MAX];
	size_t count;
};
/* multipart/form-data (RFC 7578), in place. */
NODISCARD enum status parts_read(
	struct str content_type, struct str body, struct parts *out, struct err *e);
/* NULL: absent. */
const struct part *parts_find(const struct parts *p, const char *name);

/* ---- contexts.c ---- */

/* Labels of async-profiler's contexts, by Pyroscope's Java agent: LabelsSnapshot { contexts = 1:
 * map<int64, Context>; strings = 2: map<int64, string> }, Context { labels = 1: map<int64, int64>
 * }.
 */
#define CONTEXTS_MAX 1000000u
struct context_entry {
	bool is_string;
	uint64_t id;
	struct str bytes; /* Context, or the text */
	bool made;        /* of a context: labels[first .. first + count) are its */
	uint32_t first, count;
	uint32_t name, value; /* of a text: the strings of the profile; 0: not made yet */
};
struct contexts {
	struct map index;
	VEC(struct context_entry) entries;
	VEC(struct profile_label) labels;
};
NODISCARD enum status contexts_read(struct str message, struct contexts *out, struct err *e);
void contexts_deinit(struct contexts *c);
jfr_context_fn contexts_labels; /* of a struct contexts, which is for one profile */

/* ---- types.c ---- */

/* What sample_type_config says of a sample type of a pprof file. */
struct type_config {
	struct str type;
	struct str display_name;
	bool average;
};
#define TYPE_CONFIGS_MAX 64
struct type_configs {
	struct type_config v[TYPE_CONFIGS_MAX];
	size_t count;
	struct buf text; /* of the names; deinit is the caller's */
};
NODISCARD enum status type_configs_read(struct str json, struct type_configs *out, struct err *e);

/* What was added to a profile: heads from `head` on, samples from `sample` on. */
struct added {
	uint32_t head;
	size_t sample;
};
struct made {
	int64_t from_ns;     /* of profiles whose time is none, or of a clock that was never set */
	int64_t duration_ns; /* of profiles that do not say; 0: not known */
	bool average;        /* all of them are gauges */
	const struct type_configs *configs; /* NULL: names stay as they are */
};
/* Gives the types their names, and tells gauges from deltas. */
NODISCARD enum status types_finish(struct profile *p, struct added a, const struct made *m);

/* ---- repair.c ---- */

/* Puts back what Go cut off at the roots of deep stacks, where other stacks of the same file have
 * it. Files of others stay as they are. E_LIMIT, E_NOMEM. */
NODISCARD enum status repair_go_stacks(struct profile *p, struct added a);

/* ---- tree.c ---- */

/* The nodes of a flame graph of one side, parents before their children, children from left to
 * right; none where the total is 0. Scratch lies in `a`. */
struct tree_node {
	size_t level;  /* 0: the root */
	uint32_t name; /* names of the flame graph */
	int64_t total, self;
	uint64_t children;
};
typedef void tree_visit_fn(void *ctx, const struct tree_node *n);
NODISCARD enum status tree_walk(const struct pyroscope_flame *f, struct arena *a,
	tree_visit_fn *visit, void *ctx, struct err *e);

/* ---- stacks.c ---- */

enum text_format { TEXT_GROUPS, TEXT_LINES, TEXT_TRIE, TEXT_TREE };
/* A body without types of its own: one head, whose type the last part of the application's name
 * says, which is taken off *io_app. */
struct text_type {
	const char *name, *sample_type, *unit, *period_type, *period_unit;
	bool gauge;
	bool by_period; /* values are samples, each of 1e9 / rate ns */
};
NODISCARD enum status text_type_of(struct str *io_app, struct text_type *out, struct err *e);
struct text_body {
	enum text_format format;
	struct str bytes;
	struct text_type type;
	uint32_t rate;
	int64_t time_ns, duration_ns;
	uint32_t resource;
};
NODISCARD enum status text_decode(const struct text_body *b, struct profile *out, struct err *e);

/* ---- speedscope.c ---- */

struct speedscope {
	struct str bytes; /* JSON */
	struct str app;   /* with the suffix that says a type, or without */
	const struct series_labels *labels;
	uint32_t rate; /* samples a second, of weights without a unit */
	int64_t time_ns, duration_ns;
};
/* Each profile of the file with the label profile_name. Adds to `out`. E_INVALID, E_LIMIT. */
NODISCARD enum status speedscope_decode(
	const struct speedscope *in, struct profile *out, struct err *e);
