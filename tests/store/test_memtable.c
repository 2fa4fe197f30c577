/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread adds batches while another takes snapshots: each snapshot has whole batches only, no
 * fewer than the one before, and its rows can be read while more are added. Several threads that
 * add the same batches leave the tables that one leaves: nothing is interned twice.
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

enum { SENDERS = 4, SENT = 10, STACKS = 5000 };

/* A sample of each of STACKS stacks that no other batch has. */
static void new_stacks(struct profile *p, uint32_t n)
{
	CHECK(profile_init(p, 8 << 20) == OK);
	uint32_t head = fx_head(p, "cpu", true, 1), stack;
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t frames[] = { fx_frame(p, "/bin/x", i), fx_frame(p, "/bin/y", n) };
		CHECK(profile_add_stack(p, frames, 2, &stack) == OK);
		fx_sample(p, T0, 1, head, stack, 0, 0);
	}
}

struct sending {
	struct memtable *m;
	pthread_barrier_t together; /* so that several look for what none has added */
};

static void *send_batches(void *ctx)
{
	struct sending *sending = ctx;
	struct err e = { 0 };
	for (uint32_t i = 0; i < SENT; i++) {
		struct profile p;
		new_stacks(&p, i);
		(void)pthread_barrier_wait(&sending->together);
		CHECK_OK(memtable_add(sending->m, STR(""), &p, (struct batch_seen){ 0 }, &e), &e);
		profile_deinit(&p);
	}
	return NULL;
}

/* What `senders` threads leave. Closes with memtable_unref(out->table). */
static void send_by(int senders, struct memtable_snapshot *out)
{
	pthread_t threads[SENDERS];
	struct sending sending;
	struct err e = { 0 };
	CHECK(memtable_new(64 << 20, &sending.m) == OK);
	CHECK(pthread_barrier_init(&sending.together, NULL, (unsigned)senders) == 0);
	for (int i = 0; i < senders; i++)
		CHECK_OK(os_thread_start(&threads[i], "sends", send_batches, &sending, &e), &e);
	for (int i = 0; i < senders; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&sending.together);
	memtable_snapshot(sending.m, out);
	memtable_unref(sending.m);
}

static void several_senders_intern_once(void **state)
{
	(void)state;
	struct memtable_snapshot one, all;
	send_by(1, &one);
	send_by(SENDERS, &all);
	CHECK(one.row_count == (size_t)SENT * STACKS);
	CHECK(all.row_count == SENDERS * one.row_count);
	CHECK(all.tabs.node_count == one.tabs.node_count && one.tabs.node_count > 1);
	CHECK(all.tabs.symbol_string_count == one.tabs.symbol_string_count);
	CHECK(all.tabs.series_count == one.tabs.series_count);
	CHECK(all.tabs.set_count == one.tabs.set_count);
	CHECK(all.tabs.location_count == one.tabs.location_count);
	CHECK(all.table->tables.stacks.len == one.table->tables.stacks.len);
	uint64_t rows = 0;
	for (uint32_t i = 0; i < all.tabs.series_count; i++)
		rows += all.tabs.series[i].rows;
	CHECK(rows == all.row_count);
	memtable_unref(one.table);
	memtable_unref(all.table);
}

/* Of stacks of few functions, most begin as others do or go on from their ends. */
static void stacks_keep_their_frames(void **state)
{
	(void)state;
	enum { MADE = 2000, DEPTH = 8, FUNCTIONS = 3 };
	uint64_t seed = 5;
	struct memtable *m;
	struct memtable_snapshot s;
	struct profile p;
	struct err e = { 0 };
	CHECK(memtable_new(64 << 20, &m) == OK);
	CHECK(profile_init(&p, 8 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1);
	for (uint32_t i = 0; i < MADE; i++) {
		uint32_t frames[DEPTH], stack, n = (uint32_t)rnd_below(&seed, DEPTH + 1);
		for (uint32_t k = 0; k < n; k++)
			frames[k] = fx_frame(&p, "/bin/x", 1 + rnd_below(&seed, FUNCTIONS));
		CHECK(profile_add_stack(&p, frames, n, &stack) == OK);
		fx_sample(&p, T0, 1, head, stack, 0, 0);
	}
	CHECK_OK(memtable_add(m, STR(""), &p, (struct batch_seen){ 0 }, &e), &e);
	memtable_snapshot(m, &s);
	CHECK(s.row_count == MADE);
	for (size_t i = 0; i < MADE; i++) {
		const struct profile_stack *want = &p.stacks.v[p.samples.v[i].stack];
		uint32_t node = s.table->node.v[i];
		for (uint32_t k = 0; k < want->count; k++, node = s.tabs.parent[node]) {
			uint32_t location = p.stack_locations.v[want->first + k];
			CHECK(node && s.tabs.locations[s.tabs.node_location[node]].address ==
					      p.locations.v[location].address);
		}
		CHECK(node == 0);
	}
	memtable_unref(s.table);
	memtable_unref(m);
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(snapshots_while_it_grows), cmocka_unit_test(several_senders_intern_once),
	cmocka_unit_test(stacks_keep_their_frames))
