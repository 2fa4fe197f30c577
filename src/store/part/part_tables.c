/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a part that is being written, column by column, in canonical order.
 */
#include "base/radix.h"
#include "store/part/part_writer.h"

#include <stdlib.h>

/* An index of locations may have this many pairs, and one more for each 8 rows. */
#define INDEX_PAIRS_MIN 16384
/* If times are this coarse, profiles are joined. */
#define COARSE_NS (60 * NS_PER_SEC)

/* A table in the making: begin_table(), columns, end_table(). Failures stay in `status`. */
struct table {
	struct part_writer *w;
	size_t rows;
	uint32_t columns;
	enum status status;
};

static struct table begin_table(struct part_writer *w, size_t rows)
{
	struct table t = { .w = w, .rows = rows, .status = OK };
	buf_clear(&w->data);
	buf_clear(&w->header);
	if (!vec_grow(&w->values, &w->values_cap, MAX(rows, (size_t)1), sizeof(int64_t)))
		t.status = E_NOMEM;
	return t;
}

/* Encodes w->values as a column of the table. */
static void end_column(struct table *t, uint8_t id)
{
	struct column c;
	if (t->status == OK)
		t->status = column_encode(
			&t->w->columns, id, t->w->values, t->rows, COLUMN_PLAIN, &t->w->data, &c);
	if (t->status != OK)
		return;
	column_write_header(&t->w->header, &c);
	t->columns++;
}

#define TABLE_COLUMN(t, id, i, value)                                       \
	do {                                                                \
		for (size_t i = 0; (t)->status == OK && i < (t)->rows; i++) \
			(t)->w->values[i] = (int64_t)(value);               \
		end_column((t), (id));                                      \
	} while (0)

static enum status end_table(struct table *t, enum part_section kind, struct err *e)
{
	struct part_writer *w = t->w;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, PART_SECTION_BYTES_MAX);
	buf_varint(&out, t->rows);
	buf_varint(&out, t->columns);
	buf_str(&out, buf_view(&w->header));
	buf_str(&out, buf_view(&w->data));
	enum status s = t->status != OK ? t->status : buf_status(&w->header);
	if (s == OK)
		s = buf_status(&w->data);
	if (s == OK)
		s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "encoding section %d", kind);
	return part_write_section(w, kind, buf_view(&out), e);
}

/* How many bytes a text has in common with the one before it. */
static size_t common_with_last(const struct str *strings, const uint32_t *order, size_t i)
{
	if (i == 0)
		return 0;
	struct str a = strings[order ? order[i - 1] : i - 1], b = strings[order ? order[i] : i];
	size_t n = 0;
	while (n < a.len && n < b.len && a.p[n] == b.p[n])
		n++;
	return n;
}

/* Numbers of processes that began one after the other differ at the end. */
static bool worth_sharing(const struct str *strings, const uint32_t *order, size_t count)
{
	uint64_t all = 0, shared = 0;
	for (size_t i = 0; i < count; i++) {
		all += strings[order ? order[i] : i].len;
		shared += common_with_last(strings, order, i);
	}
	return shared > all / 4 && all <= (all - shared) * PART_SHARED_GAIN_MAX;
}

static enum status write_texts(struct part_writer *w, enum part_section kind,
	const struct str *strings, const uint32_t *order, size_t count, struct err *e)
{
	struct table t = begin_table(w, count);
	bool share = kind == PART_SAMPLE_STRINGS && worth_sharing(strings, order, count);
	TABLE_COLUMN(&t, 1, i, strings[order ? order[i] : i].len);
	if (share)
		TABLE_COLUMN(&t, 3, i, common_with_last(strings, order, i));
	CLEANUP(buf_deinit) struct buf all;
	buf_init(&all, PART_SECTION_BYTES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct str s = strings[order ? order[i] : i];
		size_t from = share ? common_with_last(strings, order, i) : 0;
		buf_str(&all, str_sub(s, from, s.len - from));
	}
	struct column c;
	if (t.status == OK)
		t.status = buf_status(&all);
	if (t.status == OK)
		t.status = column_encode_bytes(&w->columns, 2, buf_view(&all), &w->data, &c);
	if (t.status == OK) {
		column_write_header(&w->header, &c);
		t.columns++;
	}
	return end_table(&t, kind, e);
}

