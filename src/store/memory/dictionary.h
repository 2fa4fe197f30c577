/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/dictionary: one number for each text of labels and types in all open parts, so that
 * a query over thousands of series in many parts compares numbers, and runs a regular expression
 * once for each text.
 *
 * Layer 3, private to store/. Thread safe. Counted references. It only grows. When it is full a new
 * one replaces it; the old one is freed with its last reference.
 */
#pragma once

#include "base/lock.h"
#include "base/map.h"

#include <stdatomic.h>

struct dictionary {
	atomic_uint refs;
	struct lock lock;
	struct strtab texts; /* with the lock held */
};

NODISCARD enum status dictionary_new(size_t limit_bytes, struct dictionary **out);
struct dictionary *dictionary_ref(struct dictionary *d);
void dictionary_unref(struct dictionary *d); /* NULL is fine */

/* One more than the largest number so far; 0 is "". */
uint32_t dictionary_count(struct dictionary *d);
/* MAP_NONE when the text is not in it. */
uint32_t dictionary_find(struct dictionary *d, struct str text);

/* The numbers of some texts, with a count of references. */
struct label_ids {
	atomic_uint refs;
	struct dictionary *dictionary;
	uint32_t v[];
};
/* E_LIMIT: the dictionary is full. */
NODISCARD enum status label_ids_new(
	struct dictionary *d, const struct str *texts, uint32_t count, struct label_ids **out);
struct label_ids *label_ids_ref(struct label_ids *ids);
void label_ids_unref(struct label_ids *ids); /* NULL is fine */
