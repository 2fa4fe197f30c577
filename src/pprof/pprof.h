/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: profile.proto to and from a struct profile. The gzip around it is the caller's (codec).
 *
 * Layer 2 (may use base, pb, profile). Source: github.com/google/pprof, proto/profile.proto; the
 * rules of its CheckValid hold for what is written.
 */
#pragma once

#include "profile/profile.h"

/* An uncompressed profile.proto. `name` is the first part of the profile types ("process_cpu",
 * "memory"); each sample type gives a head; sample labels become `own` labels, numeric ones as
 * text. The types are deltas when duration_nanos is not 0. A time_nanos of 0 stays 0: the caller
 * knows when it took the profile. Locations of which nothing is known are left out. Adds to `out`;
 * no samples on failure. E_INVALID names the table, element and field. */
NODISCARD enum status pprof_decode(
	struct str message, struct str name, struct profile *out, struct err *e);

/* All samples of `p`, which must have one period type. Samples of several heads with different
 * sample types give one value column each; equal stacks and labels are merged. Labels (both sets)
 * are written as string labels, numeric ones stay strings. */
NODISCARD enum status pprof_encode(const struct profile *p, struct buf *out, struct err *e);