static enum status write_strings(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	struct str names[TABLES_NAMES_MAX + 1] = { STR("") };
	for (uint32_t i = 0; i < t->name_count; i++)
		names[i + 1] = t->names[i];
	enum status s = write_texts(w, PART_LABEL_STRINGS, t->label_strings, c->label_strings.order,
		c->label_strings.count, e);
	if (s == OK)
		s = write_texts(w, PART_SAMPLE_NAMES, names, NULL, t->name_count + 1, e);
	if (s == OK)
		s = write_texts(w, PART_SAMPLE_STRINGS, t->sample_strings, c->sample_strings.order,
			c->sample_strings.count, e);
	if (s == OK)
		s = write_texts(w, PART_SYMBOL_STRINGS, t->symbol_strings, c->symbol_strings.order,
			c->symbol_strings.count, e);
	return s;
}

static enum status write_series(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	const uint32_t *order = c->series.order, *text = c->label_strings.to;
	struct table tab = begin_table(w, t->series_count);
	TABLE_COLUMN(&tab, 1, i, text[t->series[order[i]].tenant]);
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		TABLE_COLUMN(&tab, (uint8_t)(2 + k), i, text[t->series[order[i]].type[k]]);
	TABLE_COLUMN(&tab, 7, i, t->series[order[i]].delta);
	TABLE_COLUMN(&tab, 8, i, t->series[order[i]].period);
	TABLE_COLUMN(&tab, 9, i, t->series[order[i]].label_count);
	TABLE_COLUMN(&tab, 10, i, w->spans[i].first_ns);
	TABLE_COLUMN(&tab, 11, i, w->spans[i].last_ns);
	TABLE_COLUMN(&tab, 12, i, w->spans[i].rows);
	enum status s = end_table(&tab, PART_SERIES, e);
	if (s != OK)
		return s;
	size_t labels = 0;
	for (uint32_t i = 0; i < t->series_count; i++)
		labels += t->series[i].label_count;
	tab = begin_table(w, labels);
	for (int value = 0; value < 2; value++) {
		size_t n = 0;
		for (uint32_t i = 0; i < t->series_count && tab.status == OK; i++) {
			const struct tab_series *se = &t->series[order[i]];
			for (uint32_t j = 0; j < se->label_count; j++) {
				const struct profile_label *l = &t->labels[se->label_first + j];
				w->values[n++] = text[value ? l->value : l->name];
			}
		}
		end_column(&tab, (uint8_t)(1 + value));
	}
	return end_table(&tab, PART_SERIES_LABELS, e);
}

/* ---- kinds ---- */

/* The labels of the series of a kind, each pair of name and value once. */
struct kind {
	uint32_t first; /* series, in canonical numbers */
	uint32_t name_count;
	int64_t first_ns, last_ns;
};

struct kinds {
	VEC(struct kind) kinds;
	VEC(struct radix_item) names; /* key: text; index: how many values */
	VEC(uint32_t) values;
	VEC(struct radix_item) pairs, scratch; /* key: name << 32 | value */
};

static void kinds_deinit(struct kinds *k)
{
	VEC_FREE(&k->kinds);
	VEC_FREE(&k->names);
	VEC_FREE(&k->values);
	VEC_FREE(&k->pairs);
	VEC_FREE(&k->scratch);
}

/* Makes lists of values by name of the current kind's pairs. */
static bool end_kind(struct kinds *k, struct kind *kind)
{
	struct radix_item *v = k->pairs.v;
	size_t n = k->pairs.len;
	if (!VEC_RESERVE(&k->scratch, n + 1))
		return false;
	radix_sort(v, k->scratch.v, n);
	for (size_t i = 0; i < n; i++) {
		if (i && v[i].key == v[i - 1].key)
			continue;
		if (i == 0 || v[i].key >> 32 != v[i - 1].key >> 32) {
			kind->name_count++;
			if (!VEC_PUSH(&k->names, (struct radix_item){ v[i].key >> 32, 0 }))
				return false;
		}
		k->names.v[k->names.len - 1].index++;
		if (!VEC_PUSH(&k->values, (uint32_t)v[i].key))
			return false;
	}
	VEC_CLEAR(&k->pairs);
	return true;
}

