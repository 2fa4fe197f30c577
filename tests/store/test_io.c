/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each operation on the disk fails in turn, once; then all of them from some point on, as on a full
 * disk, until there is room again. Nothing acknowledged is lost or doubled, nothing wrong is
 * answered, and the store goes on.
 */
#include "store/io.h"

#include "tests/store/counted.h"

#include <errno.h>

struct faults {
	atomic_int count;
	int at;
	bool sticky;
	int error;
	atomic_bool off;
};

static int fail_at(void *ctx, const char *operation)
{
	struct faults *f = ctx;
	int n = atomic_fetch_add(&f->count, 1) + 1;
	if (atomic_load(&f->off) || (f->error == ENOSPC && strcmp(operation, "unlink") == 0))
		return 0;
	return n == f->at || (f->sticky && n > f->at) ? f->error : 0;
}

static bool try_append(struct store *s, uint32_t i, uint8_t *acknowledged)
{
	struct err e = { 0 };
	enum status st = counted_append(s, i, &e);
	if (st == OK)
		acknowledged[i] = 1;
	else
		CHECK(st == E_IO || st == E_LIMIT || st == E_UNAVAILABLE);
	return st == OK;
}

static void script(struct store *s, uint32_t from, uint8_t *acknowledged)
{
	struct err e;
	bool merged = true;
	for (uint32_t i = from; i < from + 9; i++) {
		try_append(s, i, acknowledged);
		if (i % 3 == 2)
			(void)!store_flush(s, &e);
	}
	for (int i = 0; i < 3 && merged; i++)
		if (store_merge_step(s, T0 + 90000 * SEC, &merged, &e) != OK)
			break;
}

static void check_store(const char *dir, const uint8_t *acknowledged)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	counted_check(s, acknowledged);
	store_close(s);
}

/* False when the run had fewer operations than `at`. */
static bool run(int at, bool sticky, int error, uint8_t *acknowledged)
{
	char dir[64];
	struct store *s = NULL;
	struct err e = { 0 };
	struct faults f = { .at = at, .sticky = sticky, .error = error };
	fixture_dir(dir);
	memset(acknowledged, 0, COUNTED_MAX);
	struct store_config c = fixture_config(dir);
	store_io_hook = (struct store_io_hook){ fail_at, &f };
	if (store_open(&c, NULL, NULL, &s, &e) == OK) {
		script(s, 0, acknowledged);
		counted_check(s, acknowledged);
		atomic_store(&f.off, true); /* the disk is well again */
		CHECK(try_append(s, 100, acknowledged));
		CHECK_OK(store_flush(s, &e), &e);
		script(s, 200, acknowledged);
		counted_check(s, acknowledged);
		CHECK(acknowledged[208]);
		atomic_store(&f.off, false);
		store_close(s);
	}
	store_io_hook = (struct store_io_hook){ 0 };
	check_store(dir, acknowledged);
	check_store(dir, acknowledged);
	fixture_clean(dir);
	return atomic_load(&f.count) >= at;
}

static void each_operation_fails_once(void **state)
{
	(void)state;
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	int at = 1;
	while (run(at, false, EIO, acknowledged))
		at++;
	print_message("%d operations\n", at - 1);
	CHECK(at > 100);
	free(acknowledged);
}

static void disk_fills_up(void **state)
{
	(void)state;
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	for (int at = 5; at < 200; at += 7)
		CHECK(run(at, true, ENOSPC, acknowledged));
	free(acknowledged);
}

static void full_disk_is_a_clear_error(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	struct faults f = { .at = 1, .sticky = true, .error = ENOSPC, .off = true };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	store_io_hook = (struct store_io_hook){ fail_at, &f };
	CHECK_OK(counted_append(s, 1, &e), &e);
	atomic_store(&f.off, false);
	CHECK(counted_append(s, 2, &e) == E_UNAVAILABLE);
	CHECK(strstr(e.text, "No space left") != NULL);
	atomic_store(&f.off, true);
	CHECK_OK(counted_append(s, 2, &e), &e);
	store_close(s);
	store_io_hook = (struct store_io_hook){ 0 };
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(each_operation_fails_once), cmocka_unit_test(disk_fills_up),
	cmocka_unit_test(full_disk_is_a_clear_error))
