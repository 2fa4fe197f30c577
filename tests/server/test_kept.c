/* SPDX-License-Identifier: Apache-2.0 */
/* Files of both kinds: what their names say, and that they share one limit. */
#include "server/request/kept.h"

#include "made.h"

#include <fcntl.h>

static void put(const char *name, int seconds)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/shared/%s", made_dir, name);
	int fd = open(path, O_CREAT | O_WRONLY, 0640);
	CHECK(fd >= 0);
	struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };
	CHECK(futimens(fd, times) == 0);
	close(fd);
}

static size_t count(enum kept_kind kind, const char *tenant, const char *first)
{
	struct kept *v = NULL;
	struct err e = { 0 };
	struct arena a;
	size_t n = 0;
	arena_init(&a, 1 << 20);
	CHECK_OK(kept_list(&made, str_of(tenant), kind, &a, &v, &n, &e), &e);
	if (n)
		CHECK_STR(str_of(v[0].id), first);
	arena_deinit(&a);
	return n;
}

static void lists_what_it_kept(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct kept kept;
	struct err e = { 0 };
	int64_t time_ns = 0;
	buf_init(&b, 1024);
	CHECK_OK(
		kept_put(&made, STR("t"), KEPT_UPLOAD, STR("a.b-c_D9"), STR("bytes"), 0, &kept, &e),
		&e);
	CHECK_STR(kept_name(str_of(kept.id)), "a.b-c_D9");
	CHECK_OK(kept_get(&made, STR("t"), KEPT_UPLOAD, str_of(kept.id), &b, &time_ns, &e), &e);
	CHECK_STR(buf_view(&b), "bytes");
	CHECK(time_ns == kept.time_ns);
	CHECK(kept_get(&made, STR("t"), KEPT_PROFILE, str_of(kept.id), &b, &time_ns, &e) ==
		E_NOTFOUND);
	CHECK(count(KEPT_UPLOAD, "t", kept.id) == 1);
	CHECK(count(KEPT_UPLOAD, "", "") == 0 && count(KEPT_PROFILE, "t", "") == 0);
	put("aaaaaaaaaaaaaaaaaaaaaa-x@t.file", 5);
	put("bbbbbbbbbbbbbbbbbbbbbb-y@t.file", 6);
	CHECK(count(KEPT_UPLOAD, "t", kept.id) == 3);
	/* None of these is a file of ours. */
	put("aaaaaaaaaaaaaaaaaaaaaa@t.file", 5);
	put("aaaaaaaaaaaaaaaaaaaaaa-x y@t.file", 5);
	put("aaaaaaaaaaaaaaaaaaaaaa-x@t.pb.gz", 5);
	put("AAAAAAAAAAAAAAAAAAAAAA-x@t.file", 5);
	CHECK(count(KEPT_UPLOAD, "t", kept.id) == 3 && count(KEPT_PROFILE, "t", "") == 0);
}

static void drops_the_oldest_of_both_kinds(void **state)
{
	(void)state;
	char name[128];
	struct kept kept;
	struct err e = { 0 };
	snprintf(name, sizeof(name), "%s/shared", made_dir);
	CHECK(mkdir(name, 0750) == 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "aaaaaaaaaaaaaaaaaaa%c%c%c%s", 'a' + i / 100,
			'a' + i / 10 % 10, 'a' + i % 10, i % 2 ? ".pb.gz" : "-x.file");
		put(name, 1000 + i);
	}
	CHECK_OK(kept_put(&made, STR(""), KEPT_PROFILE, STR(""), STR("x"), 0, &kept, &e), &e);
	CHECK(made.metrics.shared_dropped == 1);
	CHECK(count(KEPT_UPLOAD, "", "aaaaaaaaaaaaaaaaaaajji-x") == 499);
	CHECK(count(KEPT_PROFILE, "", kept.id) == 501);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, made_setup, made_teardown)
TEST_MAIN(TEST(lists_what_it_kept), TEST(drops_the_oldest_of_both_kinds))