static enum status gather_kinds(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct kinds *k)
{
	const uint32_t *order = c->series.order, *text = c->label_strings.to;
	struct kind kind = { 0 };
	bool any = false, good = true;
	for (uint32_t i = 0; i <= t->series_count && good; i++) {
		bool last = i == t->series_count;
		if (any && (last || w->kinds[i] != w->kinds[kind.first])) {
			good = end_kind(k, &kind) && VEC_PUSH(&k->kinds, kind);
			any = false;
		}
		if (last || w->spans[i].rows == 0 || !good)
			continue;
		if (!any)
			kind = (struct kind){ i, 0, w->spans[i].first_ns, w->spans[i].last_ns };
		any = true;
		kind.first_ns = MIN(kind.first_ns, w->spans[i].first_ns);
		kind.last_ns = MAX(kind.last_ns, w->spans[i].last_ns);
		const struct tab_series *x = &t->series[order[i]];
		for (uint32_t j = 0; j < x->label_count && good; j++) {
			const struct profile_label *l = &t->labels[x->label_first + j];
			struct radix_item pair = { (uint64_t)text[l->name] << 32 | text[l->value],
				0 };
			good = VEC_PUSH(&k->pairs, pair);
		}
	}
	return good ? OK : E_NOMEM;
}

static enum status write_kinds(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	CLEANUP(kinds_deinit) struct kinds k = { 0 };
	const uint32_t *order = c->series.order, *text = c->label_strings.to;
	enum status s = gather_kinds(w, t, c, &k);
	if (s != OK)
		return err_set(e, s, "labels of %u series", t->series_count);
	const struct kind *v = k.kinds.v;
	struct table tab = begin_table(w, k.kinds.len);
	TABLE_COLUMN(&tab, 1, i, text[t->series[order[v[i].first]].tenant]);
	for (int p = 0; p < TABLES_TYPE_PARTS; p++)
		TABLE_COLUMN(&tab, (uint8_t)(2 + p), i, text[t->series[order[v[i].first]].type[p]]);
	TABLE_COLUMN(&tab, 7, i, t->series[order[v[i].first]].delta);
	TABLE_COLUMN(&tab, 8, i, v[i].name_count);
	TABLE_COLUMN(&tab, 10, i, v[i].first_ns);
	TABLE_COLUMN(&tab, 11, i, v[i].last_ns);
	s = end_table(&tab, PART_KINDS, e);
	if (s != OK)
		return s;
	tab = begin_table(w, k.names.len);
	TABLE_COLUMN(&tab, 1, i, k.names.v[i].key);
	TABLE_COLUMN(&tab, 2, i, k.names.v[i].index);
	s = end_table(&tab, PART_KIND_NAMES, e);
	if (s != OK)
		return s;
	tab = begin_table(w, k.values.len);
	TABLE_COLUMN(&tab, 1, i, k.values.v[i]);
	return end_table(&tab, PART_KIND_VALUES, e);
}

/* ---- sets, symbols, stacks ---- */

static enum status write_sets(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	size_t width = 1 + t->name_count;
	struct table tab = begin_table(w, t->set_count);
	for (size_t k = 0; k < width; k++)
		TABLE_COLUMN(&tab, (uint8_t)(k ? 16 + k : 1), i,
			c->sample_strings.to[t->sets[c->sets.order[i] * width + k]]);
	return end_table(&tab, PART_SAMPLE_SETS, e);
}

