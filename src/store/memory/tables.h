/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/tables: what the rows of samples refer to: strings, series, sets of sample labels,
 * symbols, and the trie of stacks. `struct tables` is written (memtable, merge); `struct tabs` is a
 * reader's view of the same, whether it came from memory or from a part.
 *
 * Layer 3, private to store/. One writer. Element 0 of every table is its null element.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "profile/profile.h"
#include "profile/translate.h"
#include "store/memory/grow.h"
#include "store/store.h"

#define TABLES_NAMES_MAX 32 /* sample labels of one part */
#define TABLES_TYPE_PARTS 5 /* name, sample type, sample unit, period type, period unit */

struct tab_series {
	uint32_t tenant;
	uint32_t type[TABLES_TYPE_PARTS];
	uint32_t delta;
	uint32_t label_first; /* labels[first .. + count), names ascending */
	uint32_t label_count;
	int64_t period;
	int64_t first_ns; /* in a memtable these three change: read them by tab_series_…() */
	int64_t last_ns;
	uint64_t rows;
};
/* These may be called while other threads append. Each value was once in the field; two of them
 * need not be of the same instant. */
static inline int64_t tab_series_first_ns(const struct tab_series *s)
{
	return __atomic_load_n(&s->first_ns, __ATOMIC_RELAXED);
}
static inline int64_t tab_series_last_ns(const struct tab_series *s)
{
	return __atomic_load_n(&s->last_ns, __ATOMIC_RELAXED);
}
static inline uint64_t tab_series_rows(const struct tab_series *s)
{
	return __atomic_load_n(&s->rows, __ATOMIC_RELAXED);
}

/* The series of one tenant and type in a part: which labels they have, and when there are samples.
 */
struct tab_kind {
	uint32_t tenant;
	uint32_t type[TABLES_TYPE_PARTS];
	uint32_t delta;
	uint32_t name_first; /* kind_names[first .. + count), names ascending */
	uint32_t name_count;
	int64_t first_ns;
	int64_t last_ns;
};
struct tab_kind_name {
	uint32_t name;
	uint32_t value_first; /* kind_values[first .. + count), ascending */
	uint32_t value_count;
};

/* A profile whose samples have no times of their own: its series, its time and its duration. */
struct tab_profile {
	uint32_t series;
	int64_t time_ns; /* exact, also where the rows' times are rounded */
	int64_t duration_ns;
	int64_t samples; /* of the series, at this time */
};

struct tabs {
	const struct str *names; /* sample labels */
	const struct str *label_strings;
	const struct str *sample_strings;
	const struct str *symbol_strings;
	const struct tab_series *series;
	const struct profile_label *labels;
	const uint32_t *sets; /* (1 + name_count) strings each: tenant, values */
	const struct profile_function *functions;
	const struct profile_mapping *mappings;
	const struct profile_location *locations;
	const struct profile_line *lines;
	const uint32_t *parent; /* by node of the trie: its parent, which has a smaller number,
				   except for the root */
	const uint32_t *node_location;
	/* The index of a part, NULL where there is none: series_sets[set_first[s] .. set_first[s +
	 * 1]), and likewise by location. */
	const uint32_t *set_first;
	const uint32_t *series_sets;
	const uint32_t *location_first;
	const uint32_t *location_series;
	/* Of a part. */
	const struct tab_kind *kinds;
	const struct tab_kind_name *kind_names;
	const uint32_t *kind_values;
	const struct tab_profile *profiles; /* in a part ascending by series and time, each once */
	uint32_t profile_count;
	uint32_t kind_count;
	uint32_t name_count;
	uint32_t label_string_count;
	uint32_t sample_string_count;
	uint32_t symbol_string_count;
	uint32_t series_count;
	uint32_t label_count;
	uint32_t set_count;
	uint32_t function_count;
	uint32_t mapping_count;
	uint32_t location_count;
	uint32_t line_count;
	uint32_t node_count;
};

/* The node of a whole stack, found by a hash of the contents of its frames. */
struct stack_entry {
	struct hash128 key;
	uint32_t node;
};

