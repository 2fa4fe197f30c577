/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacktext: stacks as other tools write them in text: folded ("main;f;g 12", flamegraph.pl's) and
 * what `perf script` prints.
 *
 * Layer 2 (may use base, profile). The texts come from many tools and versions: lines without a
 * stack are counted and left out, a text without any stack is E_INVALID.
 */
#pragma once

#include "profile/profile.h"

/* Frames of one line, or of one sample of perf's: E_LIMIT beyond. Stacks are cut as everywhere. */
#define STACKTEXT_FRAMES_MAX 65536u

enum stacktext_format { STACKTEXT_NONE, STACKTEXT_FOLDED, STACKTEXT_PERF };

/* Guesses by the beginning. NONE: this is no text. */
enum stacktext_format stacktext_guess(struct str bytes);

struct stacktext_stats {
	uint64_t lines;         /* lines with a stack, or with a part of one */
	uint64_t skipped;       /* others that are neither empty nor comments */
	uint64_t first_skipped; /* line, from 1 on */
};

/* Adds to `out`, at time_ns. Folded: type folded:samples:count, or of the
 * unit in a comment above them ("# unit: nanoseconds": folded:time:nanoseconds). perf: a type for
 * each event, its values the periods where they are printed (of clocks nanoseconds), else one a
 * sample; comm, pid and tid are labels. No samples on failure. */
NODISCARD enum status stacktext_decode(struct str text, enum stacktext_format f, int64_t time_ns,
	struct profile *out, struct stacktext_stats *stats, struct err *e);
