/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads from begin to use; in any wrong order; by several at a time; by hostile senders. */
#include "uploading.h"

#include <pthread.h>

static void one(void **state)
{
	(void)state;
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	CHECK(state_of(&key) == DEBUGINFO_NOT_SEEN && !has(&key, STR("")));
	struct debuginfo_record r = begin(&key, 5);
	CHECK(debuginfo_is_upload_id(str_of(r.upload)) && state_of(&key) == DEBUGINFO_UPLOADING);
	CHECK_OK(send_bytes(&key, r.upload, STR("12345"), true), &t.e);
	CHECK(!has(&key, STR("12345"))); /* not before it is finished */
	CHECK_OK(debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &r, &t.e), &t.e);
	CHECK(!r.invalid && state_of(&key) == DEBUGINFO_UPLOADED && has(&key, STR("12345")));
	CHECK_OK(debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &r, &t.e), &t.e);
	reopen();
	CHECK(has(&key, STR("12345")) && metric("firn_debuginfo_bytes") == 5);
	struct debuginfo_key upper =
		key_of("0123456789ABCDEF0123456789ABCDEF01234567", DEBUGINFO_SOURCE_MAP);
	CHECK(has(&upper, STR("12345")));
}

static void the_old_one_is_used_until_the_new_one_is_whole(void **state)
{
	(void)state;
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	upload(&key, STR("old"));
	struct debuginfo_record r = begin(&key, 7);
	CHECK(has(&key, STR("old")));
	CHECK(send_bytes(&key, r.upload, STR("new"), true) == E_INVALID);
	CHECK_STR(str_of(t.e.text), "3 bytes came, 7 were announced");
	CHECK(state_of(&key) == DEBUGINFO_BROKEN && has(&key, STR("old")));
	CHECK(files_with("part") == 0);
	CHECK(debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &r, &t.e) == E_PRECONDITION);
	CHECK_OK(send_bytes(&key, r.upload, STR("another"), true), &t.e); /* may be sent again */
	reopen();
	CHECK(has(&key, STR("old")));
	CHECK_OK(debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &r, &t.e), &t.e);
	CHECK(has(&key, STR("another")) && files_with("sourcemap") == 2);
	CHECK(metric("firn_debuginfo_bytes") == 7);
}

static void wrong_order(void **state)
{
	(void)state;
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	struct debuginfo_record r, out;
	const char *other = "00000000-0000-4000-8000-000000000000";
	CHECK(send_bytes(&key, other, STR("x"), true) == E_NOTFOUND);
	CHECK(debuginfo_uploads_finish(t.u, &key, str_of(other), &out, &t.e) == E_NOTFOUND);
	CHECK_STR(str_of(t.e.text), "no debuginfo metadata found for build id");
	r = begin(&key, 3);
	CHECK(send_bytes(&key, other, STR("abc"), true) == E_INVALID);
	CHECK(debuginfo_uploads_finish(t.u, &key, str_of(other), &out, &t.e) == E_INVALID);
	CHECK_STR(str_of(t.e.text), "upload id mismatch");
	CHECK(debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &out, &t.e) == E_PRECONDITION);
	CHECK(send_bytes(&key, r.upload, STR("more than that"), true) == E_INVALID);
	t.may = E_EXISTS;
	CHECK(debuginfo_uploads_begin(t.u, &key, STR("h"), 3, may_begin, NULL, &out, &t.e) ==
		E_EXISTS);
	t.may = OK;
	out = begin(&key, 3); /* forced: the first one is out */
	CHECK(send_bytes(&key, r.upload, STR("abc"), true) == E_INVALID);
	CHECK_OK(send_bytes(&key, out.upload, STR("abc"), true), &t.e);
	CHECK_OK(debuginfo_uploads_finish(t.u, &key, str_of(out.upload), &r, &t.e), &t.e);
	CHECK(send_bytes(&key, out.upload, STR("abc"), true) == E_PRECONDITION);
}