struct tables {
	struct arena text;
	struct str names[TABLES_NAMES_MAX];
	uint32_t name_count;
	GROW(struct str) strings;
	GROW(struct tab_series) series;
	GROW(struct profile_label) labels;
	GROW(uint32_t) sets;
	GROW(struct profile_function) functions;
	GROW(struct profile_mapping) mappings;
	GROW(struct profile_location) locations;
	GROW(struct profile_line) lines;
	GROW(uint32_t) parent;
	GROW(uint32_t) node_location;
	GROW(struct stack_entry) stacks;
	GROW(struct tab_profile) profiles; /* in any order, some in several pieces */
	uint32_t set_count;
	struct map string_index;
	struct map series_index;
	struct map set_index;
	struct map function_index;
	struct map mapping_index;
	struct map location_index;
	struct map node_index;
	struct map stack_index;
};

/* Names are copied. `limit_bytes` bounds each table. */
NODISCARD enum status tables_init(
	struct tables *t, size_t limit_bytes, const struct str *names, uint32_t name_count);
void tables_deinit(struct tables *t);
/* The memory in use. */
uint64_t tables_bytes(const struct tables *t);
void tables_view(const struct tables *t, struct tabs *out);

/* Interning: equal content, equal index. E_NOMEM, E_LIMIT. */
NODISCARD enum status tables_add_string(struct tables *t, struct str s, uint32_t *out);
/* MAP_NONE when absent. */
uint32_t tables_find_string(const struct tables *t, struct str s);
NODISCARD enum status tables_add_function(
	struct tables *t, const struct profile_function *f, uint32_t *out);
NODISCARD enum status tables_add_mapping(
	struct tables *t, const struct profile_mapping *m, uint32_t *out);
NODISCARD enum status tables_add_location(struct tables *t, const struct profile_location *l,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out);
NODISCARD enum status tables_add_node(
	struct tables *t, uint32_t parent, uint32_t location, uint32_t *out);
/* Appends a node that the caller knows to be new. It is not indexed, so tables_add_node() will not
 * find it. */
NODISCARD enum status tables_append_node(struct tables *t, uint32_t parent, uint32_t location);
/* Finds a stack by its key, the hash of its frames' contents. MAP_NONE: it is not in the table
 * yet. */
uint32_t tables_find_stack(const struct tables *t, struct hash128 key);
/* For callers that look up several stacks: the first function prefetches the slot of the index, the
 * second, called later, the entry itself. */
void tables_prefetch_stack(const struct tables *t, struct hash128 key);
void tables_prefetch_stack_entry(const struct tables *t, struct hash128 key);
NODISCARD enum status tables_name_stack(struct tables *t, struct hash128 key, uint32_t node);
/* label_first, label_count, first_ns, last_ns and rows of `key` are ignored. */
NODISCARD enum status tables_add_series(struct tables *t, const struct tab_series *key,
	const struct profile_label *labels, uint32_t label_count, uint32_t *out);
/* `values`: tenant and one string for each name; no value at all gives set 0. */
NODISCARD enum status tables_add_set(struct tables *t, const uint32_t *values, uint32_t *out);
NODISCARD enum status tables_add_profile(struct tables *t, const struct tab_profile *p);
/* Sorts profiles by series and time, and makes one of those that have the same series and time.
 * Returns how many are left. */
uint32_t tab_profiles_settle(struct tab_profile *v, uint32_t n);
/* Adds two counts, each at least 1. The sum is INT64_MAX where it would overflow: an import may
 * contain any number. */
static inline int64_t tab_samples_add(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
/* Counts rows that were added to the series, in this range of time. */
void tables_count_row(
	struct tables *t, uint32_t series, int64_t first_ns, int64_t last_ns, uint64_t rows);

/* The names of PROFILE_SAMPLE_LABELS, sorted. */
extern const struct str store_sample_names[];
extern const uint32_t store_sample_name_count;

/* For translate.h: the symbols of these tables as a source, and struct tables as a target. */
struct translate_from tabs_symbols(const struct tabs *t);
extern const struct translate_ops translate_to_tables;

/* -1 when `name` is not a sample label of these tables. */
int tabs_name_find(const struct tabs *t, struct str name);
/* The value of a label of the series, "" when absent. */
struct str tabs_series_label(const struct tabs *t, uint32_t series, struct str name);
