/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables say which locations there are, so that no row is read. Sources are read one after the
 * other, and each is released before the next. If there is a part of a newer firn, it fails: that
 * part's locations would be missing, and their names would be thrown away.
 */
#include "store/read/view.h"

#include <stdlib.h>

static enum status tell_source(
	const struct tabs *t, const struct profile_locations *to, void *ctx, struct err *e)
{
	CLEANUP(free_cleanup) uint32_t *numbers = calloc(t->mapping_count + 1, sizeof(*numbers));
	if (!numbers)
		return err_set(e, E_NOMEM, "%u mappings", t->mapping_count);
	for (uint32_t i = 0; i < t->mapping_count; i++) {
		const struct profile_mapping *m = &t->mappings[i];
		struct str build_id = t->symbol_strings[m->build_id];
		numbers[i] = PROFILE_LOCATIONS_NONE;
		if (i && build_id.len)
			numbers[i] = to->mapping(ctx, build_id, t->symbol_strings[m->filename], m);
	}
	for (uint32_t i = 1; i < t->location_count; i++) {
		const struct profile_location *l = &t->locations[i];
		if (l->line_count == 0 && numbers[l->mapping] != PROFILE_LOCATIONS_NONE)
			to->location(ctx, numbers[l->mapping], l->address);
	}
	return OK;
}

static enum status tell_all(
	struct store_view *v, const struct profile_locations *to, void *ctx, struct err *e)
{
	const struct samples_query all = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct budget b = query_budget(v, &all);
	enum status s = OK;
	for (size_t i = 0; i < v->source_count && s == OK; i++) {
		struct source *src = &v->sources[i];
		s = source_load(v, src, PART_LOAD_SYMBOLS, &b, e);
		if (s == OK)
			s = tell_source(&src->tabs, to, ctx, e);
		source_rest(v, src);
	}
	return s;
}

enum status store_locations(
	struct store *store, const struct profile_locations *to, void *ctx, struct err *e)
{
	struct store_view *v;
	struct err local = { 0 };
	e = e ? e : &local;
	if (store->newer.len)
		return err_set(e, E_UNSUPPORTED,
			"%zu parts of a newer firn may have other locations", store->newer.len);
	enum status s = store_view_open(store, STR(""), &v, e);
	if (s != OK)
		return s;
	do {
		s = tell_all(v, to, ctx, e);
	} while (view_heal(v, s, e));
	store_view_close(v);
	return s;
}
