/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"
#include "base/vec.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
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

TEST_MAIN(cmocka_unit_test(asks_for_large_pages))
