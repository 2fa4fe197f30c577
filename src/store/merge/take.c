/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols are translated by profile/translate.h; strings of labels and of sample labels are tables
 * of their own in a part, each with its own numbers.
 */
#include "store/merge/take.h"

#include <stdlib.h>

static uint32_t *unset_array(size_t n)
{
	uint32_t *v = malloc(MAX(n, (size_t)1) * sizeof(*v));
	if (v)
		memset(v, 0xFF, n * sizeof(*v));
	return v;
}

static int find_name(const struct tables *t, struct str name)
{
	for (uint32_t i = 0; i < t->name_count; i++)
		if (str_eq(t->names[i], name))
			return (int)i;
	return -1;
}

enum status take_init(struct take *t, struct tables *to, const struct tabs *from)
{
	const struct translate_from symbols = tabs_symbols(from);
	*t = (struct take){ .to = to, .from = from };
	t->label_strings = unset_array(from->label_string_count);
	t->sample_strings = unset_array(from->sample_string_count);
	t->memory = unset_array(translate_words(&symbols, true));
	if (!t->label_strings || !t->sample_strings || !t->memory)
		return E_NOMEM;
	translate_init(&t->symbols, &symbols, &translate_to_tables, to, true, t->memory);
	for (uint32_t k = 0; k < from->name_count; k++)
		t->names[k] = find_name(to, from->names[k]);
	return OK;
}

void take_deinit(struct take *t)
{
	free(t->label_strings);
	free(t->sample_strings);
	free(t->memory);
}

static enum status take_string(
	struct take *t, const struct str *texts, uint32_t *numbers, uint32_t *id)
{
	uint32_t *number = &numbers[*id];
	if (*number == TRANSLATE_UNSET) {
		uint32_t out;
		enum status s = tables_add_string(t->to, texts[*id], &out);
		if (s != OK)
			return s;
		*number = out;
	}
	*id = *number;
	return OK;
}

static enum status take_label(struct take *t, uint32_t *id)
{
	return take_string(t, t->from->label_strings, t->label_strings, id);
}

enum status take_series(struct take *t, uint32_t id, uint32_t *out)
{
	struct tab_series key = t->from->series[id];
	struct profile_label labels[2 * PROFILE_LABELS_MAX];
	if (key.label_count > ARRAY_COUNT(labels))
		return E_CORRUPT;
	enum status s = take_label(t, &key.tenant);
	for (int k = 0; k < TABLES_TYPE_PARTS && s == OK; k++)
		s = take_label(t, &key.type[k]);
	for (uint32_t k = 0; k < key.label_count && s == OK; k++) {
		labels[k] = t->from->labels[key.label_first + k];
		s = take_label(t, &labels[k].name);
		if (s == OK)
			s = take_label(t, &labels[k].value);
	}
	return s == OK ? tables_add_series(t->to, &key, labels, key.label_count, out) : s;
}

enum status take_set(struct take *t, uint32_t id, uint32_t *out)
{
	const struct tabs *f = t->from;
	const uint32_t *set = &f->sets[(size_t)id * (1 + f->name_count)];
	uint32_t values[1 + TABLES_NAMES_MAX] = { set[0] };
	enum status s = take_string(t, f->sample_strings, t->sample_strings, &values[0]);
	for (uint32_t k = 0; k < f->name_count && s == OK; k++) {
		uint32_t value = set[1 + k];
		if (t->names[k] < 0 || value == 0)
			continue;
		s = take_string(t, f->sample_strings, t->sample_strings, &value);
		values[1 + t->names[k]] = value;
	}
	return s == OK ? tables_add_set(t->to, values, out) : s;
}

enum status take_location(struct take *t, uint32_t id, uint32_t *out)
{
	return id < t->from->location_count ? translate_location(&t->symbols, id, out) : E_CORRUPT;
}

/* ---- what is decided over all sources ---- */

static bool is_in(const struct str *v, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i], name))
			return true;
	return false;
}

enum status take_names_add(
	struct take_names *n, const struct tabs *t, const struct str *drop, size_t drop_count)
{
	for (uint32_t k = 0; k < t->name_count; k++) {
		uint32_t at = 0;
		if (is_in(n->v, n->count, t->names[k]) || is_in(drop, drop_count, t->names[k]))
			continue;
		if (n->count == TABLES_NAMES_MAX)
			return E_LIMIT;
		while (at < n->count && str_cmp(n->v[at], t->names[k]) < 0)
			at++;
		memmove(&n->v[at + 1], &n->v[at], (n->count++ - at) * sizeof(*n->v));
		n->v[at] = t->names[k];
	}
	return OK;
}

enum status take_rounding_init(struct take_rounding *r, const struct tabs *t, const struct canon *c)
{
	r->delta = calloc(MAX(t->series_count, 1u), 1);
	r->keep_time = calloc(MAX(t->set_count, 1u), 1);
	if (!r->delta || !r->keep_time)
		return E_NOMEM;
	for (uint32_t i = 0; i < t->series_count; i++)
		r->delta[c->series.to[i]] = t->series[i].delta != 0;
	size_t width = 1 + t->name_count;
	for (uint32_t k = 0; k < t->name_count; k++) {
		if (!str_eq(t->names[k], STR("trace_id")) && !str_eq(t->names[k], STR("span_id")))
			continue;
		for (uint32_t i = 0; i < t->set_count; i++)
			r->keep_time[c->sets.to[i]] |= t->sets[i * width + 1 + k] != 0;
	}
	return OK;
}

void take_rounding_deinit(struct take_rounding *r)
{
	free(r->delta);
	free(r->keep_time);
}
