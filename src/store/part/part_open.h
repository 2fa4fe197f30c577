/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_open: a part that is open: its META, and the tables of it that are loaded and
 * pinned. Any thread may use it. It has counted references; what was loaded stays as long as
 * it is pinned, and is dropped by part_trim().
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
/* The same of a part in its place. */
NODISCARD enum status part_open_at(
	struct place *place, uint64_t id, struct part **out, struct err *e);
/* The same wherever it lies; `o` is the part's from here on, also after a failure. */
NODISCARD enum status part_open_object(struct object *o, struct part **out, struct err *e);
struct part *part_ref(struct part *p);
void part_unref(struct part *p);

const struct part_meta *part_meta(const struct part *p);
const char *part_path(const struct part *p);
uint64_t part_file_bytes(const struct part *p);
const struct part_section_entry *part_sections(const struct part *p, size_t *count);

/* Loads what is missing of `groups` (a mask), and pins these until part_unpin(). `limit_bytes`:
 * of what these groups take in memory; beyond it E_LIMIT. */
NODISCARD enum status part_pin(
	struct part *p, unsigned groups, uint64_t limit_bytes, struct tabs *out, struct err *e);
void part_unpin(struct part *p, unsigned groups);
/* Bytes that the loaded ones of these groups take. */
uint64_t part_group_bytes(struct part *p, unsigned groups);
/* Forgets what was loaded of `groups`, unless pinned or used after `before_ns` (monotonic); returns
 * the bytes that are still loaded of all. Never waits: a part that a thread loads just now is left
 * alone, and 0. */
uint64_t part_trim(struct part *p, unsigned groups, int64_t before_ns);

/* Unpins groups that the caller has pinned, and forgets them at once unless they are pinned by
 * others. */
uint64_t part_forget(struct part *p, unsigned groups);

/* Numbers of the label strings in `d`, kept with them: with PART_LOAD_TEXTS pinned. E_LIMIT: the
 * dictionary is full. */
NODISCARD enum status part_label_ids(struct part *p, struct dictionary *d, struct label_ids **out);
/* The same where they are there already; else NULL. */
struct label_ids *part_known_ids(struct part *p, const struct dictionary *d);

/* With PART_LOAD_BLOCKS pinned. */
const struct part_block *part_blocks(const struct part *p, size_t *count);
/* Totals, those with more blocks first. Several may have a block in common. */
const struct part_total *part_totals(const struct part *p, size_t *count);
