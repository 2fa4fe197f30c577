/* SPDX-License-Identifier: Apache-2.0 */
/* META in memory. */
#include "store/part/part_format.h"

#include <stdlib.h>

void part_meta_deinit(struct part_meta *m)
{
	VEC_FREE(&m->covers);
	VEC_FREE(&m->replaces);
	VEC_FREE(&m->imports);
}

enum status part_meta_inherit(struct part_meta *to, const struct part_meta *from)
{
	enum status s = OK;
	if (to->imports.len + from->imports.len > PART_IMPORTS_MAX)
		return E_LIMIT;
	for (size_t i = 0; s == OK && i < from->imports.len; i++)
		s = VEC_PUSH(&to->imports, from->imports.v[i]) ? OK : E_NOMEM;
	return s;
}
