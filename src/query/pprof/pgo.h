/* SPDX-License-Identifier: Apache-2.0 */
/* pgo: stacks cut to their innermost locations. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct query_cut {
	uint32_t first, count; /* paths[first .. + count): leaf first */
	int64_t value;
};
struct query_cuts { /* starts as zero bytes */
	VEC(struct query_cut) v;
	VEC(uint32_t) paths;
	struct map index;
};
struct query_pprof_writer;
/* Adds a value of a stack. A stack may be added again. */
NODISCARD enum status query_cuts_add(
	struct query_cuts *c, const uint32_t *path, uint32_t count, int64_t value, struct err *e);
NODISCARD enum status query_cuts_write(
	const struct query_cuts *c, struct query_pprof_writer *w, struct err *e);
void query_cuts_deinit(struct query_cuts *c);
/* The location without address and line of its innermost frame. */
NODISCARD enum status query_callee_copy(
	struct profile *p, uint32_t location, uint32_t *out, struct err *e);
