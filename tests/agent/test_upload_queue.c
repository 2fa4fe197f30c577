/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "agent/uploader/upload_queue.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct upload_queue book;
static struct upload_job job;
static const struct upload_queue_times times = { 1000, 60, 10, 300, 30 };

static int setup(void **state)
{
	(void)state;
	return upload_queue_init(&book, 3, &times) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	upload_queue_deinit(&book);
	return 0;
}

static bool met(const char *id, int64_t now)
{
	return upload_queue_met(&book, 7, id, "/bin/app", 42, now);
}

static bool take(int64_t now)
{
	return upload_queue_take(&book, now, &job);
}

static void finish(enum upload_outcome o, int64_t now)
{
	upload_queue_finish(&book, &job, o, now);
}

static void takes_what_samples_had_in_order(void **state)
{
	(void)state;
	upload_queue_seen(&book, "aaa", "/bin/a", -1, 0);
	CHECK(!take(1) && upload_queue_next_ns(&book) == INT64_MAX); /* mapped only */
	CHECK(met("bbb", 2) && met("aaa", 3) && !met("bbb", 4));
	CHECK(upload_queue_waiting(&book) == 2 && upload_queue_next_ns(&book) == 0);
	CHECK(take(5));
	assert_string_equal(job.build_id, "bbb");
	CHECK(job.file_id == 7 && job.pid == 42 && job.fd == -1 && !job.is_begun);
	finish(UPLOAD_SENT, 5);
	CHECK(take(6));
	assert_string_equal(job.build_id, "aaa");
	assert_string_equal(job.path, "/bin/a");
	CHECK(!met("aaa", 7)); /* it is under way */
	finish(UPLOAD_NOT_WANTED, 7);
	CHECK(!take(8) && upload_queue_waiting(&book) == 0);
	CHECK(!met("bbb", 1004) && met("bbb", 1005)); /* after times.again_ns */
	CHECK(!met("", 1006) && take(1006) && !take(1006));
	finish(UPLOAD_SENT, 1006);
}

/* clang-format off */
static const struct {
	const char *name;
	enum upload_outcome outcome;
	int64_t first, second;
	bool needs_met, never;
} cases[] = {
	{ "gone", UPLOAD_NO_FILE, 30, 60, true, false },
	{ "changed", UPLOAD_CHANGED, 10, 20, false, false },
	{ "broken", UPLOAD_BROKEN, 10, 20, false, false },
	{ "refused", UPLOAD_REFUSED, 300, 600, false, false },
	{ "somebody else", UPLOAD_IN_PROGRESS, 60, 60, false, false },
	{ "nothing in it", UPLOAD_NO_NAMES, 0, 0, false, true },
	{ "there", UPLOAD_NOT_WANTED, 1000, 1000, true, false },
};
/* clang-format on */

static void tries_again_when_it_may_help(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		setup(NULL);
		int64_t now = 100000;
		CHECK_CASE(c, met("aaa", now) && take(now));
		for (int round = 0; round < 2; round++) {
			finish(c->outcome, now);
			int64_t due = now + (round ? c->second : c->first);
			CHECK_CASE(c, !take(now) && !met("aaa", now));
			CHECK_CASE(c, !take(due - 1) && !met("aaa", due - 1) && !take(due - 1));
			bool waits = upload_queue_next_ns(&book) != INT64_MAX;
			CHECK_CASE(c, waits == !(c->needs_met || c->never));
			CHECK_CASE(c, upload_queue_waiting(&book) == waits);
			CHECK_CASE(c, met("aaa", due) == c->needs_met);
			now = due;
			CHECK_CASE(c, take(now) == !c->never);
			if (c->never)
				break;
		}
		if (!c->never)
			finish(UPLOAD_SENT, now);
		teardown(NULL);
	}
	setup(NULL);
}

/* A server that cuts every upload of a file is not driven for ever. */
static void leaves_what_always_breaks_off(void **state)
{
	(void)state;
	int64_t now = 100000;
	CHECK(met("aaa", now));
	for (uint32_t i = 0; i < UPLOAD_QUEUE_BROKEN_MAX; i++) {
		CHECK(take(now) && job.attempts == i);
		finish(UPLOAD_BROKEN, now);
		now += 10 << i;
	}
	CHECK(upload_queue_next_ns(&book) == INT64_MAX && upload_queue_waiting(&book) == 0);
	CHECK(!met("aaa", now) && !take(now));
	CHECK(met("aaa", now + 1000) && take(now + 1000)); /* after times.again_ns */
	CHECK(job.attempts == 0);
	finish(UPLOAD_SENT, now + 1000);
}

/* No fault of the file's: it waits on, and keeps what it had. */
static void waits_while_the_server_is_away(void **state)
{
	(void)state;
	CHECK(met("aaa", 1) && met("bbb", 2) && take(3));
	job.is_begun = true;
	finish(UPLOAD_AWAY, 4);
	CHECK(take(5) && strcmp(job.build_id, "bbb") == 0);
	finish(UPLOAD_SENT, 5);
	CHECK(take(6) && strcmp(job.build_id, "aaa") == 0 && job.is_begun);
	finish(UPLOAD_SENT, 7);
	CHECK(met("aaa", 2000) && take(2000) && !job.is_begun);
	finish(UPLOAD_SENT, 2000);
}

