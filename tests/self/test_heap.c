/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "self/self.h"

static int64_t sum(struct profile *p)
{
	struct err e = { 0 };
	int64_t bytes = 0;
	CHECK_OK(profile_init(p, SELF_BYTES_MAX), &e);
	CHECK_OK(self_heap(p, &e), &e);
	CHECK_OK(profile_validate(p, &e), &e);
	CHECK(p->samples.len == 3 && !p->types.v[p->heads.v[0].type].delta);
	for (size_t i = 0; i < p->samples.len; i++)
		bytes += p->samples.v[i].value;
	profile_deinit(p);
	return bytes;
}

static void says_what_malloc_holds(void **state)
{
	(void)state;
	struct profile p;
	if (SANITIZED) {
		print_message("skipped: a sanitizer's malloc says nothing of itself\n");
		skip();
	}
	int64_t before = sum(&p);
	char *block = malloc(64 << 20);
	CHECK(block && (memset(block, 1, 64 << 20), block[5] == 1));
	int64_t with = sum(&p);
	free(block);
	CHECK(with - before >= 64 << 20 && sum(&p) - before < 32 << 20);
}

TEST_MAIN(cmocka_unit_test(says_what_malloc_holds))
