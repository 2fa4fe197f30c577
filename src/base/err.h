/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err: the sentence that goes with a status: what failed, in which file or field, at which offset.
 *
 * Layer 0. Never allocates, so that "out of memory" can be reported too. NULL is allowed
 * everywhere: the caller does not want the sentence. Not shared between threads.
 */
#pragma once

#include "base/status.h"

/* Longer sentences are cut. */
#define ERR_TEXT_MAX 236

struct err {
	enum status status;
	char text[ERR_TEXT_MAX];
};

/* Set the sentence; returns `s`, so that `return err_set(e, E_INVALID, "…");` is one line. */
enum status err_set(struct err *e, enum status s, const char *fmt, ...) PRINTF(3, 4);
/* The same with errno's text appended: ENOMEM gives E_NOMEM, ENOENT E_NOTFOUND, EACCES and EPERM
 * E_DENIED, ENOSPC and EDQUOT E_NOSPACE, EMFILE and ENFILE E_UNAVAILABLE, all others E_IO. errno
 * stays as it was. */
enum status err_os(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* Put "prefix: " before the sentence that `e` holds already; returns e's status. */
enum status err_prefix(struct err *e, enum status s, const char *fmt, ...) PRINTF(3, 4);
/* The sentence, or the status' own text where there is none; never NULL. */
const char *err_text(const struct err *e, enum status s);
