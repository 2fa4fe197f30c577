/* SPDX-License-Identifier: Apache-2.0 */
#include "store/merge/merge_cursor.h"

#include <stdlib.h>

struct mapping {
	struct tables *t;
	const struct tabs *from;
	uint32_t *strings; /* of one section at a time */
	uint32_t *functions;
	uint32_t *mappings;
	uint32_t *locations;
};

static void mapping_deinit(struct mapping *m)
{
	free(m->strings);
	free(m->functions);
	free(m->mappings);
	free(m->locations);
}

static uint32_t *array(size_t n)
{
	return calloc(MAX(n, (size_t)1), sizeof(uint32_t));
}

static enum status map_strings(struct mapping *m, const struct str *v, uint32_t n)
{
	free(m->strings);
	m->strings = array(n);
	enum status s = m->strings ? OK : E_NOMEM;
	for (uint32_t i = 0; i < n && s == OK; i++)
		s = tables_add_string(m->t, v[i], &m->strings[i]);
	return s;
}

static enum status add_series(struct mapping *m, uint32_t *out)
{
	const struct tabs *f = m->from;
	enum status s = map_strings(m, f->label_strings, f->label_string_count);
	for (uint32_t i = 0; i < f->series_count && s == OK; i++) {
		const struct tab_series *x = &f->series[i];
		struct profile_label labels[2 * PROFILE_LABELS_MAX];
		if (x->label_count > ARRAY_COUNT(labels))
			return E_CORRUPT;
		struct tab_series key = {
			.tenant = m->strings[x->tenant],
			.delta = x->delta,
			.period = x->period,
		};
		for (int k = 0; k < TABLES_TYPE_PARTS; k++)
			key.type[k] = m->strings[x->type[k]];
		for (uint32_t k = 0; k < x->label_count; k++) {
			const struct profile_label *l = &f->labels[x->label_first + k];
			labels[k].name = m->strings[l->name];
			labels[k].value = m->strings[l->value];
		}
		s = tables_add_series(m->t, &key, labels, x->label_count, &out[i]);
	}
	return s;
}

/* The names of the merged part are a superset of the source's. */
static enum status add_sets(struct mapping *m, uint32_t *out)
{
	const struct tabs *f = m->from;
	uint32_t to[TABLES_NAMES_MAX] = { 0 };
	for (uint32_t k = 0; k < f->name_count; k++)
		for (uint32_t j = 0; j < m->t->name_count; j++)
			if (str_eq(f->names[k], m->t->names[j]))
				to[k] = j;
	enum status s = map_strings(m, f->sample_strings, f->sample_string_count);
	size_t width = 1 + f->name_count;
	for (uint32_t i = 0; i < f->set_count && s == OK; i++) {
		uint32_t values[1 + TABLES_NAMES_MAX] = { m->strings[f->sets[i * width]] };
		for (uint32_t k = 0; k < f->name_count; k++)
			values[1 + to[k]] = m->strings[f->sets[i * width + 1 + k]];
		s = tables_add_set(m->t, values, &out[i]);
	}
	return s;
}

static enum status add_symbols(struct mapping *m)
{
	const struct tabs *f = m->from;
	m->functions = array(f->function_count);
	m->mappings = array(f->mapping_count);
	enum status s = map_strings(m, f->symbol_strings, f->symbol_string_count);
	if (!m->functions || !m->mappings)
		return E_NOMEM;
	for (uint32_t i = 0; i < f->function_count && s == OK; i++) {
		struct profile_function x = f->functions[i];
		x.name = m->strings[x.name];
		x.system_name = m->strings[x.system_name];
		x.filename = m->strings[x.filename];
		s = tables_add_function(m->t, &x, &m->functions[i]);
	}
	for (uint32_t i = 0; i < f->mapping_count && s == OK; i++) {
		struct profile_mapping x = f->mappings[i];
		x.filename = m->strings[x.filename];
		x.build_id = m->strings[x.build_id];
		s = tables_add_mapping(m->t, &x, &m->mappings[i]);
	}
	return s;
}

static enum status add_locations(struct mapping *m)
{
	const struct tabs *f = m->from;
	m->locations = array(f->location_count);
	if (!m->locations)
		return E_NOMEM;
	for (uint32_t i = 0; i < f->location_count; i++) {
		struct profile_location x = f->locations[i];
		struct profile_line lines[PROFILE_LINES_MAX];
		x.mapping = m->mappings[x.mapping];
		assert(x.line_count <= PROFILE_LINES_MAX);
		for (uint32_t k = 0; k < x.line_count; k++) {
			lines[k] = f->lines[x.line_first + k];
			lines[k].function = m->functions[lines[k].function];
		}
		enum status s =
			tables_add_location(m->t, &x, lines, x.line_count, &m->locations[i]);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status add_nodes(struct mapping *m, struct merge_cursor *c)
{
	const struct tabs *f = m->from;
	for (uint32_t i = 1; i < f->node_count; i++) {
		if (f->node_location[i] >= f->location_count)
			return E_CORRUPT;
		c->nodes[i] = m->locations[f->node_location[i]];
		c->depths[i] = (uint16_t)(c->depths[f->parent[i]] + 1);
	}
	return OK;
}

static enum status add_profiles(struct mapping *m, const uint32_t *series)
{
	const struct tabs *f = m->from;
	enum status s = OK;
	for (uint32_t i = 0; i < f->profile_count && s == OK; i++) {
		struct tab_profile x = f->profiles[i];
		x.series = series[x.series];
		s = tables_add_profile(m->t, &x);
	}
	return s;
}

enum status merge_tables_add(
	struct tables *t, const struct tabs *from, struct merge_cursor *c, struct err *e)
{
	CLEANUP(mapping_deinit) struct mapping m = { .t = t, .from = from };
	c->series = array(from->series_count);
	c->nodes = array(from->node_count);
	c->depths = calloc(MAX(from->node_count, 1u), sizeof(*c->depths));
	c->sets = array(from->set_count);
	enum status s = c->series && c->nodes && c->depths && c->sets ? OK : E_NOMEM;
	if (s == OK)
		s = add_series(&m, c->series);
	if (s == OK)
		s = add_profiles(&m, c->series);
	if (s == OK)
		s = add_sets(&m, c->sets);
	if (s == OK)
		s = add_symbols(&m);
	if (s == OK)
		s = add_locations(&m);
	if (s == OK)
		s = add_nodes(&m, c);
	return s == OK ? OK : err_set(e, s, "merging the tables of %s", part_path(c->part));
}
