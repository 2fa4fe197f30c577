/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"
#include "made.h"
#include "server/api/api.h"
#include "server/parca/parca.h"

#include <fcntl.h>

static void share(struct ask *a, const char *selector)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	size_t query = pb_begin(&b, 1);
	made_put_query(&b, selector, 5);
	pb_end(&b, query);
	ask_init(a, "/", "");
	ask_header(a, "host", "profiles.example:7070");
	a->r.body = buf_view(&b);
	server_parca_share(&made, &a->r, &a->out);
}

static void get(struct ask *a, const char *path)
{
	ask_init(a, path, "");
	server_handle_shared(&made, &a->r, &a->out);
}

static void keeps_the_profile_here(void **state)
{
	(void)state;
	struct ask a, b;
	char path[64];
	share(&a, MADE_TYPE "{}");
	CHECK(a.out.status == OK);
	struct str link = made_find(buf_view(&a.out.body), 1, 0).bytes;
	struct str prefix = STR("http://profiles.example:7070");
	CHECK(str_starts(link, prefix));
	snprintf(path, sizeof(path), "%.*s", STR_ARG(str_sub(link, prefix.len, link.len)));
	get(&b, path);
	CHECK(b.out.status == OK && b.out.body.len > 20 && b.out.body.data[0] == 0x1F);
	CHECK(b.out.no_compress);
	ask_deinit(&a);
	ask_deinit(&b);
	share(&a, MADE_TYPE "{");
	CHECK(a.out.status == E_INVALID);
	ask_deinit(&a);
}

static void post_snapshot(struct ask *a, const char *expires)
{
	char question[256];
	snprintf(question, sizeof(question), "query=" MADE_TYPE "&from=0&to=now&expires=%s",
		expires);
	ask_init(a, "/api/snapshots", question);
	server_handle_snapshots(&made, &a->r, &a->out);
}

/* The id says when it ends; from then on it is not served, and gone. */
static void keeps_snapshots_until_they_end(void **state)
{
	(void)state;
	struct ask a, b;
	char path[64];
	post_snapshot(&a, "2h");
	CHECK(a.out.status == OK);
	struct str answer = buf_view(&a.out.body);
	CHECK(str_starts(answer, STR("{\"id\":\"")) && answer.len > 60);
	snprintf(path, sizeof(path), "/shared/%.28s", answer.p + 7);
	get(&b, path);
	CHECK(b.out.status == OK && b.out.body.len > 20 && b.out.body.data[0] == 0x1F);
	CLEANUP(buf_deinit) struct buf plain;
	struct err e = { 0 };
	static const char note[] = "firn: " MADE_TYPE " from 1970-01-01T00:00:00Z to 20";
	buf_init(&plain, 1 << 20);
	CHECK_OK(codec_gunzip(b.out.body.data, b.out.body.len, &plain, &e), &e);
	CHECK(memmem(plain.data, plain.len, note, strlen(note)));
	ask_deinit(&a);
	ask_deinit(&b);
	static const char *const wrong[] = { "0s", "4000d", "soon", "-1h", "1h&expire=2h",
		"1h&focus=main", "1h&&from%3d=0" };
	FOR_EACH_CASE (c, wrong) {
		post_snapshot(&a, *c);
		CHECK(a.out.status == E_INVALID);
		ask_deinit(&a);
	}
}

static void removes_snapshots_that_ended(void **state)
{
	(void)state;
	/* Ended in the first minute of 1970; ends in the year 4011; has no end. */
	static const char *const names[] = { "aaaaaaaaaaaaaaaaaaaaaaaaaaab",
		"bbbbbbbbbbbbbbbbbbbbbb777777", "cccccccccccccccccccccc" };
	struct ask a;
	char path[256];
	snprintf(path, sizeof(path), "%s/shared", made_dir);
	CHECK(mkdir(path, 0750) == 0);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
			struct err e = { 0 };
			snprintf(path, sizeof(path), "%s/shared/%s.pb.gz", made_dir, names[i]);
			CHECK_OK(os_replace_file(path, "bytes", 5, 0640, &e), &e);
		}
		if (round == 1)
			share(&a, MADE_TYPE "{}"); /* removes it by itself */
		for (size_t i = 0; round == 0 && i < ARRAY_COUNT(names); i++) {
			snprintf(path, sizeof(path), "/shared/%s", names[i]);
			get(&a, path);
			CHECK(a.out.status == (i == 0 ? E_NOTFOUND : OK));
			ask_deinit(&a);
		}
		snprintf(path, sizeof(path), "%s/shared/%s.pb.gz", made_dir, names[0]);
		CHECK(access(path, F_OK) != 0);
		snprintf(path, sizeof(path), "%s/shared/%s.pb.gz", made_dir, names[1]);
		CHECK(access(path, F_OK) == 0);
	}
	ask_deinit(&a);
}

