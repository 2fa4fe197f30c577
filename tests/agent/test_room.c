/* SPDX-License-Identifier: Apache-2.0 */
/* Room for tables within a budget. */
#include "agent/broker/slab_grants.h"
#include "tables_fixture.h"

/* 32 chunks to a slab, one blob of 60,000 bytes each. */
static void stays_within_the_budget_and_evicts_the_coldest(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	begin(&f, 4);
	for (uint64_t inode = 1; inode <= 32; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.slabs == 4 && stats.bytes == 128 * PAGE_BLOB_BYTES);
	/* All are in use: the new one is known, but without its table. */
	CHECK(publish(&f, 40, 1, PAGE_BLOB_BYTES, 40) == E_LIMIT);
	check_no_room(&f, 40);
	/* Time goes by; all but 5 and 6 are used again. */
	f.settings.epoch = 3;
	for (uint64_t inode = 1; inode <= 32; inode++)
		look_up(&f, inode)->hits += inode != 5 && inode != 6;
	tables_next_epoch(f.tables, f.now_ns);
	f.settings.epoch = TABLES_EVICT_AGE_EPOCHS;
	CHECK(publish(&f, 41, 4, PAGE_BLOB_BYTES, 41) == OK);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == 1);
	CHECK(!look_up(&f, 5) != !look_up(&f, 6));
	check_blobs(&f, 41, 4, PAGE_BLOB_BYTES, 41);
	CHECK(publish(&f, 42, 4, PAGE_BLOB_BYTES, 42) == OK);
	CHECK(!look_up(&f, 5) && !look_up(&f, 6));
	CHECK(publish(&f, 43, 4, PAGE_BLOB_BYTES, 43) == E_LIMIT);
	for (uint64_t inode = 7; inode <= 32; inode++)
		check_blobs(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode);
	/* Larger than all there is: nothing else has to go for it. */
	f.settings.epoch = 1000;
	CHECK(publish(&f, 44, 129, SLAB_CHUNK_BYTES, 44) == E_LIMIT);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == 2 && stats.slabs == 4);
	end(&f);
}

/* A daemon that wakes in each epoch does not keep a compiler out. */
static void gives_room_to_the_hottest(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	begin(&f, 2);
	for (uint64_t inode = 1; inode <= 16; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	CHECK(publish(&f, 40, 8, PAGE_BLOB_BYTES, 40) == E_LIMIT);
	CHECK(publish(&f, 41, 4, PAGE_BLOB_BYTES, 41) == E_LIMIT);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.without_room == 2 && stats.files == 18);
	for (uint32_t epoch = 0; epoch < 3; epoch++) {
		hit_all(&f, 1, 3, 1);
		hit_all(&f, 4, 16, 30);
		pass_epochs(&f, 1, 41, 30);
	}
	/* 41 is as hot as most: one of the cold ones makes room for it. 40 is not met at all. */
	CHECK(!look_up(&f, 41));
	CHECK(!look_up(&f, 1) + !look_up(&f, 2) + !look_up(&f, 3) <= 2);
	check_no_room(&f, 40);
	CHECK(publish(&f, 41, 4, PAGE_BLOB_BYTES, 41) == OK);
	check_blobs(&f, 41, 4, PAGE_BLOB_BYTES, 41);
	/* What is half as hot together, and twice as large, goes for 40. */
	for (uint32_t epoch = 0; epoch < 3 && look_up(&f, 40); epoch++) {
		hit_all(&f, 4, 16, 30);
		hit(&f, 41, 30);
		pass_epochs(&f, 1, 40, 200);
	}
	CHECK(!look_up(&f, 40));
	CHECK(publish(&f, 40, 8, PAGE_BLOB_BYTES, 40) == OK);
	check_blobs(&f, 40, 8, PAGE_BLOB_BYTES, 40);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.without_room == 0 && stats.slabs == 2);
	CHECK(look_up(&f, 41) != NULL);
	/* As hot as those that have room, and no hotter: nothing changes. */
	CHECK(publish(&f, 42, 4, PAGE_BLOB_BYTES, 42) == E_LIMIT);
	uint64_t evicted = stats.evicted;
	for (uint32_t epoch = 0; epoch < 8; epoch++) {
		hit_all(&f, 1, 16, 30);
		hit_all(&f, 40, 41, 30);
		pass_epochs(&f, 1, 42, 30);
	}
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == evicted && stats.without_room == 1);
	end(&f);
}

/* Slabs that the kernel has. */
static uint32_t count_slabs(struct fixture *f, uint32_t max)
{
	uint32_t count = 0;
	for (uint32_t i = 0, id; i < max; i++)
		count += bpf_map_lookup_elem(f->maps.slabs, &i, &id) == 0;
	return count;
}

/* What is used stays, wherever it lies, and is right at each moment. */
static void gives_memory_back_when_idle(void **state)
{
	(void)state;
	NEED_MAPS();
	enum { FILES = 64, SLABS = 8, IDLE = 2 };
	struct fixture f;
	struct tables_stats stats;
	begin_with(&f, IDLE, SLABS);
	for (uint64_t inode = 1; inode <= FILES; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	CHECK(count_slabs(&f, SLABS) == SLABS);
	/* Every eighth is used, so that each slab holds some of them. */
	for (uint32_t epoch = 0; epoch < TABLES_IDLE_EPOCHS - 1; epoch++) {
		for (uint64_t inode = 8; inode <= FILES; inode += 8)
			look_up(&f, inode)->hits++;
		pass_epochs(&f, 1, 0, 0);
	}
	tables_read_stats(f.tables, &stats);
	CHECK(stats.files == FILES && stats.evicted == 0);
	uint32_t before = SLABS;
	int64_t turn_ns = slab_grants_turn_ns(SLABS);
	for (uint32_t epoch = 0; epoch < 200 && count_slabs(&f, SLABS) > IDLE; epoch++) {
		int64_t last_ns = f.now_ns;
		for (uint64_t inode = 8; inode <= FILES; inode += 8)
			look_up(&f, inode)->hits++;
		pass_epochs(&f, 1, 0, 0);
		uint32_t now = count_slabs(&f, SLABS);
		CHECK(now == before || now == before - 1);
		CHECK(now == before || f.now_ns >= last_ns);
		before = now;
		for (uint64_t inode = 8; inode <= FILES; inode += 8)
			check_blobs(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode);
	}
	tables_read_stats(f.tables, &stats);
	CHECK(count_slabs(&f, SLABS) == IDLE && stats.slabs == IDLE);
	CHECK(f.now_ns >= 1000 * NS_PER_SEC + (SLABS - IDLE - 1) * turn_ns);
	/* No more went than had to. */
	CHECK(stats.bytes > SLAB_BYTES && stats.files > FILES / 8);
	pass_epochs(&f, 2 * TABLES_IDLE_EPOCHS, 0, 0);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.slabs == IDLE && stats.bytes > SLAB_BYTES);
	/* And it comes again when it is needed. */
	for (uint64_t inode = 101; inode <= 100 + FILES - 16; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	CHECK(count_slabs(&f, SLABS) >= SLABS - 1);
	for (uint64_t inode = 101; inode <= 100 + FILES - 16; inode++)
		check_blobs(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode);
	end(&f);
}

TEST_MAIN(cmocka_unit_test(stays_within_the_budget_and_evicts_the_coldest),
	cmocka_unit_test(gives_room_to_the_hottest), cmocka_unit_test(gives_memory_back_when_idle))
