/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/code_files.h"

#include "test.h"

#include <unistd.h>

static struct code_files_memory known;
static uint32_t mappings, asked_count;
static bool answer, wanted;

static void on_mapping(void *ctx, const struct procfs_map *m)
{
	(void)ctx;
	(void)m;
	mappings++;
}

static bool on_file(void *ctx, const struct objfile *obj, uint64_t bias)
{
	(void)ctx;
	(void)obj;
	(void)bias;
	asked_count++;
	return answer;
}

static bool is_wanted(void *ctx)
{
	(void)ctx;
	return wanted;
}

static uint32_t each(uint32_t most)
{
	const struct code_files_asked asked = { on_mapping, on_file, is_wanted, NULL, most };
	uint32_t count = UINT32_MAX;
	mappings = asked_count = 0;
	CHECK(code_files_each(&known, (int)getpid(), &asked, &count) == OK);
	return count;
}

static void asks_each_that_may_have_it(void **state)
{
	(void)state;
	assert_int_equal(each(9), 0);
	CHECK(mappings > 3);
	assert_int_equal(asked_count, 0); /* not wanted */
	wanted = answer = true;
	assert_int_equal(each(1), 1);
	assert_int_equal(asked_count, 1);
	assert_int_equal(each(2), 2);
	answer = false;
	for (int i = 0; i < 1000 && (each(9), asked_count); i++)
		; /* at most so many, and so long, at a time */
	answer = true;
	assert_int_equal(each(9), 0); /* remembered */
	assert_int_equal(asked_count, 0);
}

static void says_when_there_is_no_process(void **state)
{
	(void)state;
	const struct code_files_asked asked = { NULL, on_file, NULL, NULL, 1 };
	uint32_t count = 7;
	CHECK(code_files_each(&known, INT32_MAX, &asked, &count) == E_NOTFOUND);
	assert_int_equal(count, 0);
}

TEST_MAIN(cmocka_unit_test(asks_each_that_may_have_it),
	cmocka_unit_test(says_when_there_is_no_process))
