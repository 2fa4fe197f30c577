/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/index_kinds: finds which labels and types there are in the lists that parts keep of
 * them (KINDS in docs/formats/part.md), without a look at any series.
 *
 * Layer 3, private to store/ (index.c). The lists answer only queries that leave no series out by a
 * label, and only for parts that lie in the time range as a whole.
 */
#pragma once

#include "store/read/pick.h"

/* A query, and what was found so far. */
struct kinds_query {
	struct store_view *view;
	const struct samples_query *query;
	bool types;      /* only loading: the kinds are then looked at one by one */
	struct str name; /* whose values; "": names */
	struct budget *budget;
};

/* Texts in ascending order, each once. They point into sources whose labels stay pinned. */
struct kinds_texts {
	struct str *v;
	size_t len;
	size_t cap; /* taken from the budget */
};
void kinds_texts_deinit(struct kinds_texts *t, struct budget *b);
/* Merges `n` ascending texts into it; those that it has already are skipped. */
NODISCARD enum status kinds_texts_add(
	struct kinds_texts *t, const struct str *texts, size_t n, struct budget *b, struct err *e);

/* Whether the kind fits the selector and the view's tenant. */
bool kinds_wanted(const struct kinds_query *k, const struct tabs *t, const struct tab_kind *x);
/* `done` by source: 1 if the lists answer the query, so that nothing else of the source is read. */
NODISCARD enum status kinds_ask(
	struct kinds_query *k, uint8_t *done, struct kinds_texts *out, struct err *e);
