/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory/grow.h"

#include <string.h>
#include <sys/mman.h>

#define STEP_BYTES ((size_t)64 << 10)

static size_t round_up(size_t n)
{
	return (n + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
}

bool grow_init(void *ptr_to_v, size_t *cap, size_t *max, size_t count_max, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count_max, size, &bytes) || bytes > SIZE_MAX / 4)
		return false;
	void *p = mmap(NULL, round_up(MAX(bytes, (size_t)1)), PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	memcpy(ptr_to_v, &p, sizeof(p));
	*cap = 0;
	*max = count_max;
	return true;
}

void grow_deinit(void *ptr_to_v, size_t max, size_t size)
{
	void *p;
	memcpy(&p, ptr_to_v, sizeof(p));
	if (p)
		munmap(p, round_up(MAX(max * size, (size_t)1)));
	p = NULL;
	memcpy(ptr_to_v, &p, sizeof(p));
}

bool grow_more(void *v, size_t *cap, size_t max, size_t need, size_t size)
{
	if (need > max || !v)
		return false;
	size_t have = round_up(*cap * size);
	size_t want = round_up(MIN(MAX(need, *cap + *cap / 2), max) * size);
	if (want > have) {
		uint8_t *from = (uint8_t *)v + have;
		if (mprotect(from, want - have, PROT_READ | PROT_WRITE) < 0)
			return false;
	}
	*cap = MIN(want / size, max);
	return true;
}
