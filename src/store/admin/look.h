/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/admin/look: what verify.c and inspect.c have in common: the files of a path, the names of
 * things.
 *
 * Layer 3, private to store/. Nothing here changes a file.
 */
#pragma once

#include "store/state/state.h"

struct looking;
typedef void look_fn(struct looking *l, const char *path);

/* One walk over files; what it found is text lines in `out`. */
struct looking {
	look_fn *part, *log, *manifest;
	struct buf *out;
	uint64_t sound, damaged, newer, unreadable; /* files */
	struct err first;                           /* the first thing that was wrong */
	enum status first_status;
	const char *directory; /* a whole store that is walked, maybe in use; else NULL */
	VEC(uint64_t) parts;   /* ids of the parts seen so far, and of those that they replace */
	bool listed;           /* the listing of the directory had this file */
	bool gone;             /* it has vanished since, which is no damage */
	bool has_id;           /* by its name in the directory it is part `id` */
	uint64_t id;
};
void looking_deinit(struct looking *l);
/* A part, a log segment, a manifest, an export, or a storage directory: then all of them in it. */
void look_at(struct looking *l, const char *path);
/* Looks at the parts that were written after the directory was listed. */
void look_again(struct looking *l);
bool look_met(const struct looking *l, uint64_t part);
/* The file was looked at; what was wrong is in `e`. */
void look_done(struct looking *l, enum status s, const struct err *e);
/* The worst finding: damage before a newer version before a file that could not be read. */
NODISCARD enum status look_status(const struct looking *l, struct err *e);

const char *part_section_name(unsigned kind);
const char *part_column_name(unsigned id);

/* `len` bytes of a file from `offset` on as an object: a part in an export. */
NODISCARD enum status look_open_slice(
	const char *path, uint64_t offset, uint64_t len, struct object **out, struct err *e);
