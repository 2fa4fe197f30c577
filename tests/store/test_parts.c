/* SPDX-License-Identifier: Apache-2.0 */
/* Quarantine while the store is open. */
#include "base/clock.h"
#include "tests/store/counted.h"

#include <errno.h>

static void at_time(struct store *s, int64_t t, int i)
{
	struct profile p;
	struct err e = { 0 };
	char id[16];
	snprintf(id, sizeof(id), "%d", i);
	const char *const labels[] = { "thread_id", id, NULL };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1);
	for (int k = 0; k < COUNTED_SAMPLES; k++)
		fx_sample(&p, t, 1, head, 0, 0, fx_labels(&p, labels));
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	CHECK_OK(store_flush(s, &e), &e);
	profile_deinit(&p);
}

static uint64_t samples_left(struct store *s)
{
	uint32_t *counts = malloc(COUNTED_MAX * sizeof(*counts));
	CHECK(counts != NULL);
	uint64_t n = counted_read(s, counts);
	free(counts);
	return n;
}

/* A view that was open keeps what it saw; a damaged part found by a query is set aside. */
static void damage_found_by_a_query(void **state)
{
	(void)state;
	char dir[64], path[256];
	struct store *s;
	struct err e = { 0 };
	struct notices n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, fixture_notice, &n, &s, &e), &e);
	int64_t now = clock_realtime_ns();
	at_time(s, now, 1);
	at_time(s, now, 2);
	CHECK(s->parts.len == 2);
	snprintf(path, sizeof(path), "%s", part_path(s->parts.v[0]));
	int fd = open(path, O_RDWR | O_CLOEXEC);
	size_t sections;
	const struct part_section_entry *x = part_sections(s->parts.v[0], &sections);
	uint64_t at = 0;
	for (size_t i = 0; i < sections; i++)
		if (x[i].kind == PART_TRIE || x[i].kind == PART_BLOCKS)
			at = x[i].offset + x[i].length / 2;
	uint8_t byte = 0;
	CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
	byte ^= 8;
	CHECK(pwrite(fd, &byte, 1, (off_t)at) == 1);
	close(fd);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	CHECK(n.count == 1 && strstr(n.last, "quarantine") != NULL);
	CHECK(strstr(n.last, ".part") != NULL);
	CHECK(access(path, F_OK) < 0);
	snprintf(path, sizeof(path), "%s/quarantine", dir);
	struct arena a;
	struct str *names;
	size_t count;
	arena_init(&a, 1 << 16);
	CHECK_OK(os_list_dir(path, &a, &names, &count, &e), &e);
	CHECK(count == 2 && str_ends(names[1], STR(".reason")));
	arena_deinit(&a);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* ---- files of unknown fate ---- */

static const char *_Atomic refused; /* this operation fails */

static int refuse(void *ctx, const char *operation)
{
	(void)ctx;
	const char *what = atomic_load(&refused);
	return what && strcmp(what, operation) == 0 ? EIO : 0;
}

static size_t doubts(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	size_t n = s->doubtful.len;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static struct store *open_with_hook(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	store_io_hook = (struct store_io_hook){ refuse, NULL };
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

/* A full disk removes what was begun: tries that fail for hours leave nothing to remember. */
static void tries_on_a_full_disk_leave_no_doubt(void **state)
{
	(void)state;
	char dir[64];
	fixture_dir(dir);
	struct store *s = open_with_hook(dir);
	CHECK(counted_append(s, 1, NULL) == OK);
	atomic_store(&refused, "write");
	for (int i = 0; i < 20; i++)
		CHECK(store_flush(s, NULL) != OK);
	CHECK(doubts(s) == 0);
	atomic_store(&refused, NULL);
	CHECK(store_flush(s, NULL) == OK);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* On a disk that removes nothing none is forgotten: at last no part is written until it does. */
static void no_doubt_is_forgotten(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_hook(dir);
	fixture_stop_merging(s);
	CHECK(counted_append(s, 1, NULL) == OK);
	atomic_store(&refused, "unlink");
	size_t n = 0;
	for (uint64_t id = 1000; id < 1000 + PART_REPLACES_MAX; id++, n++)
		store_doubt(s, id);
	CHECK(doubts(s) == n);
	CHECK(store_flush(s, &e) == E_UNAVAILABLE && strstr(e.text, "left behind") != NULL);
	CHECK(fixture_part_count(s) == 0);
	atomic_store(&refused, NULL);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK(doubts(s) == 0 && fixture_part_count(s) == 1);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(damage_found_by_a_query),
	cmocka_unit_test(tries_on_a_full_disk_leave_no_doubt),
	cmocka_unit_test(no_doubt_is_forgotten))
