/* SPDX-License-Identifier: Apache-2.0 */
/* Exports as check_export.py reads them: by the formats' own pages. */
#include "fake.h"

#include <unistd.h>

static void check(const char *type, enum query_format format, const char *name, const char *want)
{
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	struct query_request r = fake_request(type);
	char path[] = "/tmp/firn-test-export-XXXXXX", command[1024], text[4096];
	buf_init(&out, 1 << 20);
	CHECK_OK(query_write_flame(&fake_engine, &r, format, &out, &e), &e);
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, out.data, out.len) == (ssize_t)out.len);
	close(fd);
	snprintf(command, sizeof(command), "python3 %s %s %s", CHECK_EXPORT, name, path);
	FILE *f = popen(command, "r");
	CHECK(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	CHECK(pclose(f) == 0);
	unlink(path);
	CHECK_STR(str_of(text), want);
}

static void are_what_their_formats_say(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 10, 0, "", "main@/bin/x;f@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 5, 0, "", "main@/bin/x;f>inner@/bin/x");
	fake_sample(HEAP, 3, 1, 0, "", "main@/bin/x;sys@[kernel]%kernel");
	fake_sample(HEAP, 3, 2, 0, "", "main@/bin/x");
	check(HEAP, QUERY_SPEEDSCOPE, "speedscope", "bytes g=10 inner=5 main=2 sys=1\n");
	check(HEAP, QUERY_FIREFOX, "firefox", "bytes g=10 inner=5 main=2 sys=1\n");
	check(HEAP, QUERY_HTML, "html", "bytes g=10 inner=5 main=2 sys=1\n");
}

static void give_time_its_unit(void **state)
{
	(void)state;
	fake_sample(CPU, 1, 3, PERIOD, "", "main@x;f@x");
	check(CPU, QUERY_SPEEDSCOPE, "speedscope", "nanoseconds f=3e+07\n");
	check(CPU, QUERY_FIREFOX, "firefox", "tracing-ms f=30\n");
}

static void take_names_of_all_kinds(void **state)
{
	(void)state;
	fake_sample(HEAP, 1, 1, 0, "", "</script x");
	fake_sample(HEAP, 1, 2, 0, "", "<!--<script\"\\");
	check(HEAP, QUERY_HTML, "html", "bytes <!--<script\"\\=2 </script x=1\n");
	check(HEAP, QUERY_FIREFOX, "firefox", "bytes <!--<script\"\\=2 </script x=1\n");
}

static void are_empty_without_samples(void **state)
{
	(void)state;
	check(HEAP, QUERY_SPEEDSCOPE, "speedscope", "bytes \n");
	check(HEAP, QUERY_FIREFOX, "firefox", "bytes \n");
	check(HEAP, QUERY_HTML, "html", "bytes \n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(are_what_their_formats_say), TEST(give_time_its_unit), TEST(take_names_of_all_kinds),
	TEST(are_empty_without_samples))
