/* SPDX-License-Identifier: Apache-2.0 */
/*
 * querier*.c only: what the calls of querier.v1 and /pyroscope/render share. Their selectors are
 * Prometheus': regular expressions are anchored, and the parts of a profile type are labels too
 * (__profile_type__, __name__, __type__, __unit__, __period_type__, __period_unit__). Their types
 * do not say whether they are deltas: of a type that is there both ways, the delta is meant. Counts
 * stay counts: the unit is that of the type. Texts lie in the request or in the call's arena.
 */
#pragma once

#include "pb/pb.h"
#include "pyroscope/pyroscope.h"
#include "selector/selector.h"
#include "server/call.h"

/* A request to query by all of time. */
struct query_request querier_request(struct server_call *c, struct str selector);
/* Milliseconds as they are asked for; both ends belong to the range. None at all: all of time. */
void querier_set_range(struct query_request *q, int64_t start_ms, int64_t end_ms);

#define QUERIER_TYPE_LABELS 6
extern const char *const querier_type_labels[QUERIER_TYPE_LABELS]; /* sorted */
bool querier_is_type_label(struct str name);
/* The value of such a label. */
struct str querier_type_part(const struct samples_type *t, struct str name, struct server_call *c);
/* A label's name as firn has it. */
struct str querier_plain_name(struct server_call *c, struct str name);

/* The matchers of a selector: of labels, and of types. */
struct querier_filter {
	struct selector parsed; /* anchored, of both */
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
/* A selector of the filter's labels, of a type (NULL: of any), and of more matchers. */
NODISCARD enum status querier_filter_text(struct server_call *c, const struct querier_filter *f,
	const struct samples_type *t, const struct selector_matcher *more, uint32_t more_count,
	struct str *out);

struct querier_types {
	struct samples_type *v;
	size_t count;
};
NODISCARD enum status querier_types_list(
	struct server_call *c, int64_t start_ms, int64_t end_ms, struct querier_types *out);

/* The request to query for one selection; *out_found false: there is no such type, so the answer is
 * empty. */
NODISCARD enum status querier_select(struct server_call *c, const struct pyroscope_query *in,
	struct query_request *out, bool *out_found);

/* querier.c */
NODISCARD enum status querier_flame(
	struct server_call *c, const struct pyroscope_query *in, struct pyroscope_flame *out);
NODISCARD enum status querier_flame_diff(struct server_call *c, const struct pyroscope_query *left,
	const struct pyroscope_query *right, struct pyroscope_flame *out);

/* types.v1.LabelPair as field 1. */
static inline void querier_put_pair(struct buf *out, struct str name, struct str value)
{
	size_t pair = pb_begin(out, 1);
	pb_put_str(out, 1, name);
	pb_put_str(out, 2, value);
	pb_end(out, pair);
}