static void names_leave_no_folder(void **state)
{
	(void)state;
	static const char *const ids[] = { "../../../etc/passwd", "...", "/etc", "a/b/c",
		"kjhG-1/ab_c/..", "%2e%2e", "~root", "-rf" };
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
		struct debuginfo_key key = key_of(ids[i], DEBUGINFO_SOURCES);
		key.tenant = STR("../.(x)'");
		upload(&key, STR("\x28\xb5\x2f\xfd"));
		CHECK(has(&key, STR("\x28\xb5\x2f\xfd")));
		for (size_t k = 0; k < ARRAY_COUNT(ids); k++) {
			struct debuginfo_key other = key_of(ids[k], DEBUGINFO_SOURCES);
			CHECK(state_of(&other) == DEBUGINFO_NOT_SEEN); /* of another tenant */
		}
	}
	CHECK(files_with("sources") == 2 * (int)ARRAY_COUNT(ids));
	reopen();
	CHECK(files_with("sources") == 2 * (int)ARRAY_COUNT(ids));
	static const char *const bad[] = { "", "ab", "a b c", "a\nb", "\xff\xff\xff" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct debuginfo_key key = key_of(bad[i], DEBUGINFO_SOURCES);
		struct debuginfo_record r;
		CHECK(debuginfo_uploads_find(t.u, &key, &r, &t.e) == E_INVALID);
	}
}

static void what_it_says(void **state)
{
	(void)state;
	struct debuginfo_key key = key_of(ID, DEBUGINFO_DEBUG);
	struct debuginfo_record r = upload(&key, STR("no ELF file"));
	CHECK(r.invalid && !has(&key, STR("no ELF file")) && files_with("debuginfo.") == 1);
	CHECK(metric("firn_debuginfo_bytes") == 0);
	key.type = DEBUGINFO_SOURCES;
	CHECK(upload(&key, STR("PK..")).invalid);
	CHECK(!upload(&key, STR("\x1f\x8b\x08..")).invalid);
	int fd;
	CHECK(debuginfo_uploads_any(t.u, STR(ID), DEBUGINFO_DEBUG, &fd, &t.e) == E_NOTFOUND);
	CHECK_OK(debuginfo_uploads_any(t.u, STR(ID), DEBUGINFO_SOURCES, &fd, &t.e), &t.e);
	close(fd);
	/* Our own program is one, but of another build id. */
	CLEANUP(buf_deinit) struct buf exe;
	buf_init(&exe, 256 << 20);
	CHECK_OK(os_read_file("/proc/self/exe", &exe, &t.e), &t.e);
	key.type = DEBUGINFO_EXECUTABLE;
	CHECK(upload(&key, buf_view(&exe)).invalid);
	key.build_id = STR("a-hash-of-the-file");
	CHECK(!upload(&key, buf_view(&exe)).invalid);
}

static void *send_one(void *ctx)
{
	char id[32];
	snprintf(id, sizeof(id), "%08x", (unsigned)(uintptr_t)ctx);
	struct debuginfo_key key = key_of(id, DEBUGINFO_SOURCE_MAP);
	for (int i = 0; i < 5; i++) {
		struct debuginfo_record r;
		struct debuginfo_upload *up;
		struct err e;
		uint64_t got;
		if (debuginfo_uploads_begin(t.u, &key, STR("h"), 6, may_begin, NULL, &r, &e) !=
				OK ||
			debuginfo_upload_open(t.u, &key, str_of(r.upload),
				clock_monotonic_ns() + 600 * NS_PER_SEC, &up, &e) != OK)
			return ctx;
		enum status s = debuginfo_upload_write(up, STR("abcdef"), &e);
		if (s == OK)
			s = debuginfo_upload_end(up, &got, &e);
		debuginfo_upload_close(up);
		if (s != OK || debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &r, &e) != OK)
			return ctx;
	}
	return NULL;
}

static void many_at_a_time(void **state)
{
	(void)state;
	pthread_t threads[3 * DEBUGINFO_ARRIVING_MAX];
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
		CHECK(pthread_create(&threads[i], NULL, send_one, (void *)(i + 1)) == 0);
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		CHECK(!failed);
	}
	CHECK(metric("firn_debuginfo_bytes") == 6 * ARRAY_COUNT(threads));
	CHECK(metric("firn_debuginfo_arriving_uploads") == 0);
	/* One upload has one stream. */
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	struct debuginfo_record r = begin(&key, 6);
	struct debuginfo_upload *up;
	CHECK_OK(debuginfo_upload_open(t.u, &key, str_of(r.upload), 0, &up, &t.e), &t.e);
	CHECK(send_bytes(&key, r.upload, STR("abcdef"), true) == E_PRECONDITION);
	CHECK(debuginfo_uploads_finish(t.u, &key, str_of(r.upload), &r, &t.e) == E_PRECONDITION);
	debuginfo_upload_close(up);
}