static enum status write_symbols(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	const uint32_t *text = c->symbol_strings.to, *order = c->functions.order;
	struct table tab = begin_table(w, t->function_count);
	TABLE_COLUMN(&tab, 1, i, text[t->functions[order[i]].name]);
	TABLE_COLUMN(&tab, 2, i, text[t->functions[order[i]].system_name]);
	TABLE_COLUMN(&tab, 3, i, text[t->functions[order[i]].filename]);
	TABLE_COLUMN(&tab, 4, i, t->functions[order[i]].start_line);
	enum status s = end_table(&tab, PART_FUNCTIONS, e);
	if (s != OK)
		return s;
	order = c->mappings.order;
	tab = begin_table(w, t->mapping_count);
	TABLE_COLUMN(&tab, 1, i, text[t->mappings[order[i]].filename]);
	TABLE_COLUMN(&tab, 2, i, text[t->mappings[order[i]].build_id]);
	TABLE_COLUMN(&tab, 3, i, t->mappings[order[i]].start);
	TABLE_COLUMN(&tab, 4, i, t->mappings[order[i]].limit);
	TABLE_COLUMN(&tab, 5, i, t->mappings[order[i]].offset);
	return end_table(&tab, PART_MAPPINGS, e);
}

static enum status write_locations(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	const uint32_t *order = c->locations.order;
	struct table tab = begin_table(w, t->location_count);
	TABLE_COLUMN(&tab, 1, i, c->mappings.to[t->locations[order[i]].mapping]);
	TABLE_COLUMN(&tab, 2, i, t->locations[order[i]].address);
	TABLE_COLUMN(&tab, 3, i, t->locations[order[i]].kind);
	TABLE_COLUMN(&tab, 4, i, t->locations[order[i]].line_count);
	enum status s = end_table(&tab, PART_LOCATIONS, e);
	if (s != OK)
		return s;
	size_t lines = 0;
	for (uint32_t i = 0; i < t->location_count; i++)
		lines += t->locations[i].line_count;
	tab = begin_table(w, lines);
	for (int k = 0; k < 3; k++) {
		size_t n = 0;
		for (uint32_t i = 0; i < t->location_count && tab.status == OK; i++) {
			const struct profile_location *l = &t->locations[order[i]];
			for (uint32_t j = 0; j < l->line_count; j++) {
				const struct profile_line *x = &t->lines[l->line_first + j];
				w->values[n++] = k == 0   ? c->functions.to[x->function]
						 : k == 1 ? x->line
							  : x->column;
			}
		}
		end_column(&tab, (uint8_t)(1 + k));
	}
	return end_table(&tab, PART_LINES, e);
}

static enum status write_trie(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	uint32_t n = t->node_count;
	const uint32_t *order = c->nodes.order;
	CLEANUP(free_cleanup) uint32_t *depth = calloc(n, sizeof(*depth));
	struct table tab = begin_table(w, n);
	if (!depth)
		return err_set(e, E_NOMEM, "a trie of %u nodes", n);
	for (uint32_t i = 1; i < n; i++)
		depth[i] = depth[c->nodes.to[t->parent[order[i]]]] + 1;
	TABLE_COLUMN(&tab, 1, i, i ? depth[i - 1] + 1 - depth[i] : 0);
	TABLE_COLUMN(&tab, 2, i, i ? c->locations.to[t->node_location[order[i]]] : 0);
	return end_table(&tab, PART_TRIE, e);
}

enum status part_write_batches(
	struct part_writer *w, const struct batch_seen *batches, size_t count, struct err *e)
{
	struct table tab = begin_table(w, count);
	TABLE_COLUMN(&tab, 1, i, batches[i].id.lo);
	TABLE_COLUMN(&tab, 2, i, batches[i].id.hi);
	TABLE_COLUMN(&tab, 3, i, batches[i].arrived_ns);
	return end_table(&tab, PART_BATCHES, e);
}

/* If rows' times are coarse, all profiles of a series with the same time become one entry, with the
 * time in which at least one was being taken. */
static uint32_t put_together(struct tab_profile *v, uint32_t n, const struct part_meta *meta)
{
	uint32_t kept = 0;
	int64_t end = 0, first = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t to, at = part_row_time(meta, v[i].time_ns);
		if (__builtin_add_overflow(v[i].time_ns, v[i].duration_ns, &to))
			to = INT64_MAX;
		if (kept == 0 || v[kept - 1].series != v[i].series || first != at) {
			v[kept++] = v[i];
			first = at;
			end = to;
			continue;
		}
		struct tab_profile *last = &v[kept - 1];
		if (to > end && __builtin_add_overflow(last->duration_ns,
					to - MAX(end, v[i].time_ns), &last->duration_ns))
			last->duration_ns = INT64_MAX;
		last->samples = tab_samples_add(last->samples, v[i].samples);
		end = MAX(end, to);
	}
	return kept;
}

