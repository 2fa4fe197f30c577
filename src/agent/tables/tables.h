/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables: the files that the BPF program knows and their unwind tables in kernel memory: room for
 * them within a budget, publication, replacement, eviction. Private to agent/ (sampler.c).
 *
 * Thread safety: all functions may be called from any thread.
 */
#pragma once

#include "agent/bpf/layout.h"
#include "agent/tables/slabs.h"
#include "base/err.h"
#include "unwind/unwind.h"

/* A table makes room for a new one when no frame fell into its file for so many epochs. */
#define TABLES_EVICT_AGE_EPOCHS 12
/* A table is removed after so many such epochs while there are more slabs than an idle host may
 * have. */
#define TABLES_IDLE_EPOCHS 60

struct tables;

/* Descriptors of the BPF program's maps, and its settings; all stay the caller's. */
struct tables_maps {
	int slabs;
	int pages;
	int file_slots;
	int files;
	int runtime_records;
	struct profiler_settings *settings;
};

struct tables_stats {
	uint32_t files;
	uint32_t slabs;
	uint32_t without_room; /* files whose tables had none */
	uint64_t bytes;        /* of tables, in the slabs */
	uint64_t evicted;      /* files, with a table or without, since the beginning */
};

/* `slabs_idle`: slabs that are kept when tables are not used. */
NODISCARD enum status tables_new(const struct tables_maps *maps, uint32_t slabs_idle,
	uint32_t slabs_max, struct tables **out, struct err *e);
void tables_free(struct tables *t);

/* As sampler_publish() and sampler_retract(). Publishing maps memory that tables_rest() gives back.
 */
NODISCARD enum status tables_publish(struct tables *t, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *table, struct err *e);
void tables_retract(struct tables *t, const struct file_key *key);
/* As sampler_set_runtime(). */
NODISCARD enum status tables_set_runtime(struct tables *t, const struct file_key *key,
	const struct runtime_record *r, struct err *e);
/* To be called when the settings' epoch was raised. Gives room to the files with the most samples,
 * and gives idle slabs back. */
void tables_next_epoch(struct tables *t, int64_t now_ns);

/* As sampler_knows(). */
bool tables_know(struct tables *t, const struct file_key *key);
enum tables_found {
	TABLES_NOT_FOUND, /* it is not published */
	TABLES_FOUND,
	TABLES_NO_ROOM, /* its table had no room: *out is of no use */
};
/* As sampler_find_rule(). Maps memory that tables_rest() gives back. */
enum tables_found tables_find_rule(struct tables *t, const struct file_key *key,
	uint64_t file_offset, struct unwind_rule *out);
void tables_rest(struct tables *t);

void tables_read_stats(struct tables *t, struct tables_stats *out);
