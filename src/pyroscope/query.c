/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of querier.v1: a table has the meaning of each field number in each request. */
#include "base/arena.h"
#include "base/reader.h"
#include "pb/pb.h"
#include "pyroscope/pyroscope.h"

#include <string.h>

#define NUMBERS_MAX 12

enum meaning {
	NOTHING,
	TYPE,
	SELECTOR,
	LABEL,
	START,
	END,
	NODES,
	LIMIT,
	FORMAT,
	AGGREGATION,
	STEP,
	MATCHER,
	NAME,
	SPAN,
	TRACE,
	PROFILE,
	CALLS,
	SPANS,
	EXEMPLARS
};

static const uint8_t meanings[PYROSCOPE_REQUEST_COUNT][NUMBERS_MAX] = {
	[PYROSCOPE_PROFILE_TYPES] = { [1] = START, [2] = END },
	[PYROSCOPE_LABEL_VALUES] = { [1] = LABEL, [2] = MATCHER, [3] = START, [4] = END },
	[PYROSCOPE_LABEL_NAMES] = { [1] = MATCHER, [2] = START, [3] = END },
	[PYROSCOPE_SERIES] = { [1] = MATCHER, [2] = NAME, [3] = START, [4] = END },
	[PYROSCOPE_STACKTRACES] = { [1] = TYPE,
		[2] = SELECTOR,
		[3] = START,
		[4] = END,
		[5] = NODES,
		[6] = FORMAT,
		[7] = CALLS,
		[8] = PROFILE,
		[10] = TRACE,
		[11] = SPAN },
	[PYROSCOPE_SPAN_PROFILE] = { [1] = TYPE,
		[2] = SELECTOR,
		[3] = SPAN,
		[4] = START,
		[5] = END,
		[6] = NODES,
		[7] = FORMAT },
	[PYROSCOPE_PROFILE] = { [1] = TYPE,
		[2] = SELECTOR,
		[3] = START,
		[4] = END,
		[5] = NODES,
		[6] = CALLS,
		[7] = PROFILE,
		[8] = TRACE },
	[PYROSCOPE_SELECT_SERIES] = { [1] = TYPE,
		[2] = SELECTOR,
		[3] = START,
		[4] = END,
		[5] = NAME,
		[6] = STEP,
		[7] = AGGREGATION,
		[8] = CALLS,
		[9] = LIMIT,
		[10] = EXEMPLARS },
	[PYROSCOPE_HEATMAP] = { [1] = TYPE,
		[2] = SELECTOR,
		[3] = START,
		[4] = END,
		[5] = STEP,
		[6] = NAME,
		[7] = SPANS,
		[8] = EXEMPLARS,
		[9] = LIMIT },
};

static bool add(struct pyroscope_list *l, struct str text)
{
	if (l->count == PYROSCOPE_LIST_MAX)
		return false;
	l->v[l->count++] = text;
	return true;
}

/* Takes a text field. False: a list is full. */
static bool take_text(struct pyroscope_query *q, enum meaning m, struct str text)
{
	switch (m) {
	case TYPE:
		q->type = text;
		return true;
	case SELECTOR:
		q->selector = text;
		return true;
	case LABEL:
		q->label = text;
		return true;
	case MATCHER:
		return add(&q->matchers, text);
	case NAME:
		return add(&q->names, text);
	case SPAN:
		return add(&q->spans, text);
	case TRACE:
		return add(&q->traces, text);
	case PROFILE:
		return add(&q->profiles, text);
	case CALLS:
		q->calls = text;
		return true;
	default:
		return true;
	}
}

static void take_number(struct pyroscope_query *q, enum meaning m, uint64_t v)
{
	if (m == START)
		q->start_ms = (int64_t)v;
	else if (m == END)
		q->end_ms = (int64_t)v;
	else if (m == NODES)
		q->nodes_max = (int64_t)v;
	else if (m == LIMIT)
		q->series_max = (int64_t)v;
	else if (m == FORMAT)
		q->format = v;
	else if (m == AGGREGATION)
		q->average = v == 1;
	else if (m == SPANS)
		q->by_span = v == 2;
	else if (m == EXEMPLARS)
		q->exemplars = v == 2   ? PYROSCOPE_EXEMPLARS_PROFILES
			       : v == 3 ? PYROSCOPE_EXEMPLARS_SPANS
					: PYROSCOPE_EXEMPLARS_NONE;
	else if (m == STEP)
		memcpy(&q->step_s, &v, sizeof(v));
}

