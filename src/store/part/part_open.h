/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_open: a part that is open: its META, and the tables of it that are loaded and
 * pinned. Any thread may use it. It has counted references; a loaded table stays while it is
 * pinned; part_trim() drops the others.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/disk/disk.h"
#include "store/memory/memory.h"
#include "store/part/column.h"
#include "store/part/part_format.h"

struct part;
/* Checks header, trailer, table of contents and META. E_CORRUPT, E_UNSUPPORTED (newer version). */
NODISCARD enum status part_open(const char *path, struct part **out, struct err *e);
/* The same for part `id` of a place. */
NODISCARD enum status part_open_at(
	struct place *place, uint64_t id, struct part **out, struct err *e);
/* The same for any object. The part owns `o` from here on; after a failure it is closed. */
NODISCARD enum status part_open_object(struct object *o, struct part **out, struct err *e);
struct part *part_ref(struct part *p);
void part_unref(struct part *p);

const struct part_meta *part_meta(const struct part *p);
const char *part_path(const struct part *p);
uint64_t part_file_bytes(const struct part *p);
const struct part_section_entry *part_sections(const struct part *p, size_t *count);

/* Loads those of `groups` (a mask) that are not loaded, and pins all of them until part_unpin().
 * E_LIMIT: they take more than `limit_bytes` of memory. */
NODISCARD enum status part_pin(
	struct part *p, unsigned groups, uint64_t limit_bytes, struct tabs *out, struct err *e);
void part_unpin(struct part *p, unsigned groups);
/* Bytes of memory that the loaded groups among these take. */
uint64_t part_group_bytes(struct part *p, unsigned groups);
/* Frees those of `groups` that are loaded and not pinned, unless the part was used after
 * `before_ns` (monotonic). Returns the bytes of all groups that are still loaded. Never waits:
 * while another thread loads the part, it does nothing and returns 0. */
uint64_t part_trim(struct part *p, unsigned groups, int64_t before_ns);

/* Unpins groups that the caller has pinned, and frees those that nobody else has pinned. */
uint64_t part_forget(struct part *p, unsigned groups);

/* The numbers of the label strings in `d`, kept with these strings. To be called with
 * PART_LOAD_TEXTS pinned. E_LIMIT: the dictionary is full. */
NODISCARD enum status part_label_ids(struct part *p, struct dictionary *d, struct label_ids **out);
/* The same if they have been looked up before; else NULL. */
struct label_ids *part_known_ids(struct part *p, const struct dictionary *d);

/* With PART_LOAD_BLOCKS pinned. */
const struct part_block *part_blocks(const struct part *p, size_t *count);
/* Totals, those with more blocks first. Several may have a block in common. */
const struct part_total *part_totals(const struct part *p, size_t *count);
