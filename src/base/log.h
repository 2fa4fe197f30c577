/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: one line an event on standard error, logfmt or JSON, for agent/, server/ and cli/ only:
 * libraries return `err`.
 *
 * Layer 0. Thread safe: a line is one write(2).
 *
 *	log_info("part written", "part=%s rows=%u", name, rows);
 *
 * gives: time=2026-01-02T03:04:05.678Z level=info msg="part written" part=… rows=…
 */
#pragma once

#include "base/str.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

void log_configure(enum log_level most, enum log_format format);
/* "error", "warn", "info", "debug"; "logfmt", "json". False: not one of them. */
bool log_parse_level(struct str s, enum log_level *out);
bool log_parse_format(struct str s, enum log_format *out);

/* `fields` is a printf format of key=value pairs, blanks between them; a value with blanks or
 * quotes, or with bytes from elsewhere, goes through log_quote() first. */
void log_line(enum log_level level, const char *msg, const char *fields, ...) PRINTF(3, 4);

/* `s` in double quotes with escapes, cut to fit, in `out`; returns out. */
const char *log_quote(struct str s, char *out, size_t out_size);
/* The same in memory of the enclosing block. */
#define LOG_QUOTED(text) log_quote(str_of(text), (char[LOG_QUOTED_MAX]){ 0 }, LOG_QUOTED_MAX)
#define LOG_QUOTED_MAX 1024

#define log_error(msg, ...) log_line(LOG_ERROR, msg, __VA_ARGS__)
#define log_warn(msg, ...) log_line(LOG_WARN, msg, __VA_ARGS__)
#define log_info(msg, ...) log_line(LOG_INFO, msg, __VA_ARGS__)
#define log_debug(msg, ...) log_line(LOG_DEBUG, msg, __VA_ARGS__)
