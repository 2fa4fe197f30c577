/* SPDX-License-Identifier: Apache-2.0 */
/* What goes when there is no room, and what a start finds after an end at any point. */
#include "uploading.h"

static void the_longest_unused_goes(void **state)
{
	(void)state;
	static const char *const ids[] = { "aaaa", "bbbb", "cccc", "dddd" };
	t.config.bytes_max = 10;
	reopen();
	for (size_t i = 0; i < 3; i++) {
		struct debuginfo_key key = key_of(ids[i], DEBUGINFO_SOURCE_MAP);
		upload(&key, STR("123"));
		usleep(20000);
	}
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP),
			     b = key_of("bbbb", DEBUGINFO_SOURCE_MAP),
			     c = key_of("cccc", DEBUGINFO_SOURCE_MAP),
			     d = key_of("dddd", DEBUGINFO_SOURCE_MAP);
	CHECK(has(&a, STR("123"))); /* used now */
	upload(&d, STR("1234"));
	CHECK(has(&a, STR("123")) && !has(&b, STR("123")) && has(&c, STR("123")));
	CHECK(state_of(&b) == DEBUGINFO_PURGED && metric("firn_debuginfo_purged_total") == 1);
	CHECK(metric("firn_debuginfo_bytes") == 10);
	upload(&d, STR("0123456789"));
	CHECK(has(&d, STR("0123456789")) && metric("firn_debuginfo_bytes") == 10);
	struct debuginfo_record r;
	CHECK(debuginfo_uploads_begin(t.u, &a, STR("h"), 11, may_begin, NULL, &r, &t.e) == E_LIMIT);
	reopen();
	CHECK(has(&d, STR("0123456789")) && metric("firn_debuginfo_build_ids") == 4);
}

static void those_that_arrive_are_counted(void **state)
{
	(void)state;
	t.config.bytes_max = 10;
	reopen();
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP),
			     b = key_of("bbbb", DEBUGINFO_SOURCE_MAP);
	struct debuginfo_record r = begin(&a, 8);
	struct debuginfo_upload *up;
	CHECK_OK(debuginfo_upload_open(t.u, &a, str_of(r.upload), 0, &up, &t.e), &t.e);
	CHECK_OK(debuginfo_upload_write(up, STR("1234"), &t.e), &t.e);
	struct debuginfo_record second = begin(&b, 8);
	CHECK(send_bytes(&b, second.upload, STR("12345678"), true) == E_LIMIT);
	debuginfo_upload_close(up);
	CHECK(metric("firn_debuginfo_bytes") == 0);
	CHECK_OK(send_bytes(&b, second.upload, STR("12345678"), true), &t.e);
}

/* Senders who announce much and send little push nothing out. */
static void what_is_announced_takes_no_room(void **state)
{
	(void)state;
	static const char *const ids[] = { "bbbb", "cccc", "dddd", "eeee" };
	struct debuginfo_upload *up[ARRAY_COUNT(ids)];
	const uint64_t announced = 100 << 20;
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP);
	t.config.bytes_max = announced;
	reopen();
	upload(&a, STR("here first"));
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
		struct debuginfo_key key = key_of(ids[i], DEBUGINFO_SOURCE_MAP);
		struct debuginfo_record r = begin(&key, announced);
		CHECK_OK(debuginfo_upload_open(t.u, &key, str_of(r.upload), 0, &up[i], &t.e), &t.e);
		CHECK_OK(debuginfo_upload_write(up[i], STR("a few bytes"), &t.e), &t.e);
	}
	CHECK(metric("firn_debuginfo_bytes") < 1 << 20);
	CHECK(has(&a, STR("here first")) && metric("firn_debuginfo_purged_total") == 0);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		debuginfo_upload_close(up[i]);
	CHECK(metric("firn_debuginfo_bytes") == 10 && has(&a, STR("here first")));
}

PRINTF(1, 2) static void shell(const char *format, ...)
{
	char command[512];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	CHECK(system(command) == 0);
}

static void a_start_tidies_up(void **state)
{
	(void)state;
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP),
			     b = key_of("bbbb", DEBUGINFO_SOURCE_MAP),
			     c = key_of("cccc", DEBUGINFO_SOURCE_MAP);
	struct debuginfo_record ra = upload(&a, STR("123")), rb = upload(&b, STR("123"));
	struct debuginfo_record rc = begin(&c, 3);
	CHECK_OK(send_bytes(&c, rc.upload, STR("123"), true), &t.e);
	debuginfo_uploads_close(t.u);
	t.u = NULL;
	shell("cd %s && cp -r aaaa eeee && echo x > aaaa/sourcemap.%s.part &&"
	      " echo x > aaaa/sourcemap.record.77.tmp &&"
	      " echo x > aaaa/sourcemap.11111111-0000-4000-8000-000000000000 &&"
	      " : > bbbb/sourcemap.%s && mkdir dddd && echo x > dddd/sources.record && touch file",
		t.path, ra.upload, rb.upload);
	reopen();
	CHECK(has(&a, STR("123")) && files_with("part") == 0 && files_with("tmp") == 0);
	CHECK(files_with("11111111") == 0);
	CHECK(state_of(&b) == DEBUGINFO_PURGED); /* cut short by whatever */
	CHECK_OK(debuginfo_uploads_finish(t.u, &c, str_of(rc.upload), &rc, &t.e), &t.e);
	CHECK(has(&c, STR("123")));
	CHECK(metric("firn_debuginfo_bytes") == 6 && metric("firn_debuginfo_build_ids") == 3);
	CHECK(metric("firn_debuginfo_damaged_records_total") == 3);
	struct debuginfo_key other = key_of("eeee", DEBUGINFO_SOURCE_MAP);
	CHECK(state_of(&other) == DEBUGINFO_NOT_SEEN); /* a record counts in its place only */
}