/* What one tenant shares is nothing to the others, nor to who names none. */
static void serves_a_tenant_its_own(void **state)
{
	(void)state;
	static const char *const files[] = { "aaaaaaaaaaaaaaaaaaaaaa",
		"bbbbbbbbbbbbbbbbbbbbbb@team-b",
		"cccccccccccccccccccccc@('longest')------------------------------------------------"
		"--"
		"---" };
	static const char *const tenants[] = { NULL, "team-b",
		"('longest')-----------------------------------------------------" };
	char path[256];
	made_config.tenant_header = "x-scope-orgid";
	snprintf(path, sizeof(path), "%s/shared", made_dir);
	CHECK(mkdir(path, 0750) == 0);
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		struct err e = { 0 };
		snprintf(path, sizeof(path), "%s/shared/%s.pb.gz", made_dir, files[i]);
		CHECK_OK(os_replace_file(path, "bytes", 5, 0640, &e), &e);
	}
	for (size_t i = 0; i < ARRAY_COUNT(files); i++)
		for (size_t k = 0; k < ARRAY_COUNT(tenants); k++) {
			struct ask a;
			snprintf(path, sizeof(path), "/shared/%.22s", files[i]);
			ask_init(&a, path, "");
			if (tenants[k])
				ask_header(&a, "x-scope-orgid", tenants[k]);
			server_handle_shared(&made, &a.r, &a.out);
			CHECK(a.out.status == (i == k ? OK : E_NOTFOUND));
			ask_deinit(&a);
		}
	made_config.tenant_header = NULL;
}

static void links_to_where_it_is_served(void **state)
{
	(void)state;
	struct ask a;
	struct server_config before = made_config;
	made_config.path_prefix = "/firn";
	made_config.tls_cert_file = "server.pem";
	share(&a, MADE_TYPE "{}");
	made_config = before;
	CHECK(a.out.status == OK);
	CHECK(str_starts(made_find(buf_view(&a.out.body), 1, 0).bytes,
		STR("https://profiles.example:7070/firn/shared/")));
	ask_deinit(&a);
}

static void serves_nothing_else(void **state)
{
	(void)state;
	static const char *const paths[] = { "/shared/", "/shared/../manifest",
		"/shared/aaaaaaaaaaaaaaaaaaaaaa", "/shared/AAAAAAAAAAAAAAAAAAAAAA",
		"/shared/aaaaaaaaaaaaaaaaaaaa/a" };
	for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
		struct ask a;
		get(&a, paths[i]);
		CHECK(a.out.status == E_NOTFOUND && a.out.http_status == 404);
		ask_deinit(&a);
	}
}

/* 1,000 profiles of a tenant; the one of the number 500 is the oldest. */
static void put_thousand(const char *tenant)
{
	char path[128];
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "%s/shared/aaaaaaaaaaaaaaaaaaa%c%c%c%s.pb.gz",
			made_dir, 'a' + i / 100, 'a' + i / 10 % 10, 'a' + i % 10, tenant);
		int fd = open(path, O_CREAT | O_WRONLY, 0640);
		CHECK(fd >= 0);
		struct timespec times[2] = { { 1000 + (i + 500) % 1000, 0 },
			{ 1000 + (i + 500) % 1000, 0 } };
		CHECK(futimens(fd, times) == 0);
		close(fd);
	}
}

static bool is_there(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/shared/%s.pb.gz", made_dir, name);
	return access(path, F_OK) == 0;
}

/* Those of others stay, however old. */
static void drops_a_tenants_own_oldest(void **state)
{
	(void)state;
	struct ask a;
	char path[128];
	snprintf(path, sizeof(path), "%s/shared", made_dir);
	CHECK(mkdir(path, 0750) == 0);
	put_thousand("@team-b");
	share(&a, MADE_TYPE "{}");
	CHECK(a.out.status == OK && made.metrics.shared_dropped == 0);
	ask_deinit(&a);
	put_thousand("");
	share(&a, MADE_TYPE "{}");
	CHECK(a.out.status == OK);
	ask_deinit(&a);
	/* The one shared before is one too many as well. */
	CHECK(made.metrics.shared_dropped == 2);
	CHECK(!is_there("aaaaaaaaaaaaaaaaaaafaa") && !is_there("aaaaaaaaaaaaaaaaaaafab"));
	CHECK(is_there("aaaaaaaaaaaaaaaaaaafac") && is_there("aaaaaaaaaaaaaaaaaaafaa@team-b"));
}

/* Above the limit of all, those who have most give way, not who shares. */
static void drops_of_who_has_most(void **state)
{
	(void)state;
	struct ask a;
	char path[128];
	snprintf(path, sizeof(path), "%s/shared", made_dir);
	CHECK(mkdir(path, 0750) == 0);
	for (int i = 0; i < 5; i++) {
		/* Sparse: 900 MB each; of the fourth a little more. */
		snprintf(path, sizeof(path), "%s/shared/aaaaaaaaaaaaaaaaaaaaaa@t%d.pb.gz", made_dir,
			i);
		int fd = open(path, O_CREAT | O_WRONLY, 0640);
		CHECK(fd >= 0 && ftruncate(fd, 900000000 + (i == 3)) == 0);
		close(fd);
	}
	share(&a, MADE_TYPE "{}");
	CHECK(a.out.status == OK && made.metrics.shared_dropped == 1);
	CHECK(!is_there("aaaaaaaaaaaaaaaaaaaaaa@t3") && is_there("aaaaaaaaaaaaaaaaaaaaaa@t0"));
	ask_deinit(&a);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, made_setup, made_teardown)
TEST_MAIN(TEST(keeps_the_profile_here), TEST(keeps_snapshots_until_they_end),
	TEST(removes_snapshots_that_ended), TEST(serves_a_tenant_its_own),
	TEST(links_to_where_it_is_served), TEST(serves_nothing_else),
	TEST(drops_a_tenants_own_oldest), TEST(drops_of_who_has_most))
