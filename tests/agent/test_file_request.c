/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a key: bound, failed and tried later, replaced, put off. */
#include "files_fixture.h"

static void what_cannot_be_opened_is_counted_and_tried_later(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	struct file_notice lie = m.notice;
	lie.key.inode += 1000000; /* not the inode that is mapped there */
	files_notice(f, &lie, getpid());
	wait_for(&files_metrics(f)->open_failed, 1);
	struct published p;
	CHECK(published_of(&lie.key, &p) == 0);
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (metric_get(&files_metrics(f)->open_failed) < 2 && clock_monotonic_ns() < end) {
		files_notice(f, &lie, getpid());
		nap();
	}
	CHECK(metric_get(&files_metrics(f)->open_failed) >= 2);
	CHECK(metric_get(&files_metrics(f)->known) == 0);
	unmap_file(&m);
	files_free(f);
}

static void a_file_behind_a_reused_inode_replaces_the_old_one(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	files_notice(f, &m.notice, getpid());
	struct published before = wait_published(&m.notice.key, 1);
	struct gen_elf g; /* the same inode, another content */
	make_library(&g, 20, 2);
	int fd = open(m.path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && os_write_full(fd, g.file.data, g.file.len, m.path, NULL) == OK);
	close(fd);
	gen_elf_deinit(&g);
	m.notice.key.generation = 77;
	/* The first one is published before it is done with. */
	struct published after = before;
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (published_of(&m.notice.key, &after) < 2 && clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		nap();
	}
	CHECK(after.file_id != before.file_id && after.key.generation == 77);
	unmap_file(&m);
	files_free(f);
}

/* Until it was published `times` times, or for a while. The times. */
static size_t notice_until(struct files *f, const struct mapped *m, size_t times, int64_t most_ns)
{
	struct published p;
	int64_t end = clock_monotonic_ns() + most_ns;
	while (published_of(&m->notice.key, &p) < times && clock_monotonic_ns() < end) {
		files_notice(f, &m->notice, getpid());
		nap();
	}
	return published_of(&m->notice.key, &p);
}

static void wait_bound(struct files *f, const struct mapped *m)
{
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (!files_find(f, &m->notice.key) && clock_monotonic_ns() < end)
		nap();
	CHECK(files_find(f, &m->notice.key));
}

/* By a notice that says whose the inode is: of the same file nothing comes, another one is loaded
 * at once, and what was bound without is made sure of once. */
static void tells_files_of_one_inode_apart(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	uint32_t id = 0;
	CHECK(notice_until(f, &m, 1, WAIT_NS) == 1);
	wait_bound(f, &m);
	m.notice.key.generation = 5;
	CHECK(files_look_up(f, &m.notice.key, &id) == FILES_KNOWN); /* as far as one can tell */
	CHECK(notice_until(f, &m, 2, WAIT_NS) == 2);
	wait_bound(f, &m);
	CHECK(notice_until(f, &m, 3, 1500 * NS_PER_MS) == 2);
	wait_bound(f, &m);
	m.notice.key.generation = 6;
	CHECK(files_find(f, &m.notice.key) == 0);
	CHECK(files_look_up(f, &m.notice.key, &id) == FILES_UNKNOWN);
	CHECK(notice_until(f, &m, 3, WAIT_NS) == 3);
	wait_bound(f, &m);
	m.notice.key.generation = 5;
	CHECK(files_find(f, &m.notice.key) == 0);
	struct published p;
	CHECK(published_of(&m.notice.key, &p) == 3 && p.key.generation == 6);
	unmap_file(&m);
	files_free(f);
}

/* What was bound without a generation cannot be opened any more: it stays, and is not tried again
 * with each program that is executed. */
static void gives_up_slowly_on_what_cannot_be_made_sure_of(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	CHECK(notice_until(f, &m, 1, WAIT_NS) == 1);
	wait_bound(f, &m);
	uint32_t id = files_find(f, &m.notice.key);
	unmap_file(&m);
	m.notice.key.generation = 5;
	uint64_t failed = metric_get(&files_metrics(f)->open_failed);
	CHECK(notice_until(f, &m, 2, 2500 * NS_PER_MS) == 1);
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (metric_get(&files_metrics(f)->open_failed) == failed && clock_monotonic_ns() < end)
		nap();
	wait_bound(f, &m);
	/* At once, and two seconds later. */
	failed = metric_get(&files_metrics(f)->open_failed) - failed;
	CHECK(failed >= 1 && failed <= 2);
	CHECK(files_find(f, &m.notice.key) == id && fake.retracted == 0);
	files_free(f);
}

