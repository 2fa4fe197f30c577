/* SPDX-License-Identifier: Apache-2.0 */
/* Quarantine while the store is open. */
#define FIXTURE_FORKS
#include "base/clock.h"
#include "codec/codec.h"
#include "tests/store/counted.h"

#include <errno.h>
#include <sys/wait.h>

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
static atomic_bool undecided; /* from the next manifest's rename on no directory can be synced */
static char manifest_path[128];
static ino_t manifest_before;

/* One hook for all, set before the store's threads start: they read it without a lock. */
static int refuse(void *ctx, const char *operation)
{
	(void)ctx;
	const char *what = atomic_load(&refused);
	if (what && strcmp(what, operation) == 0)
		return EIO;
	struct stat st;
	return atomic_load(&undecided) && strcmp(operation, "syncdir") == 0 &&
			       stat(manifest_path, &st) == 0 && st.st_ino != manifest_before
		       ? EIO
		       : 0;
}

static size_t garbage(struct store *s)
{
	lock_take(&s->lock);
	size_t n = s->garbage.len;
	lock_release(&s->lock);
	return n;
}

static size_t files_in(const char *dir)
{
	char path[128];
	struct arena a;
	struct str *names;
	size_t n;
	struct err e = { 0 };
	snprintf(path, sizeof(path), "%s/parts", dir);
	arena_init(&a, 1 << 16);
	CHECK_OK(os_list_dir(path, &a, &names, &n, &e), &e);
	arena_deinit(&a);
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

/* A full disk removes what was begun: tries that fail for hours leave nothing. */
static void tries_on_a_full_disk_leave_nothing(void **state)
{
	(void)state;
	char dir[64];
	fixture_dir(dir);
	struct store *s = open_with_hook(dir);
	CHECK(counted_append(s, 1, NULL) == OK);
	atomic_store(&refused, "write");
	for (int i = 0; i < 20; i++)
		CHECK(store_flush(s, NULL) != OK);
	CHECK(garbage(s) == 0 && files_in(dir) == 0);
	atomic_store(&refused, NULL);
	CHECK(store_flush(s, NULL) == OK);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* A step of retention; what it needs of the log is not looked at here. */
static void drop_first(struct store *s)
{
	struct err e = { 0 };
	struct part *old = s->parts.v[0];
	CHECK_OK(store_change_parts(s, &(struct parts_change){ .old = &old, .old_count = 1 }, &e),
		&e);
}

/* What cannot be removed is not in the set, and goes when it can be. */
static void what_cannot_be_removed_goes_later(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_hook(dir);
	fixture_stop_merging(s);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(counted_append(s, i, NULL) == OK);
		CHECK_OK(store_flush(s, &e), &e);
	}
	atomic_store(&refused, "unlink");
	drop_first(s);
	CHECK(fixture_part_count(s) == 1 && garbage(s) == 1 && files_in(dir) == 2);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	atomic_store(&refused, NULL);
	store_manifest_write(s);
	CHECK(garbage(s) == 0 && files_in(dir) == 1);
	store_close(s);
	fixture_clean(dir);
}

/* ---- a manifest of unknown fate ---- */

/* A part that is written, and a manifest that names it and may be on the disk or not. */
static struct store *undecide(const char *dir)
{
	struct store *s = open_with_hook(dir);
	fixture_wait_started(s);
	fixture_stop_merging(s);
	CHECK(counted_append(s, 1, NULL) == OK);
	struct stat st;
	snprintf(manifest_path, sizeof(manifest_path), "%s/MANIFEST", dir);
	CHECK(stat(manifest_path, &st) == 0);
	manifest_before = st.st_ino;
	atomic_store(&undecided, true);
	CHECK(store_flush(s, NULL) == E_IO);
	CHECK(garbage(s) == 1 && files_in(dir) == 1 && fixture_part_count(s) == 0);
	return s;
}

static void no_part_is_written_until_it_is_decided(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = undecide(dir);
	for (int i = 0; i < 3; i++)
		CHECK(store_flush(s, &e) == E_UNAVAILABLE && strstr(e.text, "manifest") != NULL);
	CHECK(garbage(s) == 1 && files_in(dir) == 1 && samples_left(s) == COUNTED_SAMPLES);
	atomic_store(&undecided, false);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK(garbage(s) == 0 && files_in(dir) == 1 && fixture_part_count(s) == 1);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* The next start finds the one or the other: that which names the part, or, when the store's own
 * thread has tried again meanwhile, that which does not. */
static void a_crash_decides_it(void **state)
{
	(void)state;
	char dir[64];
	int status;
	struct err e = { 0 };
	fixture_dir(dir);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void)undecide(dir);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	struct store *s = open_with_hook(dir);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK(fixture_part_count(s) == 1 && samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* ---- the manifest is the set ---- */

static void copy(const char *from, const char *to)
{
	struct buf b;
	struct err e = { 0 };
	buf_init(&b, 1 << 20);
	CHECK_OK(os_read_file(from, &b, &e), &e);
	CHECK_OK(os_replace_file(to, b.data, b.len, 0600, &e), &e);
	buf_deinit(&b);
}

/* As one of before minor version 1. */
static void make_old(const char *path)
{
	struct buf b;
	struct err e = { 0 };
	buf_init(&b, 1 << 20);
	CHECK_OK(os_read_file(path, &b, &e), &e);
	CHECK(b.len >= 68 && b.data[10] == 1);
	b.data[10] = 0;
	uint32_t crc = codec_crc32c(0, b.data, b.len - 4);
	memcpy(b.data + b.len - 4, &crc, 4);
	CHECK_OK(os_replace_file(path, b.data, b.len, 0600, &e), &e);
	buf_deinit(&b);
}

static struct store *open_told(const char *dir, struct notices *n)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	*n = (struct notices){ .lock = PTHREAD_MUTEX_INITIALIZER };
	CHECK_OK(store_open(&c, fixture_notice, n, &s, &e), &e);
	fixture_stop_merging(s);
	return s;
}

/* The path of the only part of a new store. */
static void make_one(const char *dir, char path[128])
{
	struct notices n;
	struct err e = { 0 };
	struct store *s = open_told(dir, &n);
	CHECK(counted_append(s, 1, NULL) == OK);
	CHECK_OK(store_flush(s, &e), &e);
	snprintf(path, 128, "%s", part_path(s->parts.v[0]));
	store_close(s);
}

/* A file that the manifest does not name: the store's own goes; another's stays, and is not read.
 */
static void only_what_it_names_is_there(void **state)
{
	(void)state;
	char dir[64], other[64], path[128], foreign[128], kept[128];
	struct notices n;
	fixture_dir(dir);
	fixture_dir(other);
	make_one(dir, path);
	make_one(other, foreign);
	snprintf(kept, sizeof(kept), "%s/kept", other);
	copy(path, kept);
	struct store *s = open_told(dir, &n);
	CHECK(n.count == 0 && samples_left(s) == COUNTED_SAMPLES);
	drop_first(s);
	store_close(s);
	copy(kept, path);
	s = open_told(dir, &n);
	CHECK(strstr(n.last, "1 part files that the manifest does not name were removed") != NULL);
	CHECK(samples_left(s) == 0 && files_in(dir) == 0);
	store_close(s);
	copy(foreign, path); /* the same number */
	s = open_told(dir, &n);
	CHECK(strstr(n.last, "firn store import") != NULL);
	CHECK(samples_left(s) == 0 && files_in(dir) == 1 && s->next_part > 1);
	store_close(s);
	fixture_clean(dir);
	fixture_clean(other);
}

/* An older manifest was put back, as of a backup: the parts that are newer are kept, and are there
 * again as the format's page says. */
static void an_older_one_costs_no_part(void **state)
{
	(void)state;
	char dir[64], path[128], aside[128], manifest[128], before[128];
	struct notices n;
	fixture_dir(dir);
	snprintf(manifest, sizeof(manifest), "%s/MANIFEST", dir);
	snprintf(before, sizeof(before), "%s/before", dir);
	store_close(open_told(dir, &n));
	copy(manifest, before); /* names no part */
	make_one(dir, path);
	copy(before, manifest);
	struct store *s = open_told(dir, &n);
	CHECK(strstr(n.all, "1 parts are newer than the manifest") != NULL);
	CHECK(samples_left(s) == 0 && files_in(dir) == 0 && s->next_part > 1);
	CHECK(metric_get(&s->metrics.quarantined) == 0);
	store_close(s);
	snprintf(aside, sizeof(aside), "%s/quarantine%s", dir, strrchr(path, '/'));
	CHECK(rename(aside, path) == 0 && unlink(manifest) == 0);
	s = open_told(dir, &n);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* Without it, and with one of before it was the set, the files say what there is. */
static void without_it_the_files_tell(void **state)
{
	(void)state;
	char dir[64], path[128], manifest[128], before[128];
	struct notices n;
	struct err e = { 0 };
	fixture_dir(dir);
	snprintf(manifest, sizeof(manifest), "%s/MANIFEST", dir);
	snprintf(before, sizeof(before), "%s/before", dir);
	store_close(open_told(dir, &n));
	copy(manifest, before); /* names no part */
	make_old(before);
	make_one(dir, path);
	CHECK(unlink(manifest) == 0);
	struct store *s = open_told(dir, &n);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	copy(before, manifest);
	s = open_told(dir, &n);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	struct manifest m = { 0 };
	s = open_told(dir, &n);
	CHECK_OK(store_manifest_read(s, &m, &e), &e);
	CHECK(m.is_set && m.parts.len == 1);
	manifest_deinit(&m);
	store_close(s);
	fixture_clean(dir);
}

static const struct profile_locations no_locations; /* nobody is told */

/* A part that cannot be read now stays named, and is there again with the firn that reads it. */
static void what_is_left_alone_stays_named(void **state)
{
	(void)state;
	char dir[64], path[128], kept[128];
	struct notices n;
	struct err e = { 0 };
	fixture_dir(dir);
	make_one(dir, path);
	snprintf(kept, sizeof(kept), "%s/kept", dir);
	copy(path, kept);
	uint8_t header[64] = "FIRNPART\x02";
	uint32_t crc = codec_crc32c(0, header, 28);
	memcpy(header + 28, &crc, 4);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, header, sizeof(header), 0) == sizeof(header));
	close(fd);
	for (uint32_t i = 2; i < 4; i++) {
		struct store *s = open_told(dir, &n);
		CHECK(strstr(n.all, "left alone") != NULL);
		CHECK(store_locations(s, &no_locations, NULL, &e) == E_UNSUPPORTED);
		CHECK(counted_append(s, i, NULL) == OK);
		CHECK_OK(store_flush(s, &e), &e);
		CHECK(samples_left(s) == (i - 1) * COUNTED_SAMPLES);
		store_close(s);
	}
	copy(kept, path);
	struct store *s = open_told(dir, &n);
	CHECK(n.count == 0 && samples_left(s) == 3 * COUNTED_SAMPLES);
	store_close(s);
	fixture_clean(dir);
}

/* A damaged part that cannot be moved stays named too: the next start tries again. */
static void quarantine_is_tried_again(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct notices n;
	fixture_dir(dir);
	make_one(dir, path);
	struct store *s = open_told(dir, &n);
	struct part *p = s->parts.v[0];
	store_io_hook = (struct store_io_hook){ refuse, NULL };
	atomic_store(&refused, "rename");
	store_quarantine(s, p, "test");
	CHECK(strstr(n.all, "but: ") != NULL && samples_left(s) == 0);
	atomic_store(&refused, NULL);
	store_manifest_write(s);
	store_close(s);
	s = open_told(dir, &n);
	CHECK(n.count == 0 && samples_left(s) == COUNTED_SAMPLES);
	store_close(s);
	store_io_hook = (struct store_io_hook){ 0 };
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(damage_found_by_a_query),
	cmocka_unit_test(tries_on_a_full_disk_leave_nothing),
	cmocka_unit_test(what_cannot_be_removed_goes_later),
	cmocka_unit_test(no_part_is_written_until_it_is_decided),
	cmocka_unit_test(a_crash_decides_it), cmocka_unit_test(only_what_it_names_is_there),
	cmocka_unit_test(an_older_one_costs_no_part), cmocka_unit_test(without_it_the_files_tell),
	cmocka_unit_test(what_is_left_alone_stays_named),
	cmocka_unit_test(quarantine_is_tried_again))
