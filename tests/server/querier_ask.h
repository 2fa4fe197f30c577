/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the querier over made.h's store. */
#pragma once

#include "made.h"

#define TYPE "cpu:samples:count:cpu:nanoseconds"
#define MS (MADE_NS / 1000000)

static struct ask asked;

static inline struct str querier_call(net_handler_fn *fn, const struct buf *body, enum status want)
{
	ask_deinit(&asked);
	ask_init(&asked, "/", "");
	asked.r.body = buf_view(body);
	asked.r.is_rpc = true;
	fn(&made, &asked.r, &asked.out);
	if (asked.out.status != want)
		print_error("%s: %s\n", status_name(asked.out.status), asked.out.message);
	CHECK(asked.out.status == want);
	return buf_view(&asked.out.body);
}

static inline struct str querier_get(net_handler_fn *fn, const char *query, enum status want)
{
	ask_deinit(&asked);
	ask_init(&asked, "/pyroscope/render", query);
	fn(&made, &asked.r, &asked.out);
	CHECK(asked.out.status == want);
	buf_u8(&asked.out.body, 0);
	return buf_view(&asked.out.body);
}

static inline void querier_put_merge(struct buf *b, const char *type, const char *selector)
{
	pb_put_str(b, 1, str_of(type));
	pb_put_str(b, 2, str_of(selector));
	pb_put_i64(b, 3, MS);
	pb_put_i64(b, 4, MS + 1000); /* belongs to the range */
}

static inline void querier_put_steps(struct buf *b, const char *selector, double step)
{
	buf_clear(b);
	querier_put_merge(b, TYPE, selector);
	pb_put_double(b, 6, step);
}

static inline double querier_double(struct pb_field f)
{
	double value;
	memcpy(&value, &f.u64, sizeof(value));
	return value;
}

static inline struct str querier_first_point(struct str answer)
{
	return made_find(made_find(answer, 1, 0).bytes, 2, 0).bytes;
}

static inline int querier_teardown(void **state)
{
	ask_deinit(&asked);
	return made_teardown(state);
}