static enum status write_profiles(struct part_writer *w, const struct tabs *t,
	const struct canon *c, const struct part_meta *meta, struct err *e)
{
	uint32_t n = t->profile_count;
	CLEANUP(free_cleanup) struct tab_profile *v = malloc(MAX(n, 1u) * sizeof(*v));
	if (!v)
		return err_set(e, E_NOMEM, "%u profiles", n);
	for (uint32_t i = 0; i < n; i++) {
		v[i] = t->profiles[i];
		v[i].series = c->series.to[v[i].series];
	}
	n = tab_profiles_settle(v, n);
	if (meta->resolution_ns >= COARSE_NS)
		n = put_together(v, n, meta);
	if (n == 0)
		return OK;
	struct table tab = begin_table(w, n);
	TABLE_COLUMN(&tab, 1, i, v[i].series);
	TABLE_COLUMN(&tab, 2, i, v[i].time_ns);
	TABLE_COLUMN(&tab, 3, i, v[i].duration_ns);
	TABLE_COLUMN(&tab, 4, i, v[i].samples);
	return end_table(&tab, PART_PROFILES, e);
}

/* Two tables: how many items each key has, and the items. */
static enum status write_lists(struct part_writer *w, const struct part_lists *l, size_t keys,
	enum part_section counts, struct err *e)
{
	if (!l->found)
		return OK;
	struct table tab = begin_table(w, keys);
	TABLE_COLUMN(&tab, 1, i, l->counts[i]);
	enum status s = end_table(&tab, counts, e);
	if (s != OK)
		return s;
	tab = begin_table(w, l->item_count);
	TABLE_COLUMN(&tab, 1, i, l->items[i]);
	return end_table(&tab, counts + 1, e);
}

static enum status write_index(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	CLEANUP(part_lists_deinit) struct part_lists sets = { 0 };
	CLEANUP(part_lists_deinit) struct part_lists locations = { 0 };
	uint32_t n = t->node_count;
	CLEANUP(free_cleanup) uint32_t *parent = calloc(n, sizeof(*parent));
	CLEANUP(free_cleanup) uint32_t *location = calloc(n, sizeof(*location));
	if (!parent || !location)
		return err_set(e, E_NOMEM, "the index of a part");
	for (uint32_t i = 1; i < n; i++) {
		parent[i] = c->nodes.to[t->parent[c->nodes.order[i]]];
		location[i] = c->locations.to[t->node_location[c->nodes.order[i]]];
	}
	struct part_trie trie = { parent, location, n, t->location_count };
	enum status s = part_index_sets(&w->index, t->series_count, &sets);
	if (s == OK)
		s = part_index_locations(
			&w->index, &trie, INDEX_PAIRS_MIN + w->rows / 8, &locations);
	if (s != OK)
		return err_set(e, s, "the index of a part");
	s = write_lists(w, &sets, t->series_count, PART_SERIES_SET_COUNTS, e);
	return s == OK ? write_lists(w, &locations, t->location_count, PART_LOCATION_COUNTS, e) : s;
}

enum status part_write_tables(struct part_writer *w, const struct tabs *t, const struct canon *c,
	const struct part_meta *meta, struct err *e)
{
	enum status s = write_strings(w, t, c, e);
	if (s == OK)
		s = write_profiles(w, t, c, meta, e);
	if (s == OK)
		s = write_series(w, t, c, e);
	if (s == OK)
		s = write_kinds(w, t, c, e);
	if (s == OK)
		s = write_sets(w, t, c, e);
	if (s == OK)
		s = write_symbols(w, t, c, e);
	if (s == OK)
		s = write_locations(w, t, c, e);
	if (s == OK)
		s = write_trie(w, t, c, e);
	return s == OK ? write_index(w, t, c, e) : s;
}
