/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status: a page for people: what the agent sees, what it could not do, and why. Private to agent/
 * (own_http.c). No I/O, no script, no other file; every text is escaped, since processes choose
 * their names.
 */
#pragma once

#include "agent/status/log_once.h"
#include "agent/status/problems.h"
#include "base/buf.h"

/* For a response: nothing is loaded, nothing runs. */
#define STATUS_HEADERS                                                             \
	"content-security-policy: default-src 'none'; style-src 'unsafe-inline'; " \
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"          \
	"x-content-type-options: nosniff\r\ncache-control: no-store\r\n"

struct status_row {
	const char *name;
	const char *value;
	const char *why; /* "" or NULL: none */
};

/* The parts of a page, in their order. */
void status_begin(struct buf *out, const char *node);
void status_section(struct buf *out, const char *title, const char *text);
void status_rows(struct buf *out, const struct status_row *rows, size_t count);
/* At most `rows_max`, the most frequent; "None." where there is none. `what` and `why` are the
 * columns' names. */
void status_problems(struct buf *out, struct problems *p, enum problem_kind kind, const char *what,
	const char *why, uint32_t rows_max);
/* Plain lines; nothing where there are none. */
void status_lines(struct buf *out, const char *title, struct str lines);
/* The last words; what ends the page follows, or the server's own words before it. */
void status_foot(struct buf *out);
void status_end(struct buf *out);

/* As HTML text and in attributes: & < > " ' as entities, what is not printable ASCII or UTF-8 as a
 * question mark. */
void status_escape(struct buf *out, struct str text);
