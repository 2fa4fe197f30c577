/* SPDX-License-Identifier: Apache-2.0 */
/* What the program finds for a key, while files are published, replaced, retracted and evicted.
 * That it is never wrong in between is in test_sampler.c. */
#include "tables_fixture.h"

static void publishes_replaces_and_retracts(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	begin(&f, 1);
	CHECK(publish(&f, 1, 3, 1000, 0x11) == OK);
	CHECK(publish(&f, 2, 1, SLAB_CHUNK_BYTES, 0x22) == OK);
	check_blobs(&f, 1, 3, 1000, 0x11);
	check_blobs(&f, 2, 1, SLAB_CHUNK_BYTES, 0x22);
	/* What the program has found before must not serve it any more. */
	struct file_slot *before = look_up(&f, 1);
	CHECK(publish(&f, 1, 2, 501, 0x33) == OK);
	CHECK(!before->is_live);
	check_blobs(&f, 1, 2, 501, 0x33);
	before = look_up(&f, 1);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.files == 2 && stats.slabs == 1);
	CHECK(stats.bytes == 2 * 504 + SLAB_CHUNK_BYTES);
	struct file_key key = key_of(1);
	tables_retract(f.tables, &key);
	tables_retract(f.tables, &key);
	CHECK(!look_up(&f, 1));
	CHECK(!before->is_live);
	struct err e = { 0 };
	CHECK_OK(tables_publish(f.tables, &key, 9, NULL, &e), &e);
	CHECK(look_up(&f, 1)->value.page_count == 0 && look_up(&f, 1)->value.file_id == 9);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.files == 2 && stats.bytes == SLAB_CHUNK_BYTES);
	end(&f);
}

static void makes_room_for_more_files_than_there_are_slots(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct err e = { 0 };
	struct tables_stats stats;
	begin(&f, 1);
	for (uint64_t inode = 1; inode < FILES_MAX; inode++) {
		struct file_key key = key_of(inode);
		CHECK_OK(tables_publish(f.tables, &key, 5, NULL, &e), &e);
	}
	struct file_key more = key_of(100000);
	CHECK(tables_publish(f.tables, &more, 6, NULL, &e) == E_UNAVAILABLE);
	CHECK(!look_up(&f, 100000));
	f.settings.epoch = TABLES_EVICT_AGE_EPOCHS;
	CHECK_OK(tables_publish(f.tables, &more, 6, NULL, &e), &e);
	CHECK(look_up(&f, 100000)->value.file_id == 6);
	tables_read_stats(f.tables, &stats);
	/* Also one without a table: it is to be published again when it is met. */
	CHECK(stats.files == FILES_MAX - 1 && stats.evicted == 1);
	end(&f);
}

/* Room is never lost, and no two blobs ever lie over each other. */
static void survives_a_long_life(void **state)
{
	(void)state;
	NEED_MAPS();
	enum { FILES = 40, STEPS = 1500 };
	struct fixture f;
	struct {
		uint32_t pages, bytes;
		uint8_t fill;
	} now[FILES + 1] = { { 0 } };
	uint32_t seed = 3;
	begin(&f, 1);
	for (int step = 0; step < STEPS; step++) {
		seed = seed * 1664525u + 1013904223u;
		uint32_t inode = 1 + (seed >> 16) % FILES;
		uint32_t count = 1 + (seed >> 8 & 3);
		uint32_t bytes = 8 + (seed >> 4) % 30000;
		struct file_key key = key_of(inode);
		if (now[inode].pages && seed >> 31) {
			tables_retract(f.tables, &key);
			now[inode].pages = 0;
		} else if (publish(&f, inode, count, bytes, (uint8_t)step) == OK) {
			now[inode].pages = count;
			now[inode].bytes = bytes;
			now[inode].fill = (uint8_t)step;
		} else {
			now[inode].pages = 0; /* known, without a table */
		}
	}
	uint64_t total = 0;
	for (uint32_t inode = 1; inode <= FILES; inode++) {
		if (now[inode].pages)
			check_blobs(&f, inode, now[inode].pages, now[inode].bytes, now[inode].fill);
		total += now[inode].pages * (((uint64_t)now[inode].bytes + 7) & ~7ull);
	}
	struct tables_stats stats;
	tables_read_stats(f.tables, &stats);
	CHECK(stats.bytes == total && total > 0);
	for (uint32_t inode = 1; inode <= FILES; inode++) {
		struct file_key key = key_of(inode);
		tables_retract(f.tables, &key);
	}
	CHECK(publish(&f, 99, SLAB_CHUNKS, SLAB_CHUNK_BYTES, 9) == OK); /* all of it */
	end(&f);
}

TEST_MAIN(cmocka_unit_test(publishes_replaces_and_retracts),
	cmocka_unit_test(makes_room_for_more_files_than_there_are_slots),
	cmocka_unit_test(survives_a_long_life))
