/* SPDX-License-Identifier: Apache-2.0 */
/* self's own: the files that this process runs code of. */
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
/* Mappings of all of them, in the profile too. */
NODISCARD enum status objects_find(struct objects *o, struct profile *p, struct err *e);
/* NULL: none. */
const struct object *objects_of(const struct objects *o, uint64_t address);
