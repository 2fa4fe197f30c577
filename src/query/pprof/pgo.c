/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts stacks to their innermost locations and joins the equal ones, which are most, into one
 * sample. A compiler needs only the name of the called function (the innermost frame): its location
 * gets a copy without line and address, so that samples anywhere in it count for the same call.
 */
#include "query/pprof/pgo.h"
#include "query/plan/plan.h"
#include "query/pprof/pprof_writer.h"

struct cut {
	const uint32_t *path;
	uint32_t count;
};

static bool cut_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_cuts *c = ctx;
	const struct query_cut *v = &c->v.v[value];
	const struct cut *k = key;
	return v->count == k->count &&
	       memcmp(&c->paths.v[v->first], k->path, k->count * sizeof(*k->path)) == 0;
}

enum status query_cuts_add(
	struct query_cuts *c, const uint32_t *path, uint32_t count, int64_t value, struct err *e)
{
	const struct cut key = { path, count };
	uint64_t hash = hash64(path, count * sizeof(*path));
	uint32_t at = map_find(&c->index, hash, cut_equal, c, &key);
	if (at != MAP_NONE) {
		c->v.v[at].value = query_add(c->v.v[at].value, value);
		return OK;
	}
	struct query_cut new = { (uint32_t)c->paths.len, count, value };
	bool good = VEC_PUSH(&c->v, new);
	for (uint32_t i = 0; good && i < count; i++)
		good = VEC_PUSH(&c->paths, path[i]);
	good = good && map_insert(&c->index, hash, (uint32_t)c->v.len - 1);
	return good ? OK : err_set(e, E_NOMEM, "%zu stacks", c->v.len);
}

enum status query_cuts_write(
	const struct query_cuts *c, struct query_pprof_writer *w, struct err *e)
{
	enum status s = OK;
	for (size_t i = 0; s == OK && i < c->v.len; i++) {
		const struct query_cut *v = &c->v.v[i];
		s = query_pprof_sample(w, &c->paths.v[v->first], v->count, &v->value, 0, e);
	}
	return s;
}

void query_cuts_deinit(struct query_cuts *c)
{
	VEC_FREE(&c->v);
	VEC_FREE(&c->paths);
	map_deinit(&c->index);
}

enum status query_callee_copy(struct profile *p, uint32_t location, uint32_t *out, struct err *e)
{
	struct profile_line lines[PROFILE_LINES_MAX];
	struct profile_location l = p->locations.v[location];
	uint32_t count = MIN(l.line_count, (uint32_t)PROFILE_LINES_MAX);
	*out = location;
	if (count == 0) /* only an address is known */
		return OK;
	memcpy(lines, &p->lines.v[l.line_first], count * sizeof(*lines));
	lines[0].line = 0;
	l.address = 0;
	enum status s = profile_add_location(p, &l, lines, count, out);
	return s == OK ? OK : err_set(e, s, "a profile's locations");
}
