/* SPDX-License-Identifier: Apache-2.0 */
/* META in memory. Origins that touch or overlap are one: so there are few of them, however often
 * parts are merged. */
#include "store/part/part_format.h"

#include <stdlib.h>

void part_meta_deinit(struct part_meta *m)
{
	VEC_FREE(&m->covers);
	VEC_FREE(&m->replaces);
	VEC_FREE(&m->imports);
	VEC_FREE(&m->origins);
}

static bool touch(const struct part_origin *a, const struct part_origin *b)
{
	return hash128_eq(a->store_id, b->store_id) &&
	       (a->first_ns <= b->last_ns || a->first_ns - 1 == b->last_ns) &&
	       (b->first_ns <= a->last_ns || b->first_ns - 1 == a->last_ns);
}

/* Times that meet, or follow each other, become one entry. */
enum status part_meta_add_origin(struct part_meta *m, struct part_origin o)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->origins.len; i++) {
		struct part_origin x = m->origins.v[i];
		if (touch(&x, &o)) {
			o.first_ns = MIN(x.first_ns, o.first_ns);
			o.last_ns = MAX(x.last_ns, o.last_ns);
		} else {
			m->origins.v[kept++] = x;
		}
	}
	m->origins.len = kept;
	if (kept >= PART_ORIGINS_MAX)
		return E_LIMIT;
	return VEC_PUSH(&m->origins, o) ? OK : E_NOMEM;
}

enum status part_meta_inherit(struct part_meta *to, const struct part_meta *from)
{
	enum status s = OK;
	if (to->imports.len + from->imports.len > PART_IMPORTS_MAX)
		return E_LIMIT;
	for (size_t i = 0; s == OK && i < from->imports.len; i++)
		s = VEC_PUSH(&to->imports, from->imports.v[i]) ? OK : E_NOMEM;
	for (size_t i = 0; s == OK && i < from->origins.len; i++)
		s = part_meta_add_origin(to, from->origins.v[i]);
	return s;
}
