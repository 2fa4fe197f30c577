/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/canon: the canonical order of all tables (docs/formats/part.md section 3), and the
 * numbers that their elements get by it.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/memory/tables.h"

/* to[old] is the new number, order[new] the old one. */
struct renumbering {
	uint32_t *to;
	uint32_t *order;
	uint32_t count; /* new ones */
};

#define CANON_ITEM_BYTES (2 * sizeof(uint32_t)) /* of each element of a table */

struct canon {
	struct renumbering label_strings; /* three selections of strings: to[] is 0 for others */
	struct renumbering sample_strings;
	struct renumbering symbol_strings;
	struct renumbering series;
	struct renumbering sets;
	struct renumbering functions;
	struct renumbering mappings;
	struct renumbering locations;
	struct renumbering nodes; /* preorder, children by location */
};

NODISCARD enum status canon_init(struct canon *c, const struct tabs *t);
/* To be called after `count` nodes were added in canonical order. Each keeps its number. */
NODISCARD enum status canon_keep_nodes(struct canon *c, uint32_t count);
void canon_deinit(struct canon *c);
