/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: madvise() for all pages of the allocation. glibc gives large allocations a mapping of their
 * own, and this is all of it: no mapping is split, and realloc() can still move it as one.
 */
#include "base/pages.h"

#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void pages_prefer_large(void *allocated, size_t bytes)
{
	if (!allocated || bytes < PAGES_LARGE_BYTES_MIN)
		return;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)allocated;
	uintptr_t begin = at & ~(page - 1);
	uintptr_t end = (at + malloc_usable_size(allocated) + page - 1) & ~(page - 1);
	(void)madvise((char *)allocated - (at - begin), end - begin, MADV_HUGEPAGE);
}

void pages_give_back(void *begin, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t skip = -(uintptr_t)begin & (page - 1);
	if (bytes >= skip + page)
		(void)madvise((char *)begin + skip, (bytes - skip) & ~(page - 1), MADV_DONTNEED);
}
