/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jitnames/jitobjects.h"

#include "jit_registered.h"
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

#define ALL UINT64_MAX

struct registered_descriptor __jit_debug_descriptor = { .version = 1 };

static struct code_files_memory known;
static struct registered_object first, second, third;
static struct jitobjects objects;
static struct jit_map *map;
static struct lock lock = LOCK_INIT(LOCK_JITNAMES);

static int begin(void **state)
{
	(void)state;
	__jit_debug_descriptor.first = NULL;
	registered_make(&first, "first", 0x1000, 16);
	registered_make(&second, "second", 0x2000, 16);
	registered_make(&third, "third", 0x1000, 16);
	jitobjects_find(&objects, &known, (int)getpid());
	return jit_map_new(&map) != OK;
}

static int end(void **state)
{
	(void)state;
	jitobjects_deinit(&objects);
	jit_map_free(map);
	return 0;
}

static uint64_t take(uint64_t since_ns, uint64_t budget)
{
	return jitobjects_read(&objects, (int)getpid(), map, &lock, since_ns, budget);
}

static struct str name_at(uint64_t address, uint64_t time_ns)
{
	struct jit_found f;
	return jit_map_find(map, address, time_ns, &f) ? f.name : STR("none");
}

static void reads_what_is_new(void **state)
{
	(void)state;
	assert_int_equal(objects.descriptor_count, 1);
	assert_int_equal(take(0, ALL), 0);
	registered_add(&first);
	CHECK(take(0, ALL) > first.entry.bytes);
	CHECK_STR(name_at(0x1000, 5), "first");
	registered_add(&second);
	take(10, ALL);
	CHECK_STR(name_at(0x2000, 10), "second");
	assert_int_equal(jit_map_len(map), 2);
	take(20, ALL); /* nothing */
	assert_int_equal(jit_map_len(map), 2);
	/* Another takes the place of the first one's code. */
	second.entry.next = NULL;
	registered_add(&third);
	take(30, ALL);
	CHECK_STR(name_at(0x1000, 29), "first");
	CHECK_STR(name_at(0x1000, 30), "third");
	assert_int_equal(objects.seen_count, 2);
}

static void reads_the_rest_later(void **state)
{
	(void)state;
	registered_add(&first);
	registered_add(&second);
	CHECK(take(0, 1) < first.entry.bytes);
	assert_int_equal(jit_map_len(map), 0);
	CHECK(take(0, 3 * sizeof(struct jit_memory_object)) >= first.entry.bytes);
	CHECK_STR(name_at(0x1000, 5), "first");
	CHECK_STR(name_at(0x2000, 5), "none");
	take(0, ALL);
	CHECK_STR(name_at(0x2000, 5), "second");
	assert_int_equal(jit_map_len(map), 2);
}

/* It says what is not so. */
static void costs_no_more_than_it_may(void **state)
{
	(void)state;
	registered_add(&first);
	registered_add(&second);
	first.entry.bytes = JIT_OBJECT_BYTES_MAX + 1;
	second.entry.bytes = JIT_OBJECT_BYTES_MAX; /* more than is mapped */
	take(0, ALL);
	assert_int_equal(jit_map_len(map), 0);
	assert_int_equal(objects.seen_count, 0);
	assert_int_equal(
		jitobjects_read(&objects, INT32_MAX, map, &lock, 0, ALL), 0); /* has ended */
}

/* Both objects end behind what is mapped. */
static void counts_what_it_could_not_read_whole(void **state)
{
	(void)state;
	enum { PAGE = 4096, PAGES = 16 };
	uint8_t *pages = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED && munmap(pages + PAGES * PAGE, PAGE) == 0);
	memcpy(pages, &first, sizeof(first));
	registered_add(&first);
	registered_add(&second);
	first.entry.object = second.entry.object = pages;
	first.entry.bytes = second.entry.bytes = (PAGES + 1) * PAGE;
	uint64_t cost = take(0, PAGES * PAGE);
	CHECK(cost > PAGES * PAGE && cost < 2 * PAGES * PAGE);
	assert_int_equal(jit_map_len(map), 0);
	/* They are asked for again. */
	first.entry.bytes = second.entry.bytes = PAGES * PAGE;
	take(0, ALL);
	first.entry.bytes = (PAGES + 1) * PAGE;
	CHECK(take(0, ALL) > PAGES * PAGE && take(0, ALL) > PAGES * PAGE);
	first.entry.bytes = PAGES * PAGE;
	take(0, ALL);
	assert_int_equal(objects.seen_count, 2);
	munmap(pages, PAGES * PAGE);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(reads_what_is_new, begin, end),
	cmocka_unit_test_setup_teardown(reads_the_rest_later, begin, end),
	cmocka_unit_test_setup_teardown(costs_no_more_than_it_may, begin, end),
	cmocka_unit_test_setup_teardown(counts_what_it_could_not_read_whole, begin, end))
