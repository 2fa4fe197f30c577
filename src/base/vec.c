/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/pages.h"

#include <string.h>

#define VEC_CAP_MIN 8

bool vec_grow(void *v, size_t *cap, size_t need, size_t elem_size)
{
	size_t want = *cap < VEC_CAP_MIN ? VEC_CAP_MIN : *cap;
	while (want < need)
		if (__builtin_add_overflow(want, want / 2 + 1, &want))
			return false;
	size_t bytes;
	if (__builtin_mul_overflow(want, elem_size, &bytes))
		return false;
	void *old;
	memcpy(&old, v, sizeof(old));
	void *grown = realloc(old, bytes);
	if (!grown)
		return false;
	pages_prefer_large(grown, bytes);
	memcpy(v, &grown, sizeof(grown));
	*cap = want;
	return true;
}
