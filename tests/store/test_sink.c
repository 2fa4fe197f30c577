/* SPDX-License-Identifier: Apache-2.0 */
/* The store by its sink: what is put is found, once, and a full memtable is bad health. */
#include "tests/store/counted.h"

static void open_store(char dir[64], struct store **out)
{
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, out, &e), &e);
}

static void takes_a_batch_once(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	uint32_t counts[2];
	open_store(dir, &s);
	struct samples_sink *sink = store_sink(s);
	CHECK_OK(sink->ops->health(sink, &e), &e);
	for (int i = 0; i < 2; i++) {
		struct samples_entry *entry = NULL;
		struct profile p;
		counted_profile(&p, 1);
		CHECK_OK(sink->ops->admit(sink, 1000, &entry, &e), &e);
		CHECK(memory_used(&s->ingest_memory) > 1000);
		CHECK_OK(sink->ops->put(sink, STR(""), &p, counted_id(1), &e), &e);
		sink->ops->admit_end(sink, entry);
		CHECK(memory_used(&s->ingest_memory) == 0);
		profile_deinit(&p);
	}
	sink->ops->admit_end(sink, NULL);
	CHECK(counted_read_up_to(s, counts, 2) == COUNTED_SAMPLES);
	CHECK(counts[1] == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* Neither of the two alone keeps the store from taking a batch. */
static void a_full_table_that_cannot_be_written(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum status flush;
		uint64_t table_bytes;
		bool healthy;
	} cases[] = {
		{ "room is left", E_IO, 1 << 20, true },
		{ "it is written", OK, 0, true },
		{ "both", E_IO, 0, false },
	};
	char dir[64];
	struct store *s;
	open_store(dir, &s);
	struct samples_sink *sink = store_sink(s);
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		lock_take(&s->lock);
		s->flush_status = c->flush;
		(void)err_set(&s->flush_err, E_IO, "parts/7: no space left");
		s->memtable_bytes = c->table_bytes;
		lock_release(&s->lock);
		enum status st = sink->ops->health(sink, &e);
		CHECK_CASE(c, st == (c->healthy ? OK : E_UNAVAILABLE));
		CHECK_CASE(c, c->healthy || strstr(e.text, "parts/7: no space left"));
	}
	lock_take(&s->lock);
	s->flush_status = OK;
	lock_release(&s->lock);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(
	cmocka_unit_test(takes_a_batch_once), cmocka_unit_test(a_full_table_that_cannot_be_written))