/* Another one is begun between the last byte and the end of the call. */
static void superseded_when_whole(void **state)
{
	(void)state;
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	struct debuginfo_upload *up;
	uint64_t got = 0;
	struct debuginfo_record r = begin(&key, 3);
	CHECK_OK(debuginfo_upload_open(t.u, &key, str_of(r.upload),
			 clock_monotonic_ns() + 10 * NS_PER_SEC, &up, &t.e),
		&t.e);
	CHECK_OK(debuginfo_upload_write(up, STR("abc"), &t.e), &t.e);
	CHECK_OK(debuginfo_upload_end(up, &got, &t.e), &t.e);
	CHECK(got == 3 && files_with(r.upload) == 1);
	struct debuginfo_record other = begin(&key, 5);
	debuginfo_upload_close(up);
	CHECK(files_with(r.upload) == 0 && metric("firn_debuginfo_bytes") == 0);
	CHECK_OK(send_bytes(&key, other.upload, STR("abcde"), true), &t.e);
	CHECK_OK(debuginfo_uploads_finish(t.u, &key, str_of(other.upload), &r, &t.e), &t.e);
	CHECK(has(&key, STR("abcde")) && metric("firn_debuginfo_bytes") == 5);
}

/* Begun too long ago: its place is free again, whatever still comes. */
static void never_ends(void **state)
{
	(void)state;
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	struct debuginfo_upload *up;
	struct debuginfo_record r = begin(&key, 6);
	CHECK_OK(debuginfo_upload_open(t.u, &key, str_of(r.upload),
			 clock_monotonic_ns() + 10 * NS_PER_SEC, &up, &t.e),
		&t.e);
	CHECK_OK(debuginfo_upload_write(up, STR("abc"), &t.e), &t.e);
	up->record.started_ns -= t.config.stale_ns + 1;
	CHECK(debuginfo_upload_write(up, STR("def"), &t.e) == E_TIMEOUT);
	CHECK_STR(str_of(t.e.text), "the upload was begun 1020 s ago, 1020 s are the limit");
	debuginfo_upload_close(up);
	CHECK(state_of(&key) == DEBUGINFO_BROKEN && files_with("part") == 0);
	CHECK(metric("firn_debuginfo_arriving_uploads") == 0 &&
		metric("firn_debuginfo_bytes") == 0);
	CHECK_OK(send_bytes(&key, begin(&key, 6).upload, STR("abcdef"), true), &t.e);
}

/* Each who waits keeps a thread: one more is told at once, and may begin anew at once. */
static void too_many_wait(void **state)
{
	(void)state;
	struct debuginfo_upload *up[DEBUGINFO_ARRIVING_MAX], *one_more;
	char id[16];
	for (int i = 0; i < DEBUGINFO_ARRIVING_MAX; i++) {
		snprintf(id, sizeof(id), "%08x", i);
		struct debuginfo_key key = key_of(id, DEBUGINFO_SOURCE_MAP);
		struct debuginfo_record r = begin(&key, 3);
		CHECK_OK(debuginfo_upload_open(t.u, &key, str_of(r.upload), 0, &up[i], &t.e), &t.e);
	}
	struct debuginfo_key key = key_of(ID, DEBUGINFO_SOURCE_MAP);
	struct debuginfo_record r = begin(&key, 3);
	int64_t in_an_hour = clock_monotonic_ns() + 3600 * NS_PER_SEC;
	t.u->waiting_count = DEBUGINFO_WAITING_MAX; /* nobody else runs */
	CHECK(debuginfo_upload_open(t.u, &key, str_of(r.upload), in_an_hour, &one_more, &t.e) ==
		E_UNAVAILABLE);
	t.u->waiting_count = 0;
	CHECK(state_of(&key) == DEBUGINFO_BROKEN);
	/* Who waits in vain too. */
	r = begin(&key, 3);
	CHECK(debuginfo_upload_open(t.u, &key, str_of(r.upload), 0, &one_more, &t.e) ==
		E_UNAVAILABLE);
	CHECK(state_of(&key) == DEBUGINFO_BROKEN);
	for (int i = 0; i < DEBUGINFO_ARRIVING_MAX; i++)
		debuginfo_upload_close(up[i]);
	CHECK_OK(send_bytes(&key, r.upload, STR("abc"), true), &t.e);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, uploading_setup, uploading_teardown)
TEST_MAIN(CASE(one), CASE(the_old_one_is_used_until_the_new_one_is_whole), CASE(wrong_order),
	CASE(names_leave_no_folder), CASE(what_it_says), CASE(many_at_a_time),
	CASE(superseded_when_whole), CASE(never_ends), CASE(too_many_wait))
