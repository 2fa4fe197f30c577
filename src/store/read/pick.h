/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/pick: which series and sets of a source a query wants, and of which type they are.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/read/view.h"

/* The types of the series that a pick wants. */
struct pick_type {
	bool found;
	bool several; /* `other` begins with what another one has */
	bool differ;  /* periods */
	bool any;     /* one has a period */
	bool delta;
	int64_t period;
	struct str text[TABLES_TYPE_PARTS];
	struct str other[2];
};

/* Which series and sets of a source a query wants. */
struct pick {
	uint8_t *series; /* one byte each; NULL: not picked yet */
	uint32_t series_count;
	uint32_t wanted; /* series */
	uint8_t *sets;   /* NULL: all */
	/* Where the source's labels did not stay. */
	bool apart;
	struct pick_type type;
	char *type_memory; /* its texts */
};
void pick_deinit(struct pick *p);
/* Tenant, type, labels and time. Loads labels, and sets where a matcher asks for them. */
NODISCARD enum status source_pick(struct store_view *v, struct source *s,
	const struct samples_query *q, struct budget *b, struct pick *out, struct err *e);

/* The one type of all series that the picks want. found is false if none wants a series. E_INVALID:
 * there are several types. */
struct found_type {
	bool found;
	bool delta;
	struct str text[TABLES_TYPE_PARTS]; /* in a source's strings */
	int64_t period;                     /* 0: differs */
	bool by_period; /* values are to be multiplied by that of their series; `period` is 1 */
};
/* The factor by which a series' values are multiplied; 1 for a series without a period. */
static inline int64_t period_factor(const struct tab_series *s)
{
	return s->period > 0 ? s->period : 1;
}
NODISCARD enum status picks_type(struct store_view *v, const struct pick *picks, bool times_period,
	struct found_type *out, struct err *e);
/* Sets it as the type of the answer; does nothing if no type was found. */
NODISCARD enum status found_type_put(const struct found_type *f, struct samples_tree *out);

/* One pick for each source. */
struct pick *view_picks_new(const struct store_view *v);
void view_picks_free(const struct store_view *v, struct pick *picks);
/* `skip`, a value for each source: not 0 leaves the source out; NULL: none is left out. */
NODISCARD enum status view_pick(struct store_view *v, const struct samples_query *q,
	const uint8_t *skip, struct budget *b, struct pick *picks, struct err *e);
