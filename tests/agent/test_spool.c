/* SPDX-License-Identifier: Apache-2.0 */
#include "temp_dir.h"
#include "test.h"

#include "agent/send/spool.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/resource.h>

static void spool_cleanup(struct spool **s)
{
	spool_close(*s);
}

static struct spool *open_spool(const struct temp_dir *d, uint64_t bytes_max)
{
	struct spool *s = NULL;
	struct err e;
	CHECK_OK(spool_open(d->path, bytes_max, &s, &e), &e);
	return s;
}

static void add(struct spool *s, const char *text, uint32_t samples, struct spool_sum *lost)
{
	struct err e;
	CHECK_OK(spool_add(s, str_of(text), samples, lost, &e), &e);
}

static void expect_oldest(struct spool *s, const char *text, uint32_t samples)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	struct spool_sum damaged = { 0 };
	uint32_t got = 0;
	struct err e;
	CHECK_OK(spool_oldest(s, &b, &got, &damaged, &e), &e);
	CHECK_STR(buf_view(&b), text);
	CHECK(got == samples && damaged.batches == 0);
}

static void comes_back_oldest_first(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	struct spool_sum lost = { 0 };
	struct spool *s = open_spool(&d, 1 << 20);
	add(s, "one", 1, &lost);
	add(s, "two", 20, &lost);
	expect_oldest(s, "one", 1);
	expect_oldest(s, "one", 1); /* until it is removed */
	spool_remove_oldest(s);
	add(s, "three", 300, &lost);
	CHECK(spool_content(s).batches == 2 && spool_content(s).samples == 320);
	spool_close(s);

	s = open_spool(&d, 1 << 20); /* by the next agent */
	CHECK(spool_content(s).batches == 2 && spool_content(s).samples == 320);
	add(s, "four", 4000, &lost);
	expect_oldest(s, "two", 20);
	spool_remove_oldest(s);
	expect_oldest(s, "three", 300);
	spool_remove_oldest(s);
	expect_oldest(s, "four", 4000);
	spool_remove_oldest(s);
	CHECK(spool_content(s).batches == 0 && spool_content(s).bytes == 0);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 100);
	uint32_t n;
	CHECK(spool_oldest(s, &b, &n, &lost, NULL) == E_NOTFOUND);
	CHECK(lost.batches == 0 && temp_dir_count(&d, ".batch") == 0);
	spool_close(s);
}

static void many_batches_keep_their_order(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	CLEANUP(spool_cleanup) struct spool *s = open_spool(&d, 1 << 20);
	struct spool_sum lost = { 0 };
	char text[16];
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "batch %u", i);
		add(s, text, i, &lost);
	}
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "batch %u", i);
		expect_oldest(s, text, i);
		spool_remove_oldest(s);
	}
}

static void the_limit_drops_the_oldest(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	CLEANUP(spool_cleanup) struct spool *s = open_spool(&d, 1 << 20);
	struct spool_sum lost = { 0 };
	add(s, "first", 7, &lost);
	uint64_t one = spool_content(s).bytes;
	spool_close(s);
	s = open_spool(&d, one * 3 + one / 2);
	add(s, "secnd", 10, &lost);
	add(s, "third", 100, &lost);
	CHECK(lost.batches == 0);
	add(s, "fourt", 1000, &lost);
	CHECK(lost.batches == 1 && lost.samples == 7);
	CHECK(spool_content(s).bytes <= one * 3 + one / 2 && temp_dir_count(&d, ".batch") == 3);
	expect_oldest(s, "secnd", 10);
	spool_close(s);
	s = open_spool(&d, 10); /* smaller than one batch: refused, nothing dropped for it */
	CHECK(spool_add(s, STR("x"), 1, &lost, NULL) == E_LIMIT);
	CHECK(spool_content(s).batches == 3);
}

static void flip_byte(const struct temp_dir *d, size_t offset)
{
	DIR *dir = opendir(d->path);
	for (struct dirent *n; (n = readdir(dir));) {
		if (!str_ends(str_of(n->d_name), STR(".batch")))
			continue;
		uint8_t byte = 0;
		CLEANUP(fd_cleanup) int fd = openat(dirfd(dir), n->d_name, O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)offset) == 1);
		byte ^= 0x10;
		CHECK(pwrite(fd, &byte, 1, (off_t)offset) == 1);
	}
	closedir(dir);
}

