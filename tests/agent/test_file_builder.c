/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were opened: their ids and tables, and whose turn it is. */
#include "files_fixture.h"

static void one_content_is_one_file(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped a = map_library("a.so", 50, 1);
	struct mapped b = map_library("b.so", 50, 1);
	struct mapped other = map_library("c.so", 60, 1); /* borrows the build id */
	files_notice(f, &a.notice, getpid());
	struct published pa = wait_published(&a.notice.key, 1);
	files_notice(f, &b.notice, getpid());
	struct published pb = wait_published(&b.notice.key, 1);
	files_notice(f, &other.notice, getpid());
	struct published pc = wait_published(&other.notice.key, 1);
	CHECK(pa.file_id == pb.file_id && pa.rows == pb.rows);
	CHECK(pc.file_id != pa.file_id);
	CHECK(metric_get(&files_metrics(f)->known) == 2);
	unmap_file(&a);
	unmap_file(&b);
	unmap_file(&other);
	files_free(f);
}

/* And is loaded anew when the sampler has evicted it, to have it come again. */
static void over_the_budget_a_file_is_known_without_a_table(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	fake.over_budget = true;
	struct mapped m = map_library("lib.so", 10, 1);
	files_notice(f, &m.notice, getpid());
	wait_for(&files_metrics(f)->over_budget, 1);
	struct published p = wait_published(&m.notice.key, 1);
	struct file_info info;
	CHECK(files_get(f, p.file_id, &info) && !info.has_table);
	CHECK(metric_get(&files_metrics(f)->tables) == 0);
	int64_t now = clock_monotonic_ns(), end = now + 60 * NS_PER_SEC;
	while (!files_find(f, &m.notice.key) && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK(files_find(f, &m.notice.key) == p.file_id); /* samples under way name it */
	pthread_mutex_lock(&fake.lock);
	fake.over_budget = false;
	fake.evicts = true;
	pthread_mutex_unlock(&fake.lock);
	/* Whoever is bound is looked at once a second. */
	while (!metric_get(&files_metrics(f)->tables) && clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		usleep(10000);
	}
	CHECK(files_get(f, p.file_id, &info) && info.has_table);
	unmap_file(&m);
	files_free(f);
}

static void large_tables_come_from_the_cache(void **state)
{
	(void)state;
	char cache[160];
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	struct seen seen = { 0 };
	struct files_config c = { .cache_dir = cache, .seen = note_seen, .seen_ctx = &seen };
	struct mapped m = map_library("large.so", 40000, 5);
	uint64_t rows[2];
	for (int round = 0; round < 2; round++) {
		reset(NULL);
		struct files *f = make_files(&c);
		files_notice(f, &m.notice, getpid());
		rows[round] = wait_published(&m.notice.key, 1).rows;
		CHECK(metric_get(&files_metrics(f)->built) == (round == 0));
		CHECK(metric_get(&files_metrics(f)->cached) == (round == 1));
		files_free(f);
		CHECK(seen.count == round + 1);
		CHECK(strncmp(seen.build_id, "050203", 6) == 0 && seen.size == m.len);
	}
	CHECK(rows[0] == rows[1] && rows[0] > 100000);
	unmap_file(&m);
}

/* Where a file was published; fake.count: it was not. */
static size_t place_of(const struct mapped *m)
{
	size_t i = 0;
	while (i < fake.count && fake.v[i].key.inode != m->notice.key.inode)
		i++;
	return i;
}

/* The small one is told of second and done first, unless the machine let its opener wait for the
 * whole of the large one: then it is tried again. */
static void a_small_file_does_not_wait_for_a_large_one(void **state)
{
	(void)state;
	bool is_first = false;
	for (uint8_t round = 0; round < 20 && !is_first; round++) {
		struct files *f = make_files(&(struct files_config){ .cpu_percent = 5 });
		struct mapped large = map_library("large.so", 300000, round);
		struct mapped small = map_library("small.so", 10, (uint8_t)(100 + round));
		fake.count = 0;
		files_notice(f, &large.notice, getpid());
		files_notice(f, &small.notice, getpid());
		wait_published(&large.notice.key, 1);
		wait_published(&small.notice.key, 1);
		is_first = place_of(&small) < place_of(&large);
		files_free(f);
		CHECK(fake.count == 2);
		unmap_file(&large);
		unmap_file(&small);
	}
	CHECK(is_first);
}

FILES_TEST_MAIN(cmocka_unit_test_setup(one_content_is_one_file, reset),
	cmocka_unit_test_setup(over_the_budget_a_file_is_known_without_a_table, reset),
	cmocka_unit_test_setup(large_tables_come_from_the_cache, reset),
	cmocka_unit_test_setup(a_small_file_does_not_wait_for_a_large_one, reset))
