/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/remap: locations of a source as locations of a profile.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "profile/profile.h"
#include "store/read/view.h"

/* Locations of a source as locations of a profile, each once. */
struct remap {
	struct profile *to;
	struct translate symbols; /* which points here: a remap does not move */
	uint32_t *memory;         /* numbers of the locations, then others */
	uint32_t last;            /* location of `to` */
	bool first;               /* `to` had none before: those of a source are distinct */
};
NODISCARD enum status remap_init(struct remap *r, const struct tabs *from, struct profile *to,
	struct budget *b, struct err *e);
void remap_deinit(struct remap *r);
/* What remap_init() takes from the budget. */
uint64_t remap_bytes(const struct tabs *from);
NODISCARD enum status remap_location(struct remap *r, uint32_t location, uint32_t *out);
