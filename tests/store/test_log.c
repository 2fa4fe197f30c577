/* SPDX-License-Identifier: Apache-2.0 */
#include "store/log/log.h"

#include "tests/store/fixture.h"

static const struct hash128 store_id = { 1, 2 };

static void append_text(struct log *l, const char *text)
{
	struct log_record r = { .kind = LOG_KIND_BATCH,
		.payload = str_of(text),
		.raw_len = (uint32_t)strlen(text),
		.batch_id = { strlen(text), 0 } };
	uint64_t sequence;
	struct err e = { 0 };
	CHECK_OK(log_append(l, &r, &sequence, &e), &e);
	CHECK(sequence == r.sequence && sequence > 0);
}

static struct buf read_segment(const char *path)
{
	struct buf b;
	struct err e = { 0 };
	buf_init(&b, LOG_SEGMENT_BYTES_MAX);
	CHECK_OK(os_read_file(path, &b, &e), &e);
	return b;
}

/* Records of a segment, and how it ended. */
static int count_records(struct str bytes, enum log_event *end, struct str *last)
{
	struct log_cursor c;
	struct log_record r;
	struct err e = { 0 };
	int n = 0;
	CHECK_OK(log_cursor_open(bytes, "segment", &c, &e), &e);
	CHECK(hash128_eq(c.store_id, store_id));
	while ((*end = log_cursor_next(&c, &r)) == LOG_EVENT_RECORD) {
		n++;
		*last = r.payload;
	}
	return n;
}

