/* SPDX-License-Identifier: Apache-2.0 */
/* self's own: the files whose code this process runs. */
#pragma once

#include "profile/profile.h"

#define OBJECTS_MAX 256

struct objects {
	struct object {
		uint64_t start, limit; /* of a segment with code */
		uint32_t mapping;      /* of the profile */
	} v[OBJECTS_MAX];
	uint32_t count;
};
/* Finds all of them, and adds their mappings to the profile. */
NODISCARD enum status objects_find(struct objects *o, struct profile *p, struct err *e);
/* NULL: none. */
const struct object *objects_of(const struct objects *o, uint64_t address);
