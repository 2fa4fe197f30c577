/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_table: the sections of a part that are tables, as arrays in memory.
 *
 * Layer 3, private to store/ (part_open.c, part_read.c).
 */
#pragma once

#include "store/part/part.h"

/* What one group of sections took: freed together. */
struct group {
	bool loaded;
	void *memory[16];
	unsigned count;
	uint64_t bytes;
};

struct part {
	atomic_uint refs;
	struct object *object;
	const char *path; /* its name */
	uint64_t bytes;
	struct part_meta meta;
	struct part_section_entry sections[PART_SECTIONS_MAX];
	size_t section_count;
	pthread_mutex_t lock; /* guards what follows */
	unsigned pins[PART_GROUPS];
	int64_t used_ns;
	uint64_t load_limit; /* bytes that one table may take while it is loaded */
	struct tabs tabs;
	struct group groups[PART_GROUPS];
	struct label_ids *ids; /* of label_strings, while they are loaded; may be NULL */
	struct part_block *blocks;
	size_t block_count;
	struct part_total *totals;
	size_t total_count;
};

/* The bytes of a section, checked; E_CORRUPT when it is not there. */
NODISCARD enum status part_section_read(
	struct part *p, enum part_section kind, struct buf *out, struct err *e);
bool part_section_has(const struct part *p, enum part_section kind);

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
NODISCARD enum status part_blocks_parse(
	struct str bytes, struct part_block **out, size_t *out_count, struct err *e);
/* Of a part of so many blocks. */
NODISCARD enum status part_totals_parse(struct str bytes, size_t block_count,
	struct part_total **out, size_t *out_count, struct err *e);