static void records_come_back(void **state)
{
	(void)state;
	char dir[64];
	struct log *l;
	struct err e = { 0 };
	fixture_dir(dir);
	CHECK_OK(log_open(dir, store_id, 5, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	CHECK(log_found_count(l) == 0);
	append_text(l, "one");
	append_text(l, "two, longer");
	append_text(l, "");
	CHECK(log_stats_get(l).syncs == 3);
	log_close(l);
	CHECK_OK(log_open(dir, store_id, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	CHECK(log_found_count(l) == 1);
	CHECK(log_next_segment(l) == 6); /* the first one was number 5 */
	struct buf b = read_segment(log_found_path(l, 0));
	enum log_event end;
	struct str last;
	CHECK(count_records(buf_view(&b), &end, &last) == 3);
	CHECK(end == LOG_EVENT_END && last.len == 0);
	buf_deinit(&b);
	log_close(l);
	fixture_clean(dir);
}

static void segments_are_recycled(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct log *l;
	struct err e = { 0 };
	struct stat before, after;
	fixture_dir(dir);
	CHECK_OK(log_open(dir, store_id, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	append_text(l, "old record, long enough to be seen behind the new one");
	append_text(l, "another old record");
	snprintf(path, sizeof(path), "%s/0000000000000001.log", dir);
	CHECK(stat(path, &before) == 0);
	uint64_t last = log_seal(l);
	CHECK(last == 2);
	CHECK_OK(log_release(l, last - 1, &e), &e); /* not yet */
	CHECK(stat(path, &before) == 0);
	CHECK_OK(log_release(l, last, &e), &e);
	append_text(l, "new");
	snprintf(path, sizeof(path), "%s/0000000000000002.log", dir);
	CHECK(stat(path, &after) == 0);
	CHECK(after.st_ino == before.st_ino); /* the same file again */
	struct buf b = read_segment(path);
	enum log_event end;
	struct str text;
	CHECK(count_records(buf_view(&b), &end, &text) == 1);
	CHECK(end == LOG_EVENT_END); /* the old records are no damage */
	CHECK_STR(text, "new");
	buf_deinit(&b);
	log_close(l);
	fixture_clean(dir);
}

/* Three records; the second is damaged, then the last is torn. */
static void damage_and_torn_ends_are_told_apart(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct log *l;
	struct err e = { 0 };
	fixture_dir(dir);
	CHECK_OK(log_open(dir, store_id, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	append_text(l, "first");
	append_text(l, "second");
	append_text(l, "third");
	log_close(l);
	snprintf(path, sizeof(path), "%s/0000000000000001.log", dir);
	struct buf b = read_segment(path);
	size_t second = LOG_HEADER_BYTES + 72, third = second + 72;
	b.data[second + 66] ^= 4;
	struct log_cursor c;
	struct log_record r;
	CHECK_OK(log_cursor_open(buf_view(&b), path, &c, &e), &e);
	CHECK(log_cursor_next(&c, &r) == LOG_EVENT_RECORD);
	CHECK(log_cursor_next(&c, &r) == LOG_EVENT_DAMAGE);
	CHECK(c.offset == second && c.length == 72);
	CHECK(log_cursor_next(&c, &r) == LOG_EVENT_RECORD);
	CHECK_STR(r.payload, "third");
	CHECK(log_cursor_next(&c, &r) == LOG_EVENT_END);
	b.data[second + 66] ^= 4;
	static const size_t places[] = { 0, 9, 20, 66 }; /* magic, salt, sequence, payload */
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		enum log_event end;
		struct str last;
		b.data[third + places[i]] ^= 1;
		CHECK(count_records(buf_view(&b), &end, &last) == 2);
		CHECK(end == LOG_EVENT_TORN);
		b.data[third + places[i]] ^= 1;
	}
	b.data[30] ^= 1;
	CHECK(log_cursor_open(buf_view(&b), path, &c, &e) == E_CORRUPT);
	buf_deinit(&b);
	fixture_clean(dir);
}

struct appender {
	struct log *l;
	pthread_t thread;
};

static void *append_many(void *ctx)
{
	struct appender *a = ctx;
	for (int i = 0; i < 200; i++)
		append_text(a->l, "some payload of a batch that is not very long");
	return NULL;
}

static void callers_share_a_sync(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct log *l;
	struct err e = { 0 };
	struct appender a[8];
	fixture_disk_dir(dir); /* where a sync takes its time */
	CHECK_OK(log_open(dir, store_id, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	for (size_t i = 0; i < ARRAY_COUNT(a); i++) {
		a[i].l = l;
		CHECK_OK(os_thread_start(&a[i].thread, "append", append_many, &a[i], &e), &e);
	}
	for (size_t i = 0; i < ARRAY_COUNT(a); i++)
		pthread_join(a[i].thread, NULL);
	struct log_stats s = log_stats_get(l);
	CHECK(log_next_sequence(l) == 1601);
	CHECK(s.syncs > 0 && s.syncs <= 1600);
	log_close(l);
	snprintf(path, sizeof(path), "%s/0000000000000001.log", dir);
	struct buf b = read_segment(path);
	enum log_event end;
	struct str last;
	CHECK(count_records(buf_view(&b), &end, &last) == 1600);
	buf_deinit(&b);
	fixture_clean(dir);
}

static void a_record_may_be_larger_than_a_segment(void **state)
{
	(void)state;
	char dir[64];
	struct log *l;
	struct err e = { 0 };
	size_t len = FIXTURE_SEGMENT_BYTES + 1000;
	char *big = malloc(len + 1);
	CHECK(big != NULL);
	memset(big, 'x', len);
	big[len] = 0;
	fixture_dir(dir);
	CHECK_OK(log_open(dir, store_id, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	append_text(l, "small");
	append_text(l, big);
	append_text(l, "small again");
	log_close(l);
	CHECK_OK(log_open(dir, store_id, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	CHECK(log_found_count(l) == 3);
	struct buf b = read_segment(log_found_path(l, 1));
	enum log_event end;
	struct str last;
	CHECK(count_records(buf_view(&b), &end, &last) == 1 && last.len == len);
	buf_deinit(&b);
	log_close(l);
	free(big);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(records_come_back), cmocka_unit_test(segments_are_recycled),
	cmocka_unit_test(damage_and_torn_ends_are_told_apart),
	cmocka_unit_test(callers_share_a_sync),
	cmocka_unit_test(a_record_may_be_larger_than_a_segment))
