/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex: the few calls of RE2 that the selector needs, for C.
 *
 * Private to selector/. A compiled expression is immutable: any number of threads may match with
 * it. Matching is unanchored and linear in the text. Source: RE2 2022-06,
 * https://github.com/google/re2/wiki/Syntax (the syntax of Go's regexp).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes that RE2 may use for one expression: its program and its cache of states. A larger program
 * is refused; a full cache costs time, not memory. */
#define SELECTOR_REGEX_BYTES_MAX (1 << 20)

#ifdef __cplusplus
extern "C" {
#endif

struct selector_regex;

/* NULL: `why` holds RE2's reason (cut to fit), "" when there was no memory. */
struct selector_regex *selector_regex_new(
	const char *pattern, size_t len, char *why, size_t why_size);
void selector_regex_free(struct selector_regex *r);
bool selector_regex_match(const struct selector_regex *r, const char *text, size_t len);

#ifdef __cplusplus
}
#endif
