/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jitnames/jitdotnet.h"

#include "dotnet_forged.h"
#include "test.h"

#include <unistd.h>

static struct lock lock = LOCK_INIT(LOCK_JITNAMES);
static struct jit_map *map;
static struct jitdotnet d;

static int begin(void **state)
{
	(void)state;
	d = (struct jitdotnet){ .table = forged_make(8), .version = 8 };
	return jit_map_new(&map) != OK;
}

static int end(void **state)
{
	(void)state;
	jit_map_free(map);
	return 0;
}

static uint64_t look(void)
{
	return jitdotnet_read(&d, (int)getpid(), map, &lock, UINT64_MAX);
}

static struct str name_at(uint64_t address)
{
	struct jit_found f;
	return jit_map_find(map, address, 5, &f) ? jit_name_parse(f.name).function : STR("none");
}

static void names_what_is_wanted(void **state)
{
	(void)state;
	uint64_t base = forged_at(forged_code());
	assert_int_equal(look(), 0);
	forged.chunk.method[7] = 7; /* made at run time */
	for (int i = 0; i < 3; i++)
		jitdotnet_want(&d, base + 0x1870);
	assert_int_equal(d.wanted_count, 1);
	CHECK(look() > 0);
	CHECK_STR(name_at(base + 0x1860), "[method made at run time]");
	CHECK_STR(name_at(base + 0x19cf), "[method made at run time]");
	CHECK_STR(name_at(base + 0x19d0), "none");
	jitdotnet_want(&d, base + 0x1890); /* of the same piece */
	assert_int_equal(look(), 0);
	forged.sections[0].flags = 4;
	jitdotnet_want(&d, base + 0x100);
	CHECK(look() > 0);
	CHECK_STR(name_at(base + 0x100), "[stub]");
}

static void leaves_nameless_what_says_nothing(void **state)
{
	(void)state;
	uint64_t base = forged_at(forged_code());
	jitdotnet_want(&d, base + 0x1870); /* its metadata have no tables */
	jitdotnet_want(&d, 16);
	CHECK(look() > 0);
	CHECK_STR(name_at(base + 0x1870), "none");
	assert_int_equal(jit_map_len(map), 0);
	for (uint64_t i = 0; i < 2 * JITDOTNET_WANTED_MAX; i++)
		jitdotnet_want(&d, i);
	assert_int_equal(d.wanted_count, JITDOTNET_WANTED_MAX);
	CHECK(jitdotnet_read(&d, (int)getpid(), map, &lock, 1) > 0); /* a small budget */
	assert_int_equal(d.wanted_count, 0);
}

static void finds_no_runtime_here(void **state)
{
	(void)state;
	static struct code_files_memory known;
	struct jitdotnet here = { 0 };
	jitdotnet_find(&here, &known, (int)getpid());
	assert_int_equal(here.table, 0);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(names_what_is_wanted, begin, end),
	cmocka_unit_test_setup_teardown(leaves_nameless_what_says_nothing, begin, end),
	cmocka_unit_test(finds_no_runtime_here))
