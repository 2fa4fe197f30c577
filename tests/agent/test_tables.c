/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on tables that need no room to be made. */
#include "tables_fixture.h"

static void keeps_the_vdso_apart(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct err e = { 0 };
	uint8_t blob[64] = { 0 };
	struct unwind_table_page page = { blob, sizeof(blob), 1, 1 };
	struct unwind_table t = { 0, 1, &page, sizeof(blob), 0, 0, 0, 0, NULL };
	begin(&f, 1);
	CHECK_OK(tables_publish(f.tables, NULL, FRAME_FILE_VDSO, &t, &e), &e);
	uint32_t first = f.settings.vdso_slot;
	CHECK(first != 0 && f.slots[first].value.page_count == 1);
	CHECK_OK(tables_publish(f.tables, NULL, FRAME_FILE_VDSO, &t, &e), &e);
	CHECK(f.settings.vdso_slot != first && f.settings.vdso_slot != 0);
	end(&f);
}

static void refuses_what_makes_no_sense(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct err e = { 0 };
	struct file_key key = key_of(1);
	struct file_key none = { 0 };
	struct unwind_table_page page = { NULL, UNWIND_BLOB_BYTES_MAX + 1, 1, 1 };
	struct unwind_table t = { 0, 1, &page, 1, 0, 0, 0, 0, NULL };
	begin(&f, 1);
	CHECK(tables_publish(f.tables, &key, FRAME_FILE_ADDRESS, NULL, &e) == E_INVALID);
	CHECK(tables_publish(f.tables, &key, FRAME_FILE_MAX + 1, NULL, &e) == E_INVALID);
	CHECK(tables_publish(f.tables, &none, 5, NULL, &e) == E_INVALID);
	CHECK(tables_publish(f.tables, &key, 5, &t, &e) == E_INVALID);
	t.page_count = 0;
	CHECK(tables_publish(f.tables, &key, 5, &t, &e) == E_INVALID);
	CHECK(!look_up(&f, 1));
	end(&f);
}

static enum status set_runtime(struct fixture *f, uint64_t inode, uint64_t delta)
{
	struct file_key key = key_of(inode);
	const struct runtime_record r = { .kind = RUNTIME_CPYTHON, .delta = delta };
	return tables_set_runtime(f->tables, &key, &r, NULL);
}

static void keeps_a_record_for_each_build(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	begin(&f, 1);
	CHECK(set_runtime(&f, 1, 100) == OK &&
		!look_up(&f, 1)); /* not published: nothing is done */
	for (uint64_t inode = 1; inode <= RUNTIME_RECORDS_MAX + 2; inode++)
		CHECK(publish(&f, inode, 1, 64, 1) == OK);
	/* Two files of one build share a record. */
	CHECK(set_runtime(&f, 1, 100) == OK && set_runtime(&f, 2, 100) == OK);
	uint32_t index = look_up(&f, 1)->value.runtime - 1u;
	CHECK(look_up(&f, 2)->value.runtime == index + 1);
	struct runtime_record r;
	CHECK(bpf_map_lookup_elem(f.maps.runtime_records, &index, &r) == 0 && r.delta == 100);
	for (uint64_t inode = 3; inode <= RUNTIME_RECORDS_MAX + 1; inode++)
		CHECK(set_runtime(&f, inode, 100 * inode) == OK);
	CHECK(set_runtime(&f, RUNTIME_RECORDS_MAX + 2, 7) == E_LIMIT);
	CHECK(look_up(&f, RUNTIME_RECORDS_MAX + 2)->value.runtime == 0);
	/* A record goes with the last file that has it, once nobody can be reading it. */
	struct file_key one = key_of(1), three = key_of(3);
	tables_retract(f.tables, &one);
	tables_retract(f.tables, &three);
	for (uint64_t inode = 5000; inode < 5000 + 1024; inode++) {
		CHECK(publish(&f, inode, 1, 64, 1) == OK);
		struct file_key key = key_of(inode);
		tables_retract(f.tables, &key);
	}
	CHECK(set_runtime(&f, RUNTIME_RECORDS_MAX + 2, 7) == OK);
	CHECK(look_up(&f, 2)->value.runtime == index + 1);
	end(&f);
}

/* A build that ran a minute ago gives way to one that runs now. */
static void makes_room_for_a_new_build(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	const uint64_t fresh = RUNTIME_RECORDS_MAX + 1;
	begin(&f, 1);
	for (uint64_t inode = 1; inode <= fresh; inode++)
		CHECK(publish(&f, inode, 1, 64, 1) == OK);
	for (uint64_t inode = 1; inode < fresh; inode++)
		CHECK(set_runtime(&f, inode, 100 * inode) == OK);
	CHECK(set_runtime(&f, fresh, 7) == E_LIMIT);
	for (uint32_t epoch = 0; epoch < TABLES_EVICT_AGE_EPOCHS; epoch++) {
		hit_all(&f, 1, fresh - 2, 1);
		pass_epochs(&f, 1, fresh, 1);
	}
	CHECK(set_runtime(&f, fresh, 7) == OK && look_up(&f, fresh)->value.runtime);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == 1 && !look_up(&f, fresh - 1));
	end(&f);
}

TEST_MAIN(cmocka_unit_test(keeps_the_vdso_apart), cmocka_unit_test(refuses_what_makes_no_sense),
	cmocka_unit_test(keeps_a_record_for_each_build),
	cmocka_unit_test(makes_room_for_a_new_build))
