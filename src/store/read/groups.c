/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/groups.h"

#include "base/reader.h"

#include <stdlib.h>

#define KEYS_BYTES_MAX ((size_t)256 << 20)
#define KEY_BYTES_MAX ((size_t)1 << 20)

enum status groups_init(struct groups *g, const struct str *names, uint32_t name_count,
	struct budget *b, struct err *e)
{
	*g = (struct groups){ .names = names, .name_count = name_count, .budget = b };
	if (name_count > GROUP_LABELS_MAX)
		return err_set(e, E_LIMIT, "grouping by %u labels; %d are allowed", name_count,
			GROUP_LABELS_MAX);
	enum status s = strtab_init(&g->keys, MIN((uint64_t)KEYS_BYTES_MAX, b->limit));
	return s == OK ? OK : err_set(e, s, "groups");
}

static void forget_source(struct groups *g)
{
	free(g->of_series);
	g->of_series = NULL;
	g->source = NULL;
	VEC_CLEAR(&g->pairs);
	map_clear(&g->pair_index);
}

void groups_deinit(struct groups *g)
{
	forget_source(g);
	VEC_FREE(&g->pairs);
	map_deinit(&g->pair_index);
	strtab_deinit(&g->keys);
}

/* The first key of all is "", which no group has: each begins with the number of labels. */
uint32_t groups_count(const struct groups *g)
{
	return g->keys.len - 1;
}

struct str groups_value(const struct groups *g, uint32_t group, uint32_t i)
{
	struct str key = strtab_get(&g->keys, group + 1);
	struct reader r = reader_over(key.p, key.len);
	(void)reader_u8(&r);
	struct str value = STR("");
	for (uint32_t k = 0; k <= i; k++)
		value = reader_str(&r, reader_varint(&r));
	assert(!r.failed);
	return value;
}

enum status groups_labels(const struct groups *g, uint32_t group, struct profile *p, uint32_t *out)
{
	struct profile_label labels[GROUP_LABELS_MAX];
	enum status s = OK;
	for (uint32_t i = 0; i < g->name_count && s == OK; i++) {
		s = profile_add_string(p, g->names[i], &labels[i].name);
		if (s == OK)
			s = profile_add_string(p, groups_value(g, group, i), &labels[i].value);
	}
	return s == OK ? profile_add_labels(p, labels, g->name_count, out) : s;
}

enum status groups_source(struct groups *g, struct store_view *v, struct source *s, struct err *e)
{
	forget_source(g);
	g->source = s;
	g->by_set = false;
	for (uint32_t i = 0; i < g->name_count; i++)
		g->by_set |= tabs_name_find(&s->tabs, g->names[i]) >= 0;
	if (g->by_set)
		return source_load(v, s, PART_LOAD_SETS, g->budget, e);
	g->of_series = calloc(MAX(s->tabs.series_count, 1u), sizeof(*g->of_series));
	return g->of_series ? OK : err_set(e, E_NOMEM, "groups");
}

unsigned groups_columns(const struct groups *g)
{
	return 1u << ROW_SERIES | (g->by_set ? 1u << ROW_SET : 0);
}

static enum status make_group(
	struct groups *g, uint32_t series, uint32_t set, uint32_t *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf key;
	buf_init(&key, KEY_BYTES_MAX);
	buf_u8(&key, (uint8_t)g->name_count);
	for (uint32_t i = 0; i < g->name_count; i++) {
		struct str value = source_label(g->source, series, set, g->names[i]);
		buf_varint(&key, value.len);
		buf_str(&key, value);
	}
	uint32_t before = g->keys.len, id;
	enum status s = buf_status(&key);
	if (s == OK)
		s = strtab_intern(&g->keys, buf_view(&key), &id);
	if (s == OK && g->keys.len != before)
		s = budget_take(g->budget, key.len + 64, e);
	else if (s != OK)
		err_set(e, s, "too many groups");
	if (s == OK)
		*out = id - 1;
	return s;
}

static bool pair_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct groups *g = ctx;
	const struct group_pair *a = &g->pairs.v[value], *b = key;
	return a->series == b->series && a->set == b->set;
}

enum status groups_find(
	struct groups *g, uint32_t series, uint32_t set, uint32_t *out, struct err *e)
{
	if (!g->by_set) {
		uint32_t *known = &g->of_series[series], made;
		if (*known == 0) {
			enum status s = make_group(g, series, 0, &made, e);
			if (s != OK)
				return s;
			*known = made + 1;
		}
		*out = *known - 1;
		return OK;
	}
	struct group_pair key = { series, set, 0 };
	if (g->last < g->pairs.len && pair_equal(g, g->last, &key)) {
		*out = g->pairs.v[g->last].group;
		return OK;
	}
	uint64_t h = hash_u64((uint64_t)series << 32 | set);
	uint32_t at = map_find(&g->pair_index, h, pair_equal, g, &key);
	if (at == MAP_NONE) {
		enum status s = make_group(g, series, set, &key.group, e);
		if (s != OK)
			return s;
		at = (uint32_t)g->pairs.len;
		if (!VEC_PUSH(&g->pairs, key) || !map_insert(&g->pair_index, h, at))
			return err_set(e, E_NOMEM, "groups");
	}
	g->last = at;
	*out = g->pairs.v[at].group;
	return OK;
}
