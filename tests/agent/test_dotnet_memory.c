/* SPDX-License-Identifier: Apache-2.0 */
/* This process' own memory, as that of a .NET process. */
#include "agent/broker/dotnet_memory.h"

#include "dotnet_forged.h"
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct dotnet_memory_code code;

static int find(unsigned version, uint64_t address)
{
	code = (struct dotnet_memory_code){ 0 };
	errno = 0;
	return dotnet_memory_find((int)getpid(), version, forged_at(&forged.root), address, &code);
}

static uint64_t base(void)
{
	return forged_at(forged_code());
}

static void finds_code_of_a_heap(void **state)
{
	(void)state;
	for (unsigned version = 8; version <= 10; version++) {
		forged_make(version);
		const uint64_t inside[] = { 0x1860, 0x187f, 0x1880, 0x18ff, 0x1900, 0x19cf };
		for (size_t i = 0; i < ARRAY_COUNT(inside); i++) {
			uint64_t at = inside[i];
			if (version == 10 && at >= 0x1900)
				forged.map[0x19] = 0x1860 | 9;
			assert_int_equal(find(version, base() + at), 0);
			CHECK(code.start == base() + 0x1860 && code.bytes == 0x170);
			CHECK(code.method == (1 << 12 | 13) && !code.is_stub);
			CHECK(code.metadata == forged_at(forged.metadata));
		}
		CHECK(find(version, base() + 0x185f) == -1 && errno == EPROTO);
		CHECK(find(version, base() + 0x3000) == -1); /* behind the heap */
		CHECK(find(version, FORGED_IMAGE) == -1);
	}
	CHECK(find(7, base() + 0x1860) == -1 && find(11, base() + 0x1860) == -1);
}

/* Several pieces in one word; the last one that begins before the address. */
static void takes_the_nearest_beginning(void **state)
{
	(void)state;
	forged_make(8);
	uint64_t header = forged_at(forged.header);
	memcpy(forged_code() + 0x1894 - 8, &header, sizeof(header));
	forged.map[0x18] |= 6u << (28 - 4 * 4); /* 0x1880 + 5 words */
	assert_int_equal(find(8, base() + 0x1893), 0);
	CHECK(code.start == base() + 0x1860);
	assert_int_equal(find(8, base() + 0x1894), 0);
	CHECK(code.start == base() + 0x1894 && code.bytes == 1); /* what is said fits another */
}

static void knows_what_has_no_method(void **state)
{
	(void)state;
	forged_make(8);
	forged_code()[0x1858] = 4;
	memset(forged_code() + 0x1859, 0, 7);
	assert_int_equal(find(8, base() + 0x1870), 0);
	CHECK(code.is_stub && !code.metadata && code.start == base() + 0x1860);
	forged_make(8);
	forged.sections[0].flags = 4;
	assert_int_equal(find(8, base() + 0x100), 0);
	CHECK(code.is_stub && code.start == base() + 0x100 && code.bytes == 1);
	forged_make(8);
	forged.chunk.method[7] = 7; /* made at run time */
	assert_int_equal(find(8, base() + 0x1870), 0);
	CHECK(!code.is_stub && !code.metadata && code.bytes == 0x170);
}

static void put_function(uint64_t at, uint32_t from)
{
	uint64_t key = FORGED_IMAGE + from;
	uint32_t size = 3;
	memcpy(forged.buckets[0], &size, sizeof(size));
	uint64_t *bucket = forged.buckets[1 + (uint32_t)(key >> 2) % size];
	bucket[0] = key;
	bucket[4] = at >> 1;
}

