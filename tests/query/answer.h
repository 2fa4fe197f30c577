/* SPDX-License-Identifier: Apache-2.0 */
/* answer: what one of the query_write_… functions says, as text. */
#pragma once

#include "fake.h"

typedef enum status answer_fn(const struct query_engine *q, const struct query_request *r,
	enum query_format f, struct buf *out, struct err *e);

#define CHECK_ANSWER(fn, r, format, want)                                                     \
	do {                                                                                  \
		struct err e_ = { 0 };                                                        \
		struct buf b_;                                                                \
		buf_init(&b_, 1 << 20);                                                       \
		CHECK_OK(fn(&fake_engine, r, format, &b_, &e_), &e_);                         \
		if (!str_eq(buf_view(&b_), str_of(want))) {                                   \
			print_error("got:\n%.*s\nwant:\n%s\n", STR_ARG(buf_view(&b_)), want); \
			_fail(__FILE__, __LINE__);                                            \
		}                                                                             \
		buf_deinit(&b_);                                                              \
	} while (0)

/* Too little room, a wrong selector, another format, nothing found where something is required:
 * each gives its status. */
static inline void check_failures(answer_fn *fn, bool folded_ok)
{
	struct err e = { 0 };
	struct query_request r = fake_request(CPU), wrong = fake_request("{");
	CLEANUP(buf_deinit) struct buf small, large;
	buf_init(&small, 10);
	buf_init(&large, 1 << 20);
	CHECK(fn(&fake_engine, &r, QUERY_JSON, &small, &e) == E_LIMIT);
	CHECK(strstr(e.text, "the answer is larger than"));
	CHECK(fn(&fake_engine, &wrong, QUERY_JSON, &large, &e) == E_INVALID);
	enum status s = fn(&fake_engine, &r, QUERY_FOLDED, &large, &e);
	CHECK(s == (folded_ok ? OK : E_INVALID));
	r.from_ns = r.to_ns - 1; /* nothing is there */
	r.required = true;
	CHECK(fn(&fake_engine, &r, QUERY_JSON, &large, &e) == E_NOTFOUND);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
