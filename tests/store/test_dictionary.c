/* SPDX-License-Identifier: Apache-2.0 */
/* Equal texts, equal numbers, from any thread; a full dictionary says so, and stays as it is. */
#include "store/memory/dictionary.h"

#include "os/os.h"
#include "tests/store/fixture.h"

#include <sched.h>

enum { TEXTS = 500 };

static char texts[TEXTS][16];
static struct str views[TEXTS];

static void *add(void *ctx)
{
	struct dictionary *d = ctx;
	for (int round = 0; round < 20; round++) {
		struct label_ids *ids;
		uint32_t from = (uint32_t)round * 7 % (TEXTS - 100);
		CHECK(label_ids_new(d, views + from, 100, &ids) == OK);
		for (uint32_t i = 0; i < 100; i++)
			CHECK(ids->v[i] == dictionary_find(d, views[from + i]));
		label_ids_unref(ids);
	}
	return NULL;
}

static void equal_texts(void **state)
{
	(void)state;
	struct dictionary *d;
	struct label_ids *a, *b;
	pthread_t threads[3];
	struct err e = { 0 };
	for (int i = 0; i < TEXTS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "text%d", i);
		views[i] = str_of(texts[i]);
	}
	CHECK(dictionary_new(1 << 20, &d) == OK);
	CHECK(dictionary_count(d) == 1 && dictionary_find(d, STR("")) == 0);
	CHECK(dictionary_find(d, STR("nobody's")) == MAP_NONE);
	for (int i = 0; i < 3; i++)
		CHECK_OK(os_thread_start(&threads[i], "adds", add, d, &e), &e);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(label_ids_new(d, views, TEXTS, &a) == OK);
	CHECK(label_ids_new(d, views + 10, 5, &b) == OK);
	CHECK(dictionary_count(d) == TEXTS + 1);
	dictionary_unref(d); /* those numbers hold it */
	for (int i = 0; i < 5; i++)
		CHECK(a->v[10 + i] == b->v[i]);
	label_ids_unref(label_ids_ref(a));
	label_ids_unref(a);
	label_ids_unref(b);
	label_ids_unref(NULL);
	dictionary_unref(NULL);
}

/* Finds without ever adding: nothing but the dictionary's own lock orders the two threads. */
static void *find_the_last(void *ctx)
{
	while (dictionary_find(ctx, views[TEXTS - 1]) == MAP_NONE)
		sched_yield();
	return NULL;
}

static void found_while_added(void **state)
{
	(void)state;
	struct dictionary *d;
	pthread_t reader;
	struct err e = { 0 };
	CHECK(dictionary_new(1 << 20, &d) == OK);
	CHECK_OK(os_thread_start(&reader, "finds", find_the_last, d, &e), &e);
	for (int i = 0; i < TEXTS; i++) {
		struct label_ids *ids;
		CHECK(label_ids_new(d, views + i, 1, &ids) == OK);
		label_ids_unref(ids);
	}
	pthread_join(reader, NULL);
	dictionary_unref(d);
}

static void a_full_one(void **state)
{
	(void)state;
	struct dictionary *d;
	struct label_ids *a;
	CHECK(dictionary_new(200, &d) == OK);
	CHECK(label_ids_new(d, views, 5, &a) == OK);
	label_ids_unref(a);
	CHECK(label_ids_new(d, views, TEXTS, &a) == E_LIMIT);
	CHECK(dictionary_find(d, views[3]) != MAP_NONE);
	dictionary_unref(d);
}

TEST_MAIN(cmocka_unit_test(equal_texts), cmocka_unit_test(found_while_added),
	cmocka_unit_test(a_full_one))