enum status pyroscope_query_decode(
	struct str message, enum pyroscope_request kind, struct pyroscope_query *out, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	*out = (struct pyroscope_query){ 0 };
	while (pb_next(&r, &f)) {
		enum meaning m = f.number < NUMBERS_MAX ? meanings[kind][f.number] : NOTHING;
		if (f.wire == PB_BYTES && !take_text(out, m, f.bytes))
			return err_set(e, E_LIMIT, "field %u: more than %d values", f.number,
				PYROSCOPE_LIST_MAX);
		if (f.wire == (m == STEP ? PB_FIXED64 : PB_VARINT))
			take_number(out, m, f.u64);
	}
	return r.failed ? err_set(e, E_INVALID, "the request is malformed at byte %zu",
				  reader_offset(&r))
			: OK;
}

/* Location { name = 1 } */
static struct str call_name(struct str message)
{
	struct reader r = reader_over(message.p, message.len);
	struct str name = STR("");
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			name = f.bytes;
	return name;
}

/* GoPGO { keep_locations = 1, aggregate_callees = 2 } */
static void take_pgo(struct pyroscope_calls *c, struct str message)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_VARINT)
			c->innermost = f.u64;
		else if (f.number == 2 && f.wire == PB_VARINT)
			c->plain_callee = f.u64 != 0;
	}
}

/* StackFrameFilter { include_function_names = 1, exclude_function_names = 2, and regular
 * expressions = 3, 4 }. False: it is malformed or has too many. */
static bool take_frames(struct pyroscope_calls *c, struct str message)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number < 1 || f.number > 4 || f.wire != PB_BYTES)
			continue;
		if (c->frame_count == PYROSCOPE_FRAME_NAMES_MAX)
			return false;
		c->frames[c->frame_count++] = (struct pyroscope_frame){
			.name = f.bytes, .is_regex = f.number > 2, .excluded = f.number % 2 == 0
		};
	}
	return !r.failed;
}

static uint32_t count_calls(struct str message)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	uint32_t count = 0;
	while (count <= PYROSCOPE_CALLS_MAX && pb_next(&r, &f))
		count += f.number == 1 && f.wire == PB_BYTES;
	return count;
}

enum status pyroscope_calls_decode(
	struct str message, struct arena *a, struct pyroscope_calls *out, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	uint32_t count = count_calls(message);
	*out = (struct pyroscope_calls){ 0 };
	if (count > PYROSCOPE_CALLS_MAX)
		return err_set(e, E_LIMIT, "stack_trace_selector: more than %d functions",
			PYROSCOPE_CALLS_MAX);
	struct str *v = ARENA_ARRAY(a, struct str, MAX(count, 1u));
	if (!v)
		return err_set(e, arena_status(a), "stack_trace_selector");
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES)
			v[out->count++] = call_name(f.bytes);
		else if (f.number == 2 && f.wire == PB_BYTES)
			take_pgo(out, f.bytes);
		else if (f.number == 3 && f.wire == PB_BYTES && !take_frames(out, f.bytes))
			return err_set(e, E_INVALID,
				"stack_trace_selector.frame_filter: malformed, or more than %d "
				"names",
				PYROSCOPE_FRAME_NAMES_MAX);
	}
	out->v = v;
	return r.failed ? err_set(e, E_INVALID, "stack_trace_selector is malformed at byte %zu",
				  reader_offset(&r))
			: OK;
}

enum status pyroscope_diff_decode(struct str message, struct pyroscope_query *left,
	struct pyroscope_query *right, struct err *e)
{
	struct str sides[2] = { STR(""), STR("") };
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.wire == PB_BYTES && (f.number == 1 || f.number == 2))
			sides[f.number - 1] = f.bytes;
	if (r.failed)
		return err_set(
			e, E_INVALID, "the request is malformed at byte %zu", reader_offset(&r));
	enum status s = pyroscope_query_decode(sides[0], PYROSCOPE_STACKTRACES, left, e);
	return s == OK ? pyroscope_query_decode(sides[1], PYROSCOPE_STACKTRACES, right, e)
		       : err_prefix(e, s, "left");
}
