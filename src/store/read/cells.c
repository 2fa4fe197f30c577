/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells are sorted byte by byte from the highest; each cell is swapped to its place, so that no
 * second array is needed. Bytes that are equal in all cells are skipped; a few cells are sorted by
 * insertion.
 */
#include "store/read/cells.h"

#include <stdlib.h>

#define CELLS_MIN 4096
#define FEW 32
#define KEY_SHIFT_MAX 56

void cells_init(struct cells *c, bool is_gauge, struct budget *b)
{
	*c = (struct cells){ .is_gauge = is_gauge, .budget = b };
}

void cells_deinit(struct cells *c)
{
	if (c->cap)
		budget_give(c->budget, c->cap * sizeof(*c->v));
	free(c->v);
	*c = (struct cells){ 0 };
}

static uint64_t key_of(const struct samples_cell *x)
{
	return (uint64_t)x->node << 32 | x->group;
}

static void insertion_sort(struct samples_cell *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct samples_cell x = v[i];
		size_t j = i;
		for (; j && key_of(&v[j - 1]) > key_of(&x); j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

/* Puts where each byte's cells begin into at[]; false: all cells have the same byte. */
static bool count_bytes(
	const struct samples_cell *v, size_t n, unsigned shift, size_t at[256], size_t end[256])
{
	size_t count[256] = { 0 }, sum = 0;
	for (size_t i = 0; i < n; i++)
		count[key_of(&v[i]) >> shift & 0xFF]++;
	if (count[key_of(&v[0]) >> shift & 0xFF] == n)
		return false;
	for (unsigned b = 0; b < 256; b++) {
		at[b] = sum;
		end[b] = sum += count[b];
	}
	return true;
}

/* Calls itself once for each byte of the key at the most. */
static void sort(struct samples_cell *v, size_t n, unsigned shift)
{
	size_t at[256], end[256];
	for (;; shift -= 8) {
		if (n <= FEW) {
			insertion_sort(v, n);
			return;
		}
		if (count_bytes(v, n, shift, at, end))
			break;
		if (shift == 0)
			return;
	}
	for (unsigned b = 0; b < 256; b++)
		while (at[b] < end[b]) {
			struct samples_cell x = v[at[b]];
			unsigned to = (unsigned)(key_of(&x) >> shift & 0xFF);
			while (to != b) {
				struct samples_cell other = v[at[to]];
				v[at[to]++] = x;
				x = other;
				to = (unsigned)(key_of(&x) >> shift & 0xFF);
			}
			v[at[b]++] = x;
		}
	for (unsigned b = 0; b < 256 && shift; b++) {
		size_t first = b ? end[b - 1] : 0;
		if (end[b] - first > 1)
			sort(v + first, end[b] - first, shift - 8);
	}
}

static bool ascends(const struct samples_cell *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (key_of(&v[i - 1]) >= key_of(&v[i]))
			return false;
	return true;
}

/* Joins cells with the same key; returns how many remain. */
static size_t settle(const struct cells *c, struct samples_cell *v, size_t n)
{
	size_t to = 0;
	if (n < 2 || ascends(v, n))
		return n;
	sort(v, n, KEY_SHIFT_MAX);
	for (size_t i = 1; i < n; i++)
		if (key_of(&v[i]) == key_of(&v[to]))
			v[to].value = cells_plus(c, v[to].value, v[i].value);
		else
			v[++to] = v[i];
	return to + 1;
}

static void settle_own(struct cells *c)
{
	if (c->len > c->begin)
		c->len = c->begin + settle(c, c->v + c->begin, c->len - c->begin);
}

void cells_settle(struct cells *c)
{
	settle_own(c);
	size_t cap = MAX(c->len + c->len / 16, (size_t)CELLS_MIN);
	if (cap >= c->cap)
		return;
	struct samples_cell *less = realloc(c->v, cap * sizeof(*less));
	if (!less)
		return;
	budget_give(c->budget, (c->cap - cap) * sizeof(*less));
	c->v = less;
	c->cap = cap;
}

static void settle_others(struct cells *c)
{
	size_t own = c->len - c->begin, n = settle(c, c->v, c->begin);
	if (n == c->begin)
		return;
	memmove(c->v + n, c->v + c->begin, own * sizeof(*c->v));
	c->begin = n;
	c->len = n + own;
}

void cells_set_aside(struct cells *c)
{
	c->begin = c->len;
}

void cells_finish(struct cells *c)
{
	c->begin = 0;
	settle_own(c);
}

struct samples_cell *cells_steal(struct cells *c, size_t *out_len)
{
	struct samples_cell *v = c->v;
	struct samples_cell *less = realloc(v, MAX(c->len, (size_t)1) * sizeof(*v));
	*out_len = c->len;
	budget_give(c->budget, c->cap * sizeof(*v));
	*c = (struct cells){ .is_gauge = c->is_gauge, .budget = c->budget };
	return less ? less : v;
}

static enum status resize(struct cells *c, size_t cap, struct err *e)
{
	enum status s = budget_take(c->budget, (cap - c->cap) * sizeof(*c->v), e);
	if (s != OK)
		return s;
	struct samples_cell *v = realloc(c->v, cap * sizeof(*v));
	if (!v) {
		budget_give(c->budget, (cap - c->cap) * sizeof(*v));
		return err_set(e, E_NOMEM, "%zu merged samples", cap);
	}
	c->v = v;
	c->cap = cap;
	return OK;
}

/* Doubles the array, or takes the memory that is left. If none is left, the cells are sorted and
 * summed up each time the array is full. */
enum status cells_make_room(struct cells *c, struct err *e)
{
	struct err ignored = { 0 };
	settle_own(c);
	if (c->len > c->cap / 4 * 3)
		settle_others(c);
	if (c->len < c->cap / 4 * 3)
		return OK;
	size_t cap = MAX(2 * c->cap, (size_t)CELLS_MIN);
	if (resize(c, cap, &ignored) == OK)
		return OK;
	enum status s = resize(c, cap - cap / 16 * 7, e);
	return s == OK || c->len < c->cap / 16 * 15 ? OK : s;
}