static uint32_t close_dropped(void)
{
	int fds[UPLOAD_QUEUE_DROPPED_MAX];
	uint32_t count = upload_queue_dropped(&book, fds);
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
	return count;
}

static void keeps_descriptors_for_a_while(void **state)
{
	(void)state;
	int fd = memfd_create("app", MFD_CLOEXEC); /* nobody else could open it */
	int named = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	upload_queue_seen(&book, "aaa", "/bin/a", fd, 0);
	upload_queue_seen(&book, "bbb", "/bin/b", fd, 10);
	upload_queue_seen(&book, "ccc", "/bin/c", named, 0);
	CHECK(book.fresh == 3);
	CHECK(met("aaa", 1) && take(2) && job.fd >= 0 && job.fd != fd && book.fresh == 2);
	finish(UPLOAD_AWAY, 3);
	CHECK(book.fresh == 3 && job.fd == -1); /* for the next time */
	upload_queue_tick(&book, UPLOAD_QUEUE_FRESH_NS - 1);
	CHECK(book.fresh == 3 && close_dropped() == 0);
	upload_queue_tick(&book, UPLOAD_QUEUE_FRESH_NS);
	CHECK(book.fresh == 2 && close_dropped() == 1);
	upload_queue_tick(&book, UPLOAD_QUEUE_NAMELESS_NS);
	CHECK(book.fresh == 1 && close_dropped() == 1);
	CHECK(take(4) && job.fd == -1);
	finish(UPLOAD_SENT, 5);
	upload_queue_seen(&book, "aaa", "/bin/a", fd, 6);
	CHECK(book.fresh == 1); /* it was sent */
	CHECK(met("bbb", 7) && take(7) && job.fd >= 0);
	finish(UPLOAD_SENT, 7);
	CHECK(book.fresh == 0 && job.fd == -1 && close_dropped() == 1);
	char id[16];
	for (int i = 0; i < 2 * UPLOAD_QUEUE_FRESH_MAX; i++) {
		snprintf(id, sizeof(id), "id%d", i);
		upload_queue_seen(&book, id, "/bin/x", fd, 10);
	}
	CHECK(book.fresh == UPLOAD_QUEUE_FRESH_MAX);
	close(fd);
	close(named);
}

static void counts_what_is_too_much(void **state)
{
	(void)state;
	char id[16];
	for (int i = 0; i < 3; i++) {
		snprintf(id, sizeof(id), "id%d", i);
		CHECK(met(id, i));
	}
	CHECK(!met("id3", 4) && metric_get(&book.metrics.dropped) == 1);
	CHECK(take(5));
	CHECK(met("id3", 6)); /* when it is met again */
	for (int i = 4; i < UPLOAD_QUEUE_FILES_MAX + 10; i++) {
		snprintf(id, sizeof(id), "id%d", i);
		(void)met(id, 10 + i);
	}
	CHECK(book.entries.len == UPLOAD_QUEUE_FILES_MAX);
	/* What waits and what is under way stays; the longest unmet go. */
	finish(UPLOAD_SENT, 7);
	CHECK(take(8) && strcmp(job.build_id, "id1") == 0);
	finish(UPLOAD_SENT, 8);
	CHECK(met("id4", 100000)); /* again */
	struct buf text;
	buf_init(&text, 65536);
	upload_queue_write_metrics(&book, &text);
	CHECK(memmem(text.data, text.len, "firn_agent_debuginfo_files 4096", 31) != NULL);
	buf_deinit(&text);
	static const char digits[DEBUGINFO_ID_MAX + 2] = { [0 ... DEBUGINFO_ID_MAX] = 'a' };
	CHECK(!met(digits, 100002));
}

/* One is asked for; all are, once that one is not there any more. */
static void doubts_a_server_that_may_be_new(void **state)
{
	(void)state;
	upload_queue_probe(&book);
	CHECK(!take(1) && upload_queue_next_ns(&book) == INT64_MAX);
	static const char *const ids[] = { "aaa", "bbb", "ccc", "ddd" };
	for (int i = 0; i < 4; i++) {
		CHECK(met(ids[i], i) && take(i));
		finish(UPLOAD_SENT, i);
	}
	upload_queue_probe(&book);
	CHECK(upload_queue_next_ns(&book) == 0 && take(10) && job.is_probe);
	assert_string_equal(job.build_id, "ddd"); /* it was there last */
	finish(UPLOAD_NOT_WANTED, 10);
	CHECK(!take(11));
	upload_queue_probe(&book);
	CHECK(take(12) && job.is_probe);
	finish(UPLOAD_AWAY, 12); /* no answer: as before */
	CHECK(!take(13));
	upload_queue_probe(&book);
	CHECK(take(14) && job.is_probe);
	upload_queue_doubt(&book);
	finish(UPLOAD_SENT, 14);
	CHECK(upload_queue_waiting(&book) == 3);
	for (int i = 0; i < 3; i++) {
		CHECK(take(15) && !job.is_probe);
		finish(UPLOAD_SENT, 15);
	}
	CHECK(!take(16));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { TEST(takes_what_samples_had_in_order),
		TEST(tries_again_when_it_may_help), TEST(leaves_what_always_breaks_off),
		TEST(waits_while_the_server_is_away), TEST(keeps_descriptors_for_a_while),
		TEST(counts_what_is_too_much), TEST(doubts_a_server_that_may_be_new) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
