/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units: durations and sizes as people write and read them.
 *
 * Layer 0. Pure functions.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* "15m", "1h30m", "2d", "250ms": whole numbers with a unit of w d h m s ms us ns, each unit at most
 * once and from large to small. No sign, no blanks. E_INVALID says what was wrong with `s`. */
NODISCARD enum status units_parse_duration(struct str s, int64_t *out_ns, struct err *e);
/* "512MB", "1GiB", "4096": a whole number of bytes with k, M, G or T, each alone or before B
 * (powers of 1000) or iB (powers of 1024). */
NODISCARD enum status units_parse_bytes(struct str s, uint64_t *out_bytes, struct err *e);

/* Bytes of the longest text of the writers below, with the NUL. */
#define UNITS_TEXT_MAX 48
/* `value` of `unit` for people, three digits: "nanoseconds" give "1.23s" (up to "2.10h"), "bytes"
 * "45.6MiB", "count" "12.3k"; for other units the number and the unit's name. ASCII. Returns `out`.
 */
const char *units_format(int64_t value, struct str unit, char out[UNITS_TEXT_MAX]);
/* The exact form that units_parse_duration() reads: "2w", "1h30m", "0s". */
const char *units_format_duration(int64_t ns, char out[UNITS_TEXT_MAX]);
/* The largest unit that leaves a whole number: "256MiB", "10GiB", "1000B". */
const char *units_format_bytes(uint64_t bytes, char out[UNITS_TEXT_MAX]);