static void a_program_executed_again_is_loaded_again_only_when_evicted(void **state)
{
	(void)state;
	struct files_config c = { .runtimes = 1u << RUNTIME_CPYTHON };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	struct published p;
	files_notice(f, &m.notice, getpid());
	wait_published(&m.notice.key, 1);
	/* Longer than a bound file is left alone. */
	int64_t end = clock_monotonic_ns() + 1500 * NS_PER_MS;
	while (clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		nap();
	}
	CHECK(published_of(&m.notice.key, &p) == 1);
	CHECK(metric_get(&files_metrics(f)->built) == 1);
	int64_t work_ns = files_work_ns(f); /* also of what is not done */
	CHECK(work_ns > 0 && (uint64_t)work_ns >= metric_get(&files_metrics(f)->build_ns));
	pthread_mutex_lock(&fake.lock);
	fake.evicts = true;
	pthread_mutex_unlock(&fake.lock);
	end = clock_monotonic_ns() + WAIT_NS;
	while (published_of(&m.notice.key, &p) < 2 && clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		nap();
	}
	CHECK(published_of(&m.notice.key, &p) == 2);
	/* It is not looked into for a runtime again, nor is another of the same content. */
	struct mapped last = map_library("last.so", 10, 1);
	files_notice(f, &last.notice, getpid());
	wait_published(&last.notice.key, 1);
	CHECK(metric_get(&files_metrics(f)->runtimes_refused) == 1);
	unmap_file(&last);
	unmap_file(&m);
	files_free(f);
}

static void a_full_queue_drops_and_counts(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	pthread_mutex_lock(&fake.gate);
	files_notice(f, &m.notice, getpid());
	/* As fast as they are looked at, and faster: some time the queue is full. */
	for (uint32_t i = 0; i < 1u << 24 && metric_get(&files_metrics(f)->notices_dropped) < 9;
		i++) {
		struct file_notice n = { .key = { 1u << 30 | i, 1, 0 } };
		files_notice(f, &n, getpid()); /* does not block */
	}
	CHECK(metric_get(&files_metrics(f)->notices_dropped) >= 9);
	pthread_mutex_unlock(&fake.gate);
	unmap_file(&m);
	files_free(f);
}

/* It is executed again when the queue is full: it is published still, and nothing else. */
static void a_full_queue_takes_nothing_from_a_bound_file(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	files_notice(f, &m.notice, getpid());
	struct published p = wait_published(&m.notice.key, 1);
	while (!files_find(f, &m.notice.key)) /* it is published before it is done with */
		nap();
	/* It is looked at again a second after it was bound. */
	int64_t end = clock_monotonic_ns() + 2 * NS_PER_SEC;
	uint32_t next = 0, id = 0;
	while (clock_monotonic_ns() < end) {
		uint64_t dropped = metric_get(&files_metrics(f)->notices_dropped);
		while (metric_get(&files_metrics(f)->notices_dropped) == dropped) {
			struct file_notice n = { .key = { 1u << 30 | next++, 1, 0 } };
			files_notice(f, &n, getpid());
		}
		files_notice(f, &m.notice, getpid());
		CHECK(files_look_up(f, &m.notice.key, &id) == FILES_KNOWN && id == p.file_id);
	}
	CHECK(fake.retracted == 0);
	unmap_file(&m);
	files_free(f);
}

/* It cannot be read again (its process is gone): what is published stays as long as the sampler has
 * it, and is taken back when it does not. */
static void keeps_what_it_cannot_read_again(void **state)
{
	(void)state;
	for (int keeps = 0; keeps < 2; keeps++) {
		struct files *f = make_files(&(struct files_config){ 0 });
		struct mapped m = map_library(keeps ? "kept" : "lost", 20, (uint8_t)(70 + keeps));
		files_notice(f, &m.notice, getpid());
		wait_published(&m.notice.key, 1);
		uint32_t id = 0;
		int64_t end = clock_monotonic_ns() + WAIT_NS;
		while (files_look_up(f, &m.notice.key, &id) != FILES_KNOWN &&
			clock_monotonic_ns() < end)
			nap();
		size_t retracted = fake.retracted;
		m.notice.key.generation = 5; /* it may be another one: it is to be read again */
		fake.evicts = !keeps;
		int64_t second = clock_monotonic_ns() + NS_PER_SEC + 100 * NS_PER_MS;
		unmap_file(&m);
		while (clock_monotonic_ns() < second)
			nap();
		files_notice(f, &m.notice, dead_child());
		wait_for(&files_metrics(f)->open_failed, 1);
		enum files_state want = keeps ? FILES_KNOWN : FILES_FAILED;
		end = clock_monotonic_ns() + WAIT_NS;
		while (files_look_up(f, &m.notice.key, &id) != want && clock_monotonic_ns() < end)
			nap();
		CHECK(files_look_up(f, &m.notice.key, &id) == want);
		CHECK((fake.retracted > retracted) == !keeps);
		files_free(f);
	}
}

FILES_TEST_MAIN(cmocka_unit_test_setup(what_cannot_be_opened_is_counted_and_tried_later, reset),
	cmocka_unit_test_setup(a_file_behind_a_reused_inode_replaces_the_old_one, reset),
	cmocka_unit_test_setup(tells_files_of_one_inode_apart, reset),
	cmocka_unit_test_setup(gives_up_slowly_on_what_cannot_be_made_sure_of, reset),
	cmocka_unit_test_setup(a_program_executed_again_is_loaded_again_only_when_evicted, reset),
	cmocka_unit_test_setup(a_full_queue_drops_and_counts, reset),
	cmocka_unit_test_setup(a_full_queue_takes_nothing_from_a_bound_file, reset),
	cmocka_unit_test_setup(keeps_what_it_cannot_read_again, reset))
