/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"
#include "base/vec.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether the mapping that holds `p` was asked for in large pages ("hg" of its flags). */
static bool prefers_large(const void *p)
{
	char line[512];
	bool inside = false, large = false;
	FILE *f = fopen("/proc/self/smaps", "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long begin, end;
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			inside = (unsigned long)p >= begin && (unsigned long)p < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			large = strstr(line, " hg") != NULL;
	}
	fclose(f);
	return large;
}

static void asks_for_large_pages(void **state)
{
	(void)state;
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) {
		print_message("this kernel has no transparent large pages\n");
		skip();
	}
	size_t bytes = PAGES_LARGE_BYTES_MIN * 4;
	char *p = malloc(bytes), *small = malloc(1000);
	CHECK(p && small);
	pages_prefer_large(NULL, bytes);
	pages_prefer_large(small, 1000);
	CHECK(!prefers_large(small));
	pages_prefer_large(p, bytes);
	CHECK(prefers_large(p + bytes / 2));
	memset(p, 1, bytes);
	p = realloc(p, bytes * 2); /* goes on as before */
	CHECK(p && p[bytes - 1] == 1);
	free(p);
	free(small);
	/* Those who use it. */
	VEC(uint64_t) v = { 0 };
	CHECK(VEC_RESERVE(&v, bytes / sizeof(*v.v)));
	CHECK(prefers_large(&v.v[bytes / sizeof(*v.v) / 2]));
	VEC_FREE(&v);
}

/* Of `count` bytes, those that are `value`. */
static size_t count_bytes(const uint8_t *p, size_t count, uint8_t value)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		n += p[i] == value;
	return n;
}

/* How many of the pages from `p` on are in memory. */
static size_t resident(uint8_t *p, size_t count)
{
	unsigned char in[16];
	size_t n = 0;
	CHECK(count <= ARRAY_COUNT(in));
	CHECK(mincore(p, count * (size_t)sysconf(_SC_PAGESIZE), in) == 0);
	for (size_t i = 0; i < count; i++)
		n += in[i] & 1;
	return n;
}

enum { PAGES = 8 };

/* Only the pages that lie in the piece as a whole go back; those that it has a part of keep all
 * their bytes. */
static void gives_back_whole_pages(void **state)
{
	(void)state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page;
	static const struct {
		size_t begin, end;  /* in eighths of a page */
		size_t first, last; /* the pages that go back */
	} pieces[] = {
		{ 0, 64, 0, 8 },
		{ 8, 24, 1, 3 },
		{ 9, 24, 2, 3 },
		{ 8, 23, 1, 2 },
		{ 9, 31, 2, 3 },
		{ 9, 15, 0, 0 },  /* inside a page */
		{ 9, 23, 0, 0 },  /* parts of two pages */
		{ 12, 16, 0, 0 }, /* up to a page's end */
		{ 16, 16, 0, 0 }, /* nothing */
		{ 13, 13, 0, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
		uint8_t *p = mmap(
			NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		CHECK(madvise(p, bytes, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
		memset(p, 7, bytes);
		size_t begin = pieces[i].begin * page / 8, end = pieces[i].end * page / 8;
		size_t first = pieces[i].first, gone = pieces[i].last - first;
		CHECK(resident(p, PAGES) == PAGES);
		pages_give_back(p + begin, end - begin);
		CHECK(resident(p, PAGES) == PAGES - gone);
		CHECK(resident(p + first * page, gone) == 0);
		CHECK(count_bytes(p + first * page, gone * page, 0) == gone * page);
		CHECK(count_bytes(p, bytes, 7) == bytes - gone * page);
		memset(p, 9, bytes); /* it can be written again */
		CHECK(count_bytes(p, bytes, 9) == bytes);
		CHECK(munmap(p, bytes) == 0);
	}
}

TEST_MAIN(cmocka_unit_test(asks_for_large_pages), cmocka_unit_test(gives_back_whole_pages))
