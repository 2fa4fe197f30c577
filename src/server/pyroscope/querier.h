/* SPDX-License-Identifier: Apache-2.0 */
/*
 * querier*.c only: what the calls of querier.v1 and /pyroscope/render share. Their selectors are
 * Prometheus': regular expressions are anchored, and the parts of a profile type are labels too
 * (__profile_type__, __name__, __type__, __unit__, __period_type__, __period_unit__). Their types
 * do not say whether they are deltas: if a type exists as a delta and as a gauge, the delta is
 * meant. Counts stay counts: the unit is that of the type. Texts lie in the request or in the
 * call's arena.
 */
#pragma once

#include "pb/pb.h"
#include "pyroscope/pyroscope.h"
#include "selector/selector.h"
#include "server/request/request.h"

/* A request to query, over all of time. */
struct query_request querier_request(struct server_call *c, struct str selector);
/* Sets the range from the request's milliseconds; both ends belong to it. Both 0: nothing is
 * changed. */
void querier_set_range(struct query_request *q, int64_t start_ms, int64_t end_ms);

#define QUERIER_TYPE_LABELS 6
extern const char *const querier_type_labels[QUERIER_TYPE_LABELS]; /* sorted */
bool querier_is_type_label(struct str name);
/* The value of such a label. */
struct str querier_type_part(const struct samples_type *t, struct str name, struct server_call *c);
/* The n-th of the five words of a type's id, from 0; "": it has fewer. Its unit is the third. */
struct str querier_type_word(struct str id, int n);
struct str querier_type_unit(struct str id);
/* The name that firn has for a label. */
struct str querier_plain_name(struct server_call *c, struct str name);

/* The matchers of a selector, split into those of labels and those of types. */
struct querier_filter {
	struct selector parsed; /* anchored matchers of both */
	struct selector_matcher types[SELECTOR_MATCHERS_MAX];
	uint32_t type_count;
	struct selector_matcher labels[SELECTOR_MATCHERS_MAX];
	uint32_t label_count;
};
NODISCARD enum status querier_filter_read(
	struct server_call *c, struct str text, struct querier_filter *out);
void querier_filter_deinit(struct querier_filter *f);
bool querier_type_fits(
	struct server_call *c, const struct querier_filter *f, const struct samples_type *t);
/* Writes a selector: the filter's labels, a type (NULL: any), and more matchers. */
NODISCARD enum status querier_filter_text(struct server_call *c, const struct querier_filter *f,
	const struct samples_type *t, const struct selector_matcher *more, uint32_t more_count,
	struct str *out);

struct querier_types {
	struct samples_type *v;
	size_t count;
};
NODISCARD enum status querier_types_list(
	struct server_call *c, int64_t start_ms, int64_t end_ms, struct querier_types *out);

/* One selection as a request to query. Free with querier_selection_deinit(), also after a failure.
 */
struct querier_selection {
	struct query_request q;
	bool found;  /* false: there is no such type, so the answer is empty */
	bool chosen; /* only some stacks are wanted */
	struct pyroscope_calls calls;
	struct frame_filter frames;
	struct filter_condition conditions[PYROSCOPE_FRAME_NAMES_MAX];
};
NODISCARD enum status querier_select(
	struct server_call *c, const struct pyroscope_query *in, struct querier_selection *out);
void querier_selection_deinit(struct querier_selection *s);

/* querier.c */
NODISCARD enum status querier_flame(
	struct server_call *c, const struct pyroscope_query *in, struct pyroscope_flame *out);
NODISCARD enum status querier_dot(
	struct server_call *c, const struct pyroscope_query *in, struct buf *out);
NODISCARD enum status querier_flame_diff(struct server_call *c, const struct pyroscope_query *left,
	const struct pyroscope_query *right, struct pyroscope_flame *out);

/* The same for SelectSeries and SelectHeatmap: in steps, whose times are multiples of the step. */
NODISCARD enum status querier_select_steps(
	struct server_call *c, const struct pyroscope_query *in, struct querier_selection *out);

/* ---- querier_id.c ---- */

/* The names of labels that tell series apart, sorted. */
NODISCARD enum status querier_series_labels(
	struct server_call *c, const struct query_request *q, struct str **out, size_t *out_count);

/* A hash of the labels that the series has; it does not depend on other series. */
uint64_t querier_series_hash(const struct str *names, const struct str *values, size_t count);
struct str querier_id_write(struct server_call *c, int64_t time_ns, int64_t step_ns, uint64_t hash);
/* Narrows q to the profile of that id, by its time and these matchers of its labels; *out_found
 * false: there is no such profile in q. E_INVALID: no id. */
#define QUERIER_PROFILE_LABELS_MAX 48
NODISCARD enum status querier_profile_select(struct server_call *c, struct str text,
	struct query_request *q, struct selector_matcher *out, uint32_t *out_count,
	bool *out_found);

/* ---- querier_profiles.c: single profiles and spans ---- */

/* The value of one profile or span in one step of the request. */
struct querier_point {
	const struct str *values; /* one for each of the names below */
	uint32_t group_count;
	int64_t bucket_ns; /* where the request's step begins */
	int64_t time_ns;
	int64_t value;
};
/* Sorted by groups, then by step, then by value, the largest first. */
struct querier_points {
	struct querier_point *v;
	size_t count;
	struct str *names;  /* first of groups, then of series' labels, then of spans */
	size_t group_count; /* how many of them are of groups */
	size_t span_at;     /* index of the first name of spans */
	size_t name_count;
	int64_t step_ns; /* the step in which samples of a series are one profile */
	bool of_spans;
};
/* All profiles of a selection, or all its spans. Everything lies in the call's arena. */
NODISCARD enum status querier_points_find(struct server_call *c, const struct query_request *q,
	const struct str *groups, size_t group_count, bool of_spans, struct querier_points *out);
/* How many points there are of one group and step; the first one's index is *out_first. */
size_t querier_points_of(const struct querier_points *p, const struct str *values,
	int64_t bucket_ns, size_t *out_first);
/* types.v1.Exemplar. */
void querier_put_exemplar(
	struct server_call *c, const struct querier_points *p, size_t at, uint32_t field);

/* types.v1.LabelPair as field 1. */
static inline void querier_put_pair(struct buf *out, struct str name, struct str value)
{
	size_t pair = pb_begin(out, 1);
	pb_put_str(out, 1, name);
	pb_put_str(out, 2, value);
	pb_end(out, pair);
}
