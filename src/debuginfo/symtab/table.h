/* SPDX-License-Identifier: Apache-2.0 */
/* table: opened tables, as build.c, trim.c, tests and benchmarks need them. */
#pragma once

#include "debuginfo/symtab/format.h"
#include "debuginfo/symtab/symtab.h"

struct debuginfo_table {
	const struct symtab_header *header; /* the mapping */
	size_t bytes;
	const struct symtab_segment *segments;
	const struct symtab_region *regions;
	const uint32_t *buckets;
	const uint32_t *starts;
	const struct symtab_place *places;
	const struct symtab_node *nodes;
	const struct symtab_function *functions;
	const uint32_t *string_offsets;
	const char *strings;
	uint32_t segment_count;
	uint32_t region_count;
	uint32_t range_count;
	uint32_t node_count;
	uint32_t function_count;
	uint32_t string_count;
	bool mapped; /* else the bytes are the caller's */
};

NODISCARD enum status debuginfo_table_open_fd(
	int fd, const char *name, struct debuginfo_table **out, struct err *e);
/* The number of the range that holds the address; UINT32_MAX: no region holds it. This is a lookup
 * without the names. */
uint32_t debuginfo_table_range(const struct debuginfo_table *t, uint64_t vaddr);
struct str debuginfo_table_text(const struct debuginfo_table *t, uint32_t id);
/* Whether a trimmed table has left the place out, so that the whole table may know more of it. */
static inline bool debuginfo_table_left_out(const struct debuginfo_table *t, struct symtab_place p)
{
	return p.line == SYMTAB_LEFT_OUT && (t->header->flags & SYMTAB_TRIMMED);
}
