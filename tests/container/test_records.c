/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "container/labels.h"
#include "container/records.h"

#include <stdio.h>

static struct container_records records;
static struct containers_metrics metrics;
static struct container_labels l, out;
static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	metrics = (struct containers_metrics){ 0 };
	return container_records_init(&records, 600 * NS_PER_SEC, &metrics) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	container_records_deinit(&records);
	arena_deinit(&arena);
	return 0;
}

static const struct container_labels *with(const char *name, const char *value)
{
	container_labels_init(&l, &arena);
	container_put(&l, "image", STR("web:2"));
	container_put(&l, name, str_of(value));
	return &l;
}

static struct container_record *make(const char *key)
{
	struct container_record *r = container_record_new(&records, str_of(key));
	CHECK(r);
	r->used_ns = clock_monotonic_ns();
	return r;
}

static void has_the_labels_it_was_given(void **state)
{
	(void)state;
	CHECK(!container_record_find(&records, STR("c1")));
	struct container_record *r = make("c1");
	CHECK(container_record_find(&records, STR("c1")) == r && r->state == CONTAINER_WANTED);
	CHECK(container_record_fill(&records, r, with("name", "web")));
	CHECK(r->state == CONTAINER_KNOWN && r->version == 1 && r->label_count == 2);
	container_labels_init(&out, &arena);
	container_record_put(&records, &out, r);
	CHECK(out.count == 2);
	CHECK_STR(container_get(&out, "name"), "web");
	CHECK_STR(container_get(&out, "image"), "web:2");
	/* It is another only if it says something else. */
	CHECK(container_record_fill(&records, r, with("name", "web")) && r->version == 1);
	CHECK(container_record_fill(&records, r, with("name", "shop")) && r->version == 2);
	CHECK(atomic_load(&records.generation) == 2 && metric_get(&metrics.cut) == 0);
	l.cut = true;
	CHECK(container_record_fill(&records, r, &l) && metric_get(&metrics.cut) == 1);
}

static void is_asked_for_ever_less_often(void **state)
{
	(void)state;
	static const int64_t waits_ms[] = { 250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 60000,
		60000 };
	struct container_record *r = make("c1");
	for (size_t i = 0; i < ARRAY_COUNT(waits_ms); i++) {
		int64_t now = clock_monotonic_ns();
		container_record_nobody(&records, r);
		CHECK(r->retry_ns == waits_ms[i] * NS_PER_MS && r->due_ns >= now + r->retry_ns);
		CHECK(r->state == CONTAINER_NOBODY && r->version == 1);
	}
	CHECK(container_records_unknown(&records) == 1);
	CHECK(container_record_fill(&records, r, with("name", "web")) && r->retry_ns == 0);
	CHECK(container_records_unknown(&records) == 0);
	/* One that was known keeps its labels. */
	container_record_nobody(&records, r);
	CHECK(r->state == CONTAINER_KNOWN && r->label_count == 2);
	int64_t wait = 0;
	for (int i = 0; i < 10; i++) {
		container_record_look_again_soon(r, wait);
		CHECK(r->retry_ns == MIN(MAX(2 * wait, NS_PER_SEC), 60 * NS_PER_SEC));
		wait = r->retry_ns;
	}
}

static void says_whose_turn_it_is(void **state)
{
	(void)state;
	int64_t wake, now = clock_monotonic_ns();
	CHECK(!container_records_next_due(&records, &wake) && wake > now);
	(void)make("later");
	(void)make("nobody-looks");
	(void)make("known");
	(void)make("wanted");
	container_record_nobody(&records, container_record_find(&records, STR("later")));
	container_record_find(&records, STR("nobody-looks"))->used_ns = 0;
	struct container_record *known = container_record_find(&records, STR("known"));
	CHECK(container_record_fill(&records, known, with("name", "web")));
	known->due_ns = now;
	struct container_record *wanted = container_record_find(&records, STR("wanted"));
	CHECK(container_records_next_due(&records, &wake) == wanted);
	wanted->due_ns = INT64_MAX;
	CHECK(container_records_next_due(&records, &wake) == known);
	known->due_ns = INT64_MAX;
	struct container_record *later = container_record_find(&records, STR("later"));
	later->due_ns = clock_monotonic_ns() + 100 * NS_PER_SEC;
	CHECK(!container_records_next_due(&records, &wake) && wake == later->due_ns);
	/* Of one that nobody has looked for in a while nothing is asked any more. */
	known->due_ns = 0;
	known->used_ns = clock_monotonic_ns() - CONTAINER_UNUSED_NS;
	CHECK(!container_records_next_due(&records, &wake));
}

/* The one longest not touched goes. */
static void has_room_for_so_many(void **state)
{
	(void)state;
	char key[32];
	for (int i = 0; i < CONTAINERS_MAX; i++) {
		snprintf(key, sizeof(key), "c%d", i);
		make(key)->touched_ns = i == 7 ? 1 : 2 + i;
	}
	CHECK(container_record_fill(
		&records, container_record_find(&records, STR("c9")), with("name", "nine")));
	(void)make("more");
	CHECK(!container_record_find(&records, STR("c7")) && metric_get(&metrics.evicted) == 1);
	CHECK(records.all.len == CONTAINERS_MAX && metric_get(&metrics.known) == CONTAINERS_MAX);
	for (int i = 0; i < CONTAINERS_MAX; i++) {
		snprintf(key, sizeof(key), "c%d", i);
		CHECK((container_record_find(&records, str_of(key)) != NULL) == (i != 7));
	}
	container_labels_init(&out, &arena);
	container_record_put(&records, &out, container_record_find(&records, STR("c9")));
	CHECK_STR(container_get(&out, "name"), "nine");
}

/* Texts that no record has any more go first, then long values, then everything. */
static void has_room_for_so_much(void **state)
{
	(void)state;
	static char value[CONTAINER_VALUE_BYTES_MAX];
	memset(value, 'x', sizeof(value) - 1);
	(void)make("c1");
	for (int i = 0; i < 5000; i++) {
		container_records_make_room(&records);
		struct container_record *r = container_record_find(&records, STR("c1"));
		snprintf(value, sizeof(value) / 2, "%d", i);
		value[strlen(value)] = 'x';
		arena_clear(&arena);
		CHECK(container_record_fill(&records, r, with("note", value)));
	}
	CHECK(records.forgotten == 0 && !records.scarce && metric_get(&metrics.cut) == 0);
	char key[32];
	for (int i = 0; i < 1000; i++) {
		container_records_make_room(&records);
		snprintf(key, sizeof(key), "many-%d", i);
		snprintf(value, sizeof(value) / 2, "%d", i);
		value[strlen(value)] = 'x';
		arena_clear(&arena);
		CHECK(container_record_fill(&records, make(key), with("note", value)));
	}
	CHECK(records.scarce && records.forgotten == 0 && metric_get(&metrics.cut) > 0);
	container_labels_init(&out, &arena);
	container_record_put(&records, &out, container_record_find(&records, STR("many-1")));
	CHECK(container_get(&out, "image").len == 5 && !container_get(&out, "note").len);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN(TEST(has_the_labels_it_was_given), TEST(is_asked_for_ever_less_often),
	TEST(says_whose_turn_it_is), TEST(has_room_for_so_many), TEST(has_room_for_so_much))
