/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec: a typed growing array.
 *
 * Layer 0. VEC(T) declares one; all zero is empty; the memory is malloc's.
 *
 *	VEC(uint32_t) ids = { 0 };
 *	if (!VEC_PUSH(&ids, 7))
 *		return E_NOMEM;
 */
#pragma once

#include "base/status.h"

#include <stdlib.h>

#define VEC(T)              \
	struct {            \
		T *v;       \
		size_t len; \
		size_t cap; \
	}

/* Room for `need` elements in all; false when there is no memory. The array stays as it was. */
NODISCARD bool vec_grow(void *v, size_t *cap, size_t need, size_t elem_size);

#define VEC_RESERVE(vec, need) \
	((need) <= (vec)->cap || vec_grow(&(vec)->v, &(vec)->cap, (need), sizeof(*(vec)->v)))
#define VEC_PUSH(vec, ...) \
	(VEC_RESERVE(vec, (vec)->len + 1) && ((vec)->v[(vec)->len++] = (__VA_ARGS__), true))
#define VEC_CLEAR(vec) ((void)((vec)->len = 0))
#define VEC_FREE(vec)                        \
	do {                                 \
		free((vec)->v);              \
		(vec)->v = NULL;             \
		(vec)->len = (vec)->cap = 0; \
	} while (0)
