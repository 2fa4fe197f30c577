/* SPDX-License-Identifier: Apache-2.0 */
/* tables: the tables of a symbolizer, open, on disk or being built. */
#pragma once

#include "symbolize/find.h"
#include "symbolize/symbolize.h"

struct symbolize_tables;

NODISCARD enum status symbolize_tables_new(const struct symbolizer_config *c,
	struct symbolize_metrics *metrics, struct symbolize_tables **out, struct err *e);
void symbolize_tables_free(struct symbolize_tables *t);

/* Takes the descriptor over. */
NODISCARD enum status symbolize_tables_offer(
	struct symbolize_tables *t, const char *build_id, const char *path, int fd, struct err *e);

/* As symbolizer_look_again(). */
NODISCARD enum status symbolize_tables_look_again(
	struct symbolize_tables *t, const char *build_id, bool replace, struct err *e);

/* Finds the files of a build id from which its table would be made. */
NODISCARD enum status symbolize_tables_files(struct symbolize_tables *t, struct str build_id,
	struct symbolize_files *out, struct err *e);
struct symbolize_tables *symbolizer_tables(struct symbolizer *s);
/* Whether files of this host are used. */
bool symbolize_tables_are_local(const struct symbolize_tables *t);

/* A table in use: stays open until it is released. */
struct symbolize_ref;
const struct debuginfo_table *symbolize_ref_table(const struct symbolize_ref *r);
void symbolize_ref_release(struct symbolize_tables *t, struct symbolize_ref *r); /* NULL is fine */

/* The table of a build id. *out NULL: there is none; *out_pending: it is being built (this call
 * queues it). Does not wait. `whole`: a trimmed table is returned too, but a whole one is built if
 * that is possible. */
void symbolize_tables_get(struct symbolize_tables *t, struct str build_id, struct str path,
	bool whole, struct symbolize_ref **out, bool *out_pending);
/* As symbolizer_set_samples(). */
void symbolize_tables_set_samples(
	struct symbolize_tables *t, const struct symbolizer_samples *samples);
/* As symbolizer_want(). */
void symbolize_tables_want(struct symbolize_tables *t, struct str build_id, struct str path);
/* It was asked for, and is waiting or being built. */
bool symbolize_tables_is_pending(struct symbolize_tables *t, struct str build_id);
/* Waits until a build ends or the deadline passes (monotonic); false at the deadline. `*seen` is
 * the caller's, 0 at first: the count of ended builds that it has seen. */
bool symbolize_tables_wait(struct symbolize_tables *t, uint64_t *seen, int64_t deadline_ns);
