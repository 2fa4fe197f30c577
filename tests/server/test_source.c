/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/source: which files of this host are sent, and to whom. The lines are those below. */
#include "test.h"

#include "ask.h"
#include <dirent.h>
#include <stdio.h>

#include "server/debuginfo/source.h"
#include "server/request/state.h"
#include "temp_dir.h"

#include <sys/stat.h>
#include <unistd.h>

static struct temp_dir folder;
static const char *dir = folder.path;
static struct query_place found_places[2] = { { 3, 5, 9 }, { 7, 0, 9 } };
static uint32_t found_count = 2;
static char asked_file[256], asked_build[64];

enum status query_source_places(const struct query_engine *q, const struct query_request *r,
	struct str file, struct str build, struct arena *a, struct query_places *out, struct err *e)
{
	(void)q;
	(void)r;
	(void)a;
	(void)e;
	static struct str builds[1];
	builds[0] = STR("abcd1234");
	snprintf(asked_file, sizeof(asked_file), "%.*s", STR_ARG(file));
	snprintf(asked_build, sizeof(asked_build), "%.*s", STR_ARG(build));
	*out = (struct query_places){ .v = found_places,
		.count = found_count,
		.builds = builds,
		.build_count = found_count ? 1 : 0,
		.total = 20,
		.unit = STR("bytes") };
	return OK;
}

/* Of code.c, which is linked with it. */
enum status query_code_places(const struct query_engine *q, const struct query_request *r,
	struct str function, struct str binary, struct str build, struct arena *a,
	struct query_places *out, struct err *e)
{
	(void)function;
	(void)binary;
	return query_source_places(q, r, STR(""), build, a, out, e);
}

static void write_file(const char *name, const char *text, size_t len, unsigned mode)
{
	char path[sizeof(folder.path) + 64];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	CHECK(f && fwrite(text, 1, len, f) == len && fclose(f) == 0);
	CHECK(chmod(path, mode) == 0);
}

/* The body, in `out`. */
static enum status ask_for(
	struct server *s, const char *query, char *out, size_t size, struct err *e)
{
	struct ask a;
	CLEANUP(buf_deinit) struct buf body;
	const struct query_request q = { 0 };
	ask_init(&a, "/api/source", query);
	buf_init(&body, 1 << 20);
	enum status st = server_source(s, NULL, &a.r, &q, &body, e);
	snprintf(out, size, "%.*s", (int)body.len, (const char *)body.data);
	ask_deinit(&a);
	return st;
}

static void sends_what_everybody_may_read(void **state)
{
	(void)state;
	static const struct {
		const char *name, *file;
		bool not_local, open, tenants, unseen, has_text;
	} cases[] = {
		{ "a source", "a.c", .has_text = true },
		{ "its owner's only", "own.c" },
		{ "no source by its name", "passwd" },
		{ "bytes that are no text", "nul.c" },
		{ "a folder", "folder.c" },
		{ "a path to a file", "link.c" },
		{ "not there", "none.c" },
		{ "not on a server of others", "a.c", .not_local = true },
		{ "not to everybody in reach", "a.c", .open = true },
		{ "not with tenants", "a.c", .tenants = true },
		{ "not without samples of it", "a.c", .unseen = true },
	};
	CHECK(chmod(dir, 0755) == 0);
	write_file("a.c", "int a;\n\"\xff\"\n", 11, 0644);
	write_file("own.c", "secret", 6, 0600);
	write_file("passwd", "secret", 6, 0644);
	write_file("nul.c", "sec\0ret", 7, 0644);
	char path[sizeof(folder.path) + 64], to[sizeof(folder.path) + 64];
	snprintf(path, sizeof(path), "%s/folder.c", dir);
	CHECK(mkdir(path, 0755) == 0);
	/* What it leads to counts. */
	snprintf(path, sizeof(path), "%s/link.c", dir);
	snprintf(to, sizeof(to), "%s/own.c", dir);
	CHECK(symlink(to, path) == 0);
	FOR_EACH_CASE (c, cases) {
		struct server_config config;
		char query[512], body[2048];
		struct err e = { 0 };
		server_config_default(&config);
		config.local_files = !c->not_local;
		config.allow_unauthenticated = c->open;
		config.tenant_header = c->tenants ? "x-scope-orgid" : NULL;
		struct server s = { .config = &config };
		found_count = c->unseen ? 0 : 2;
		snprintf(query, sizeof(query), "file=%s/%s&build_id=", dir, c->file);
		CHECK_OK(ask_for(&s, query, body, sizeof(body), &e), &e);
		bool has_text = strstr(body, "\"origin\":\"host\",\"text\":\"int a;\\n") &&
				strstr(body, ",\"modified\":");
		if (has_text != c->has_text)
			print_error("%s: %s\n", c->name, body);
		CHECK_CASE(c, has_text == c->has_text);
		CHECK_CASE(c, c->has_text || (!strstr(body, "sec") && !strstr(body, "origin")));
		CHECK_CASE(c, c->unseen || strstr(body, "\"places\":[[3,5,9],[7,0,9]]"));
	}
	found_count = 2;
}

static void says_what_is_missing(void **state)
{
	(void)state;
	struct server_config config;
	char body[1024];
	struct err e = { 0 };
	server_config_default(&config);
	struct server s = { .config = &config };
	CHECK(ask_for(&s, "", body, sizeof(body), &e) == E_INVALID && strstr(e.text, "file:"));
	CHECK_OK(ask_for(&s, "file=a%2Fb.c&build_id=abcd1234", body, sizeof(body), &e), &e);
	CHECK(strcmp(asked_file, "a/b.c") == 0 && strcmp(asked_build, "abcd1234") == 0);
	CHECK(strcmp(body,
		      "{\"unit\":\"bytes\",\"total\":20,\"pending\":0,\"builds\":[\"abcd1234\"],"
		      "\"places\":[[3,5,9],[7,0,9]]}") == 0);
}

static int set_up(void **state)
{
	(void)state;
	temp_dir_init(&folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	char path[sizeof(folder.path) + 64];
	snprintf(path, sizeof(path), "%s/folder.c", dir);
	(void)!rmdir(path);
	temp_dir_deinit(&folder);
	return 0;
}

TEST_MAIN(cmocka_unit_test_setup_teardown(sends_what_everybody_may_read, set_up, tear_down),
	cmocka_unit_test(says_what_is_missing))
