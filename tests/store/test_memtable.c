/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread adds batches while another takes snapshots: each snapshot has whole batches only, no
 * fewer than the one before, and its rows can be read while more are added.
 */
#include "store/memory/memory.h"

#include "tests/store/counted.h"

#include <sched.h>

enum { BATCHES = 300 };

static void check_snapshot(const struct memtable_snapshot *s, size_t *before)
{
	CHECK(s->row_count % COUNTED_SAMPLES == 0 && s->row_count >= *before);
	*before = s->row_count;
	for (size_t i = 0; i < s->row_count; i++) {
		int64_t at = s->table->time_ns.v[i];
		CHECK(at >= s->first_ns && at <= s->last_ns);
	}
}

/* Until it has seen all of them. */
static void *read_rows(void *ctx)
{
	size_t rows = 0;
	while (rows < (size_t)BATCHES * COUNTED_SAMPLES) {
		struct memtable_snapshot s;
		memtable_snapshot(ctx, &s);
		check_snapshot(&s, &rows);
		memtable_unref(s.table);
		sched_yield();
	}
	return NULL;
}

static void snapshots_while_it_grows(void **state)
{
	(void)state;
	struct memtable *m;
	pthread_t reader;
	struct err e = { 0 };
	CHECK(memtable_new(64 << 20, &m) == OK);
	CHECK_OK(os_thread_start(&reader, "reads", read_rows, m, &e), &e);
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct profile p;
		counted_profile(&p, i);
		struct batch_seen batch = { .id = counted_id(i), .arrived_ns = T0 };
		CHECK_OK(memtable_add(m, STR(""), &p, batch, &e), &e);
		profile_deinit(&p);
	}
	pthread_join(reader, NULL);
	memtable_unref(m);
}

TEST_MAIN(cmocka_unit_test(snapshots_while_it_grows))