static void finds_code_that_came_compiled(void **state)
{
	(void)state;
	for (unsigned version = 8; version <= 10; version++) {
		forged_make(version);
		memset(forged.levels, 0, sizeof(forged.levels));
		forged_tree(FORGED_IMAGE, &forged.fragments[1]);
		forged.fragments[1] = (struct forged_fragment){ 0, FORGED_IMAGE,
			FORGED_IMAGE + 0x10000, forged_at(&forged.sections[1]) };
		forged.sections[1] = (struct forged_section){ .begin = FORGED_IMAGE,
			.end = FORGED_IMAGE + 0x10000,
			.module = forged_at(forged.module) };
		static const uint32_t functions[][3] = { { 0x100, 0x140 }, { 0x140, 0x180 },
			{ 0x200, 0x280 } };
		memcpy(forged.functions, functions, sizeof(functions));
		put_function(forged_at(&forged.chunk.method[4]), 0x100);
		assert_int_equal(find(version, FORGED_IMAGE + 0x110), 0);
		CHECK(code.start == FORGED_IMAGE + 0x100 && code.bytes == 0x40);
		CHECK(code.metadata == forged_at(forged.metadata));
		/* The next one is a part of it. */
		assert_int_equal(find(version, FORGED_IMAGE + 0x150), 0);
		CHECK(code.start == FORGED_IMAGE + 0x100 && code.bytes == 0x80);
		CHECK(find(version, FORGED_IMAGE + 0x190) == -1); /* between two */
		CHECK(find(version, FORGED_IMAGE + 0x50) == -1);  /* before the first */
		CHECK(find(version, FORGED_IMAGE + 0x290) == -1);
		forged.buckets[1][0] = forged.buckets[2][0] = forged.buckets[3][0] = 1;
		CHECK(find(version, FORGED_IMAGE + 0x110) == -1);
		uint32_t none = 0;
		memcpy(forged.buckets[0], &none, sizeof(none));
		CHECK(find(version, FORGED_IMAGE + 0x110) == -1);
	}
}

/* Whatever word of the tables is wrong, it ends with an answer or without. */
static void bears_what_is_forged(void **state)
{
	(void)state;
	static const uint64_t wrong[] = { 0, 1, UINT64_MAX, INT64_MAX, 4096 };
	for (size_t w = 0; w < ARRAY_COUNT(wrong); w++) {
		for (size_t i = 0; i < sizeof(forged) / 8; i++) {
			forged_make(8);
			uint64_t *word = (uint64_t *)(void *)&forged + i;
			if (i >= 1 && i < 1281 && !*word)
				continue; /* of a tree that leads elsewhere */
			*word = wrong[w];
			(void)find(8, base() + 0x19cf);
		}
	}
	forged_make(8);
	forged.fragments[0].end = 0;
	forged.fragments[0].next = forged_at(&forged.fragments[0]); /* a circle */
	CHECK(find(8, base() + 0x1860) == -1 && errno == EPROTO);
	forged_make(8);
	memset(forged.map, 0, sizeof(forged.map)); /* no beginning */
	CHECK(find(8, base() + 0x1860) == -1);
}

static ssize_t get(uint64_t offset, void *out, size_t len)
{
	return dotnet_memory_read((int)getpid(), forged_at(forged.metadata), offset, out, len);
}

static void reads_metadata_only(void **state)
{
	(void)state;
	char text[256];
	forged_make(8);
	assert_int_equal(get(0, text, 4), 4);
	CHECK(memcmp(text, "BSJB", 4) == 0);
	assert_int_equal(get(120, text, sizeof(text)), 8); /* up to its end */
	assert_int_equal(get(128, text, sizeof(text)), 0);
	assert_int_equal(get(UINT64_MAX, text, sizeof(text)), 0);
	forged.metadata[0] = 'b';
	CHECK(get(0, text, 4) == -1 && errno == EPROTO);
	forged_metadata();
	forged.metadata[17] = '5'; /* another version */
	CHECK(get(0, text, 4) == -1 && errno == EPROTO);
	forged_metadata();
	memset(forged.metadata + 36, 0xff, 4); /* a stream that is longer than any */
	CHECK(get(0, text, 4) == -1 && errno == EPROTO);
	CHECK(dotnet_memory_read((int)getpid(), 16, 0, text, 4) == -1);
	CHECK(dotnet_memory_read(INT32_MAX, 16, 0, text, 4) == -1);
}

TEST_MAIN(cmocka_unit_test(finds_code_of_a_heap), cmocka_unit_test(takes_the_nearest_beginning),
	cmocka_unit_test(knows_what_has_no_method), cmocka_unit_test(finds_code_that_came_compiled),
	cmocka_unit_test(bears_what_is_forged), cmocka_unit_test(reads_metadata_only))
