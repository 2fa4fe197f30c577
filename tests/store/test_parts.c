/* SPDX-License-Identifier: Apache-2.0 */
/* Quarantine while the store is open. */
#include "base/clock.h"
#include "tests/store/counted.h"

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

TEST_MAIN(cmocka_unit_test(damage_found_by_a_query))
