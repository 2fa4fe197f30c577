/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/rewrite: rows of one or several sources, some left out, some made coarser, as a new
 * part with tables that hold what these rows need and nothing else. Deleting, retention by type,
 * thinning, exporting and importing are all this.
 *
 * Layer 3, private to store/. One thread's.
 */
#pragma once

#include "store/merge/merge_cursor.h"
#include "store/merge/take.h"
#include "store/read/read.h"

struct rewrite_source {
	struct source *from; /* all groups loaded and pinned by the caller */
	struct merge_filter rule;
	uint64_t rows, samples; /* taken; set by rewrite_look() */
	uint64_t left_rows, left_samples;
	uint8_t *used_series, *used_nodes, *used_sets;
	struct merge_cursor cursor; /* and the numbers in the new part */
};

struct rewrite {
	struct store *s;
	struct rewrite_source *sources;
	size_t count;
	/* Times of delta types without trace or span are rounded down to this; 0: as they are. */
	int64_t resolution_ns;
	const struct str *drop; /* sample labels that are left out */
	size_t drop_count;
	uint64_t memory_bytes; /* of rows being sorted */
	samples_cancel_fn *cancel;
	void *cancel_ctx;
	struct part_meta meta; /* all but what the writer sets; the caller's to free */
	const struct batch_seen *batches;
	size_t batch_count;
	struct part *damaged; /* what an E_CORRUPT was about */
	/* private */
	struct tables tables;
	bool has_tables;
	struct tabs tabs;
	struct canon canon;
	struct take_rounding rounding;
};

/* One source of each. The struct itself is zeroed first. */
NODISCARD enum status rewrite_init(
	struct rewrite *w, struct store *s, size_t source_count, struct err *e);
void rewrite_deinit(struct rewrite *w);
/* Reads all rows: how many are taken, and what they use. */
NODISCARD enum status rewrite_look(struct rewrite *w, struct err *e);
/* After rewrite_look(), when rows are taken: durable under its name when OK. E_LIMIT: a series is
 * too large to be sorted. E_UNSUPPORTED: a source is in another order than it says. */
NODISCARD enum status rewrite_write(
	struct rewrite *w, struct place *place, uint64_t id, struct err *e);
/* Numbers, canonical order: between the two; for rewrite_write(). */
NODISCARD enum status rewrite_make_tables(struct rewrite *w, struct err *e);

/* Parts that need no rewrite under these rules, or are too large for one: they are not looked at
 * again until the next start. With retain_lock held. */
bool rewrite_was_seen(const struct store *s, uint64_t id, uint64_t rules);
void rewrite_remember(struct store *s, uint64_t id, uint64_t rules);
#define REWRITE_RETAINED UINT64_MAX /* by retention: no set of rules for thinning */

/* A part's META as that of the part which takes its place. */
NODISCARD enum status rewrite_meta_from(
	struct part_meta *to, struct store *s, const struct part_meta *from, struct err *e);
/* `fresh` (NULL: nothing) takes the place of `old`, as in store_change_parts(). */
NODISCARD enum status rewrite_install(
	struct store *s, struct part *old, struct part *fresh, struct err *e);
/* The whole of it for one part that is in the set: look, and then nothing (no row left out, no
 * change asked), removal (no row taken) or rewriting. With merge_lock held. `w` has its rule. */
NODISCARD enum status rewrite_part(struct rewrite *w, bool always, struct err *e);
