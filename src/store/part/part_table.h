/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_table: the sections of a part that are tables, as arrays in memory.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part_section.h"

/* A table's columns, parsed. */
struct part_table {
	struct buf bytes;
	uint32_t rows;
	uint32_t column_count;
	struct column columns[COLUMN_COUNT_MAX];
	struct str data;
};
NODISCARD enum status part_table_read(
	struct part *p, enum part_section kind, struct part_table *t, struct err *e);
void part_table_deinit(struct part_table *t);
/* Column `id`, every value below `limit`; 0 where the column is absent. */
NODISCARD enum status part_table_u32(
	const struct part_table *t, uint8_t id, uint64_t limit, uint32_t *out, struct err *e);
NODISCARD enum status part_table_i64(
	const struct part_table *t, uint8_t id, int64_t *out, struct err *e);
/* A strings section: texts and their array, in two blocks of memory of `g`. */
NODISCARD enum status part_table_strings(struct part *p, enum part_section kind, struct group *g,
	const struct str **out, uint32_t *count, struct err *e);
/* calloc'ed memory that belongs to the group; NULL without memory. */
void *part_group_alloc(struct group *g, size_t count, size_t size);

/* Fill one group (its tabs, its memory) of a part whose lock is held. */
NODISCARD enum status part_load_group(struct part *p, unsigned group, struct err *e);
