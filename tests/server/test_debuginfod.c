/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfod's paths: what is sent, with which headers, and what is refused. */
#include "test.h"

#include "ask.h"
#include "objfile/objfile.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], build_id[129];
static struct server_config config;
static struct server s;

static void run(const char *fmt, ...) PRINTF(1, 2);
static void run(const char *fmt, ...)
{
	char command[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	CHECK(system(command) == 0); /* NOLINT */
}

/* This program's debug information below a debug directory. */
static int set_up(void **state)
{
	(void)state;
	struct objfile *obj;
	struct symbolizer_config c;
	struct debuginfo_uploads_config u;
	struct err e;
	static char debug_dirs[128], uploads[128], symbols[128];
	snprintf(dir, sizeof(dir), "/tmp/firn-test-debuginfod-XXXXXX");
	CHECK(mkdtemp(dir));
	CHECK_OK(objfile_open("/proc/self/exe", &obj, &e), &e);
	snprintf(build_id, sizeof(build_id), "%s", objfile_build_id(obj));
	objfile_close(obj);
	run("mkdir -p %s/debug/.build-id/%.2s %s/symbols && objcopy --only-keep-debug "
	    "/proc/%d/exe %s/debug/.build-id/%.2s/%s.debug 2>/dev/null",
		dir, build_id, dir, (int)getpid(), dir, build_id, build_id + 2);
	snprintf(debug_dirs, sizeof(debug_dirs), "%s/debug", dir);
	snprintf(uploads, sizeof(uploads), "%s/uploads", dir);
	snprintf(symbols, sizeof(symbols), "%s/symbols", dir);
	debuginfo_uploads_config_default(&u);
	u.dir = uploads;
	server_config_default(&config);
	s = (struct server){ .config = &config };
	CHECK_OK(debuginfo_uploads_open(&u, &s.uploads, &e), &e);
	symbolizer_config_default(&c);
	c.dir = symbols;
	c.debug_dirs = debug_dirs;
	c.uploads = s.uploads;
	CHECK_OK(symbolizer_new(&c, &s.engine.symbolizer, &e), &e);
	atomic_store(&s.ready, true);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	symbolizer_free(s.engine.symbolizer);
	debuginfo_uploads_close(s.uploads);
	run("rm -r %s", dir);
	return 0;
}

static void answers(void **state)
{
	(void)state;
	static const struct {
		const char *name, *id, *what; /* id NULL: this program's */
		const char *header, *value;
		int status;
	} cases[] = {
		{ "debug file", NULL, "debuginfo", NULL, NULL, 0 },
		{ "section", NULL, "section/.debug_info", NULL, NULL, 0 },
		{ "no code", NULL, "executable", NULL, NULL, 404 },
		{ "no bytes of it", NULL, "section/.text", NULL, NULL, 404 },
		{ "no sources", NULL, "source/usr/src/a.c", NULL, NULL, 404 },
		{ "unknown", "00112233445566778899", "debuginfo", NULL, NULL, 404 },
		{ "too large", NULL, "debuginfo", "x-debuginfod-maxsize", "100", 406 },
		{ "large enough", NULL, "debuginfo", "x-debuginfod-maxsize", "100000000", 0 },
		{ "capital letters", "AABBCCDDEEFF", "debuginfo", NULL, NULL, 400 },
		{ "no id", "xyzxyzxyz", "debuginfo", NULL, NULL, 400 },
		{ "short", "abc", "debuginfo", NULL, NULL, 400 },
		{ "nothing", NULL, "", NULL, NULL, 400 },
		{ "what", NULL, "metadata", NULL, NULL, 404 },
		{ "more", NULL, "debuginfo/x", NULL, NULL, 404 },
		/* Files of this host are no tenant's. */
		{ "tenant", NULL, "debuginfo", "x-scope-orgid", "a", 404 },
	};
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		char path[256];
		struct net_response out = { 0 };
		buf_init(&out.body, NET_ANSWER_MAX);
		snprintf(path, sizeof(path), "/buildid/%s%s%s", c->id ? c->id : build_id,
			c->what[0] ? "/" : "", c->what);
		ask_init(&a, path, "");
		if (c->header)
			ask_header(&a, c->header, c->value);
		bool tenant = c->header && strcmp(c->header, "x-scope-orgid") == 0;
		config.tenant_header = tenant ? "x-scope-orgid" : NULL;
		server_debuginfod(&s, &a.r, &out);
		if (out.http_status != c->status)
			print_error("%d %s\n", out.http_status, out.message);
		CHECK_CASE(c, out.http_status == c->status);
		char size[64];
		snprintf(size, sizeof(size), "x-debuginfod-size: %zu\r\n", out.body.len);
		CHECK_CASE(c, c->status || (out.body.len > 0 && strstr(out.headers, size)));
		CHECK_CASE(c, c->status || strstr(out.headers, "x-debuginfod-file: "));
		buf_deinit(&out.body);
		ask_deinit(&a);
	}
}

TEST_MAIN(cmocka_unit_test_setup_teardown(answers, set_up, tear_down))
