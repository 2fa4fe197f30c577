/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All series and sets of a source are taken, but only the locations that are in a stack: their new
 * numbers are kept by node until the tries are merged.
 */
#include "store/merge/merge_cursor.h"
#include "store/merge/take.h"

#include <stdlib.h>

static uint32_t *array(size_t n)
{
	return calloc(MAX(n, (size_t)1), sizeof(uint32_t));
}

static enum status add_profiles(struct take *t, const uint32_t *series)
{
	enum status s = OK;
	for (uint32_t i = 0; i < t->from->profile_count && s == OK; i++) {
		struct tab_profile x = t->from->profiles[i];
		x.series = series[x.series];
		s = tables_add_profile(t->to, &x);
	}
	return s;
}

static enum status add_nodes(struct take *t, struct merge_cursor *c)
{
	const struct tabs *f = t->from;
	enum status s = OK;
	for (uint32_t i = 1; i < f->node_count && s == OK; i++) {
		s = take_location(t, f->node_location[i], &c->nodes[i]);
		c->depths[i] = (uint16_t)(c->depths[f->parent[i]] + 1);
	}
	return s;
}

enum status merge_tables_add(
	struct tables *t, const struct tabs *from, struct merge_cursor *c, struct err *e)
{
	CLEANUP(take_deinit) struct take m = { 0 };
	enum status s = take_init(&m, t, from);
	c->series = array(from->series_count);
	c->nodes = array(from->node_count);
	c->depths = calloc(MAX(from->node_count, 1u), sizeof(*c->depths));
	c->sets = array(from->set_count);
	if (!c->series || !c->nodes || !c->depths || !c->sets)
		s = E_NOMEM;
	for (uint32_t i = 0; i < from->series_count && s == OK; i++)
		s = take_series(&m, i, &c->series[i]);
	for (uint32_t i = 0; i < from->set_count && s == OK; i++)
		s = take_set(&m, i, &c->sets[i]);
	if (s == OK)
		s = add_profiles(&m, c->series);
	if (s == OK)
		s = add_nodes(&m, c);
	return s == OK ? OK : err_set(e, s, "merging the tables of %s", part_path(c->part));
}
