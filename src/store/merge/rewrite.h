/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/rewrite: writes rows of one or several sources as a new part. Some rows are left out,
 * some made coarser; the tables hold only what the rows need. Deleting, retention by type,
 * thinning, exporting and importing all use it.
 *
 * Layer 3, private to store/. For one thread at a time.
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

/* Makes room for `source_count` sources. The caller has zeroed the struct. */
NODISCARD enum status rewrite_init(
	struct rewrite *w, struct store *s, size_t source_count, struct err *e);
void rewrite_deinit(struct rewrite *w);
/* Reads all rows: how many are taken, and what they use. */
NODISCARD enum status rewrite_look(struct rewrite *w, struct err *e);
/* To be called after rewrite_look(), if that took any rows. After OK the part is durable under its
 * name. E_LIMIT: a series is too large to be sorted. E_UNSUPPORTED: a source is in another order
 * than it says. */
NODISCARD enum status rewrite_write(
	struct rewrite *w, struct place *place, uint64_t id, struct err *e);
/* The step between rewrite_look() and writing: numbers and canonical order. Called by
 * rewrite_write(). */
NODISCARD enum status rewrite_make_tables(struct rewrite *w, struct err *e);

/* Remember parts that need no rewrite under these rules, or are too large for one: they are not
 * read again for them until the next start. With retain_lock held. */
bool rewrite_was_seen(const struct store *s, uint64_t id, uint64_t rules);
void rewrite_remember(struct store *s, uint64_t id, uint64_t rules);
#define REWRITE_RETAINED UINT64_MAX /* by retention: no set of rules for thinning */

/* Fills `to`, the META of a new part, from the META of the part that it replaces. */
NODISCARD enum status rewrite_meta_from(
	struct part_meta *to, struct store *s, const struct part_meta *from, struct err *e);
/* Replaces `old` by `fresh` (NULL: by nothing), as store_change_parts() does. */
NODISCARD enum status rewrite_install(
	struct store *s, struct part *old, struct part *fresh, struct err *e);
/* Does all steps for one part of the set. After the look it removes the part if no row is taken,
 * leaves it if no row is left out and `always` is false, or else rewrites it. With merge_lock held.
 * `w` has its rule. */
NODISCARD enum status rewrite_part(struct rewrite *w, bool always, struct err *e);