/* Whose version is newer, or whose bytes were harmed: out of the way, and all still there. */
static void what_cannot_be_read_is_set_aside(void **state)
{
	(void)state;
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP), b = a;
	b.tenant = STR("b");
	struct debuginfo_record r = upload(&a, STR("of a newer version"));
	upload(&b, STR("good"));
	/* Twice: once found at a start, once while it runs. */
	for (int i = 0; i < 2; i++) {
		shell("cd %s/aaaa && sed -i 's/^firn-debuginfo 1/firn-debuginfo 2/' "
		      "sourcemap.record && cp sourcemap.record ../../$(basename %s).was",
			t.path, t.path);
		if (i == 0)
			reopen();
		CHECK(state_of(&a) == DEBUGINFO_NOT_SEEN && has(&b, STR("good")));
		CHECK(metric("firn_debuginfo_damaged_records_total") == 1 + (uint64_t)i);
		CHECK(metric("firn_debuginfo_bytes") == 4);
		shell("cd %s/.quarantine/aaaa && cmp sourcemap.record%s %s.was && "
		      "grep -q 'of a newer version' sourcemap.%s && rm %s.was",
			t.path, i ? ".1" : "", t.path, r.upload, t.path);
		r = upload(&a, STR("of a newer version"));
		CHECK(has(&a, STR("of a newer version")));
	}
	reopen();
	CHECK(has(&a, STR("of a newer version")) && has(&b, STR("good")));
	CHECK(metric("firn_debuginfo_damaged_records_total") == 0 && files_with("record") == 4);
}

static void what_nobody_finishes_goes(void **state)
{
	(void)state;
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP);
	struct debuginfo_record r = begin(&a, 3);
	CHECK_OK(send_bytes(&a, r.upload, STR("123"), true), &t.e);
	CHECK(!debuginfo_upload_is_stale(t.u, &r, clock_realtime_ns()));
	t.config.stale_ns = 0;
	reopen();
	CHECK(debuginfo_upload_is_stale(t.u, &r, clock_realtime_ns()));
	CHECK(metric("firn_debuginfo_bytes") == 0 && files_with(r.upload) == 0);
	CHECK(debuginfo_uploads_finish(t.u, &a, str_of(r.upload), &r, &t.e) == E_PRECONDITION);
}

/* Ends at every point of an upload: a copy of the directory, as it is then, is opened. */
static void whenever_it_ends(void **state)
{
	(void)state;
	struct debuginfo_key a = key_of("aaaa", DEBUGINFO_SOURCE_MAP);
	struct debuginfo_upload *up = NULL;
	struct debuginfo_record r = { 0 };
	uint64_t got;
	upload(&a, STR("old"));
	for (int step = 0; step < 6; step++) {
		if (step == 1)
			r = begin(&a, 3);
		if (step == 2)
			CHECK_OK(debuginfo_upload_open(t.u, &a, str_of(r.upload), 0, &up, &t.e),
				&t.e);
		if (step == 3)
			CHECK_OK(debuginfo_upload_write(up, STR("new"), &t.e), &t.e);
		if (step == 4) {
			CHECK_OK(debuginfo_upload_end(up, &got, &t.e), &t.e);
			debuginfo_upload_close(up);
		}
		if (step == 5)
			CHECK_OK(debuginfo_uploads_finish(t.u, &a, str_of(r.upload), &r, &t.e),
				&t.e);
		char copy[80];
		snprintf(copy, sizeof(copy), "%s.copy", t.path);
		shell("cp -r %s %s", t.path, copy);
		struct debuginfo_uploads *mine = t.u;
		struct debuginfo_uploads_config config = t.config;
		config.dir = copy;
		CHECK_OK(debuginfo_uploads_open(&config, &t.u, &t.e), &t.e);
		CHECK(has(&a, step < 5 ? STR("old") : STR("new")));
		debuginfo_uploads_close(t.u);
		t.u = mine;
		shell("rm -rf %s", copy);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, uploading_setup, uploading_teardown)
TEST_MAIN(CASE(the_longest_unused_goes), CASE(those_that_arrive_are_counted),
	CASE(what_is_announced_takes_no_room), CASE(a_start_tidies_up),
	CASE(what_cannot_be_read_is_set_aside), CASE(what_nobody_finishes_goes),
	CASE(whenever_it_ends))
