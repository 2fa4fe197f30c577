/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex: the few calls of RE2 that selectors and relabelling need, for C.
 *
 * Layer 0. A compiled expression is immutable: any number of threads may match with it. Matching is
 * linear in the text. Source: RE2 2022-06, https://github.com/google/re2/wiki/Syntax (the syntax of
 * Go's regexp).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes that RE2 may use for one expression: its program and its cache of states. A larger program
 * is refused; a full cache costs time, not memory. */
#define REGEX_BYTES_MAX (1 << 20)
#define REGEX_GROUPS_MAX 32 /* the whole match among them */

#ifdef __cplusplus
extern "C" {
#endif

struct regex;

/* NULL: `why` holds RE2's reason (cut to fit), "" when there was no memory. */
struct regex *regex_new(const char *pattern, size_t len, char *why, size_t why_size);
/* The same for regex_capture(): '.' is a line feed too, as in Prometheus' relabelling. */
struct regex *regex_new_capturing(const char *pattern, size_t len, char *why, size_t why_size);
void regex_free(struct regex *r);

/* Anywhere in the text. */
bool regex_match(const struct regex *r, const char *text, size_t len);

struct regex_span {
	size_t begin, end; /* begin > end: the group took no part */
};
/* Matches the whole text, and gives the spans of its groups: number 0 is the match itself; groups
 * from REGEX_GROUPS_MAX on are left out. *out_count: spans that were filled. Only for
 * regex_new_capturing(). */
bool regex_capture(const struct regex *r, const char *text, size_t len,
	struct regex_span out[REGEX_GROUPS_MAX], size_t *out_count);
/* The number of a named group; -1: there is none. */
int regex_find_group(const struct regex *r, const char *name, size_t len);

#ifdef __cplusplus
}
#endif