static void damage_is_found_and_counted(void **state)
{
	(void)state;
	for (size_t offset = 0; offset < 30; offset++) {
		CLEANUP(temp_dir_deinit) struct temp_dir d;
		temp_dir_init(&d);
		CLEANUP(spool_cleanup) struct spool *s = open_spool(&d, 1 << 20);
		struct spool_sum lost = { 0 };
		add(s, "a batch of samples", 5, &lost);
		flip_byte(&d, offset);
		add(s, "the next", 6, &lost);
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1 << 20);
		struct spool_sum damaged = { 0 };
		uint32_t samples;
		CHECK(spool_oldest(s, &b, &samples, &damaged, NULL) == OK);
		CHECK(damaged.batches == 1 && damaged.samples == 5 && samples == 6);
		CHECK_STR(buf_view(&b), "the next");
		CHECK(spool_content(s).batches == 1 && temp_dir_count(&d, ".batch") == 1);
	}
}

/* No descriptor is free for a moment: nothing is damaged. */
static void what_cannot_be_opened_now_stays(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	CLEANUP(spool_cleanup) struct spool *s = open_spool(&d, 1 << 20);
	struct spool_sum lost = { 0 }, damaged = { 0 };
	struct rlimit limit, none;
	struct err e = { 0 };
	uint32_t samples;
	add(s, "a batch", 5, &lost);
	add(s, "the next", 6, &lost);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	int free_fd = dup(0);
	CHECK(free_fd >= 0 && close(free_fd) == 0);
	none = (struct rlimit){ (rlim_t)free_fd, limit.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	enum status st = spool_oldest(s, &b, &samples, &damaged, &e);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(st == E_UNAVAILABLE && strstr(e.text, ".batch: Too many open files"));
	CHECK(damaged.batches == 0 && spool_content(s).batches == 2);
	expect_oldest(s, "a batch", 5);
	/* And one that is gone is. */
	char command[256];
	snprintf(command, sizeof(command), "rm %s/*.batch", d.path);
	CHECK(system(command) == 0);
	CHECK(spool_oldest(s, &b, &samples, &damaged, &e) == E_NOTFOUND && damaged.batches >= 1);
}

static void foreign_files_are_left_alone(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	static const char *const names[] = { "README", "0000000000000001-00000001.batch2",
		"000000000000000g-00000001.batch", "0000000000000001-00000001.batch.7.tmp",
		"0000000000000002-00000001.batch" };
	char path[256];
	struct err e;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", d.path, names[i]);
		CHECK_OK(os_replace_file(path, "x", 1, 0600, &e), &e);
	}
	CLEANUP(spool_cleanup) struct spool *s = open_spool(&d, 1 << 20);
	CHECK(spool_content(s).batches == 1); /* the last, though it is no batch inside */
	CHECK(temp_dir_count(&d, ".tmp") == 0);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 100);
	struct spool_sum damaged = { 0 };
	uint32_t n;
	CHECK(spool_oldest(s, &b, &n, &damaged, NULL) == E_NOTFOUND && damaged.batches == 1);
	CHECK(temp_dir_count(&d, "README") == 1 && temp_dir_count(&d, ".batch2") == 1);
}

static void one_agent_at_a_time(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	struct spool *s = open_spool(&d, 1 << 20), *second = NULL;
	struct err e;
	CHECK(spool_open(d.path, 1 << 20, &second, &e) == E_EXISTS && !second);
	CHECK(strstr(e.text, d.path));
	spool_close(s);
	second = open_spool(&d, 1 << 20);
	spool_close(second);
}

static void outlives_its_folder(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	char dir[PATH_MAX], command[PATH_MAX + 16];
	struct spool_sum lost = { 0 };
	struct spool *s = NULL, *other = NULL;
	struct err e;
	snprintf(dir, sizeof(dir), "%.4000s/spool", d.path);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK_OK(spool_open(dir, 1 << 20, &s, &e), &e);
	add(s, "one", 1, &lost);
	CHECK(system(command) == 0);
	add(s, "two", 2, &lost);
	CHECK(spool_content(s).batches == 2 && lost.batches == 0);
	/* It is ours again, and what was in it is counted. */
	CHECK(spool_open(dir, 1 << 20, &other, &e) == E_EXISTS);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	uint32_t samples = 0;
	CHECK_OK(spool_oldest(s, &b, &samples, &lost, &e), &e);
	CHECK(samples == 2 && lost.batches == 1 && lost.samples == 1);
	spool_remove_oldest(s);
	/* With all of it gone there is nothing to send, and no harm. */
	CHECK(system(command) == 0);
	CHECK(spool_oldest(s, &b, &samples, &lost, NULL) == E_NOTFOUND);
	spool_close(s);
}

TEST_MAIN(cmocka_unit_test(outlives_its_folder), cmocka_unit_test(comes_back_oldest_first),
	cmocka_unit_test(many_batches_keep_their_order),
	cmocka_unit_test(the_limit_drops_the_oldest), cmocka_unit_test(damage_is_found_and_counted),
	cmocka_unit_test(what_cannot_be_opened_now_stays),
	cmocka_unit_test(foreign_files_are_left_alone), cmocka_unit_test(one_agent_at_a_time))
