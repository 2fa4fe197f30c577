/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status: the closed list of ways to fail, and the few macros every file uses.
 *
 * Layer 0. A function that can fail returns `enum status` (OK is 0) and takes an optional
 * `struct err *` (err.h) that receives the sentence for people. Out parameters come last before
 * `err` and are untouched on failure.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/*    name         HTTP gRPC  meaning */
#define STATUS_LIST(X)                                                \
	X(NOMEM,        500,  8, "out of memory")                     \
	X(IO,           500, 13, "the operating system refused")      \
	X(DENIED,       403,  7, "the caller may not do this")        \
	X(INVALID,      400,  3, "the caller's input is malformed")   \
	X(CORRUPT,      500, 15, "bytes we stored are damaged")       \
	X(NOTFOUND,     404,  5, "no such object")                    \
	X(EXISTS,       409,  6, "the object is there already")       \
	X(LIMIT,        422,  8, "larger than a documented limit")    \
	X(QUOTA,        429,  8, "a quota is used up for now")        \
	X(NOSPACE,      503, 14, "no space is left on the disk")      \
	X(UNAVAILABLE,  503, 14, "not now: try again")                \
	X(TIMEOUT,      504,  4, "the deadline passed")               \
	X(CANCELED,     499,  1, "the caller went away")              \
	X(UNSUPPORTED,  501, 12, "valid, but not implemented here")   \
	X(PRECONDITION, 400,  9, "not in this order, or not any more") \
	X(UNAUTHENTICATED, 401, 16, "the caller has not said who it is")
/* clang-format on */

enum status {
	OK = 0,
#define STATUS_ENUM(name, http, grpc, text) E_##name,
	STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
		STATUS_COUNT
};

/* "OK", "INVALID", …: for logs and tests. */
const char *status_name(enum status s);
/* The meaning above, a short sentence without a full stop. */
const char *status_text(enum status s);
int status_http(enum status s); /* 200 for OK */
int status_grpc(enum status s); /* 0 for OK */

#define NODISCARD __attribute__((warn_unused_result))
#define PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#define UNUSED __attribute__((unused))

/* CLEANUP(f) T x: when x leaves its scope, f(&x) is called. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))
/* Hand a local's value over; the local is empty afterwards, so its cleanup does nothing. */
#define STEAL_PTR(p)                   \
	({                             \
		__auto_type p_ = &(p); \
		__auto_type v_ = *p_;  \
		*p_ = NULL;            \
		v_;                    \
	})
#define STEAL_FD(fd)             \
	({                       \
		int *p_ = &(fd); \
		int v_ = *p_;    \
		*p_ = -1;        \
		v_;              \
	})

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Arguments are evaluated once; the names are numbered so that MIN(MAX(…), …) does not shadow. */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define MIN_(a, b, x, y)             \
	({                           \
		__auto_type x = (a); \
		__auto_type y = (b); \
		x < y ? x : y;       \
	})
#define MAX_(a, b, x, y)             \
	({                           \
		__auto_type x = (a); \
		__auto_type y = (b); \
		x > y ? x : y;       \
	})
#define MIN(a, b) MIN_(a, b, CAT(min_a_, __COUNTER__), CAT(min_b_, __COUNTER__))
#define MAX(a, b) MAX_(a, b, CAT(max_a_, __COUNTER__), CAT(max_b_, __COUNTER__))

/* Not reached whatever the input; aborts if it is. */
#define UNREACHABLE() (assert(false), __builtin_unreachable())

/* An O(n) check: on in debug builds only (plain assert() stays on in release). */
#ifdef FIRN_SLOW_ASSERTS
#define assert_slow(x) assert(x)
#else
#define assert_slow(x) ((void)sizeof(x))
#endif

/* free(*p), close(*fd): for CLEANUP. */
void free_cleanup(void *ptr_to_ptr);
void fd_cleanup(int *fd);
