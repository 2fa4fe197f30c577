/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/take: copies what rows of a source refer to into the tables of a new part: series,
 * sets, profiles and locations, each at most once, and only those that the caller asks for. Merging
 * asks for all; rewriting asks for those that its rows use.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/memory/memory.h"
#include "store/part/part.h"

struct take {
	struct tables *to;
	const struct tabs *from;
	struct translate symbols;
	uint32_t *memory;
	uint32_t *label_strings, *sample_strings; /* new numbers; TRANSLATE_UNSET: none yet */
	int names[TABLES_NAMES_MAX];              /* -1: the new tables do not have it */
};
/* `from` is loaded and pinned as long as this is used. E_NOMEM. */
NODISCARD enum status take_init(struct take *t, struct tables *to, const struct tabs *from);
void take_deinit(struct take *t);
/* E_CORRUPT: the source refers to an element that it does not have. E_NOMEM, E_LIMIT. */
NODISCARD enum status take_series(struct take *t, uint32_t id, uint32_t *out);
/* Without the labels whose names the new tables do not have. */
NODISCARD enum status take_set(struct take *t, uint32_t id, uint32_t *out);
NODISCARD enum status take_location(struct take *t, uint32_t id, uint32_t *out);

/* The names of the sample labels of a part made from several sources: sorted, each once.
 * take_names_add() adds the names of one source, except those in `drop`. E_LIMIT: more than
 * TABLES_NAMES_MAX. */
struct take_names {
	struct str v[TABLES_NAMES_MAX];
	uint32_t count;
};
NODISCARD enum status take_names_add(
	struct take_names *n, const struct tabs *t, const struct str *drop, size_t drop_count);

/* Which times of a new part's rows may be rounded: those of series with `delta`, unless their set
 * is in `keep_time`. By the new numbers; malloc'ed. */
struct take_rounding {
	uint8_t *delta, *keep_time;
};
NODISCARD enum status take_rounding_init(
	struct take_rounding *r, const struct tabs *t, const struct canon *c);
void take_rounding_deinit(struct take_rounding *r);
