/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_section: what an open part is made of, and the bytes of its sections.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "base/lock.h"
#include "store/disk/disk.h"
#include "store/memory/memory.h"
#include "store/part/part_format.h"

#include <stdatomic.h>

/* The memory of one group of sections, freed together. */
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
	struct lock lock; /* guards what follows */
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
