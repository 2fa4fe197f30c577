/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/instructions over this program: instructions with values and lines, and what is missing.
 */
#include "test.h"

#include "ask.h"
#include "base/clock.h"
#include "objfile/objfile.h"
#include "server/debuginfo/source.h"
#include "server/request/state.h"

#include <link.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], exe[128], build_id[129];
static struct server_config config;
static struct server s;
static struct query_engine engine;
static struct query_place places[2];
static uint32_t place_count;

/* What the samples below are of: a call, and something of its own. */
static volatile int sink;
static __attribute__((noinline)) uintptr_t measured(int x)
{
	uintptr_t at;
	sink += x;
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0" : "=r"(at));
#else
	__asm__ volatile("adr %0, ." : "=r"(at));
#endif
	sink -= x;
	return at;
}

static int load_base(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	*(uintptr_t *)out = info->dlpi_addr;
	return 1; /* the first one is the program */
}

enum status query_code_places(const struct query_engine *q, const struct query_request *r,
	struct str function, struct str binary, struct str build, struct arena *a,
	struct query_places *out, struct err *e)
{
	(void)q;
	(void)r;
	(void)a;
	(void)e;
	CHECK(str_eq(binary, STR("program")) || binary.len == 0);
	static struct str builds[1];
	builds[0] = build.len ? build : str_of(build_id);
	*out = (struct query_places){ .v = places,
		.count = str_eq(function, STR("measured")) ? place_count : 0,
		.builds = builds,
		.build_count = 1,
		.path = str_of(exe),
		.total = 100,
		.unit = STR("bytes") };
	return OK;
}

enum status query_source_places(const struct query_engine *q, const struct query_request *r,
	struct str file, struct str build, struct arena *a, struct query_places *out, struct err *e)
{
	return query_code_places(q, r, file, build, build, a, out, e);
}

/* This program, where every user may read it. */
static int set_up(void **state)
{
	(void)state;
	struct objfile *obj;
	struct symbolizer_config c;
	struct debuginfo_uploads_config u;
	struct err e;
	uintptr_t base = 0;
	static char uploads[128], symbols[128], command[2 * PATH_MAX + 128];
	snprintf(dir, sizeof(dir), "/tmp/firn-test-code-XXXXXX");
	CHECK(mkdtemp(dir) && chmod(dir, 0755) == 0);
	snprintf(exe, sizeof(exe), "%s/program", dir);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && chmod 755 %s", (int)getpid(), exe,
		exe);
	CHECK(system(command) == 0); /* NOLINT */
	CHECK_OK(objfile_open(exe, &obj, &e), &e);
	snprintf(build_id, sizeof(build_id), "%s", objfile_build_id(obj));
	objfile_close(obj);
	snprintf(uploads, sizeof(uploads), "%s/uploads", dir);
	snprintf(symbols, sizeof(symbols), "%s/symbols", dir);
	debuginfo_uploads_config_default(&u);
	u.dir = uploads;
	server_config_default(&config);
	s = (struct server){ .config = &config };
	CHECK_OK(debuginfo_uploads_open(&u, &s.uploads, &e), &e);
	symbolizer_config_default(&c);
	c.dir = symbols;
	c.debug_dirs = "";
	c.local_files = true;
	c.uploads = s.uploads;
	CHECK_OK(symbolizer_new(&c, &s.engine.symbolizer, &e), &e);
	engine.symbolizer = s.engine.symbolizer;
	dl_iterate_phdr(load_base, &base);
	places[0] = (struct query_place){ measured(1) - base, 7, 9 };
	place_count = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	char command[128];
	symbolizer_free(s.engine.symbolizer);
	debuginfo_uploads_close(s.uploads);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0); /* NOLINT */
	return 0;
}

/* As a report would: its table is there afterwards. */
static void have_table(void)
{
	struct profile p;
	struct err e;
	uint32_t pending = 0, mapping, location;
	struct profile_mapping m = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	CHECK(profile_add_string(&p, str_of(build_id), &m.build_id) == OK);
	CHECK(profile_add_string(&p, str_of(exe), &m.filename) == OK);
	CHECK(profile_add_mapping(&p, &m, &mapping) == OK);
	const struct profile_location l = {
		.address = places[0].at, .mapping = mapping, .kind = FRAME_NATIVE
	};
	CHECK(profile_add_location(&p, &l, NULL, 0, &location) == OK);
	CHECK_OK(symbolizer_resolve(s.engine.symbolizer, &p, 60000, &pending, &e), &e);
	CHECK(pending == 0);
	profile_deinit(&p);
}

static char body[1 << 20];

static enum status ask_for(const char *query, struct err *e)
{
	struct ask a;
	CLEANUP(buf_deinit) struct buf out;
	const struct query_request q = { 0 };
	ask_init(&a, "/api/instructions", query);
	buf_init(&out, sizeof(body) - 1);
	enum status st = server_instructions(&s, &engine, &a.r, &q, &out, e);
	snprintf(body, sizeof(body), "%.*s", (int)out.len, out.len ? (const char *)out.data : "");
	ask_deinit(&a);
	return st;
}

static void lists_a_function(void **state)
{
	(void)state;
	struct err e = { 0 };
	have_table();
	CHECK_OK(ask_for("function=measured&binary=program", &e), &e);
	CHECK(strstr(body, "{\"unit\":\"bytes\",\"total\":100,\"pending\":0,\"builds\":[\""));
	CHECK(strstr(body, ",7,9,\"") && strstr(body, "test_code.c\",") &&
		strstr(body, ",\"measured\"]"));
	CHECK(strstr(body, "[\"") && strstr(body, "\"ret") && !strstr(body, "missing"));
	/* Nobody else's file, and none that only its owner may read. */
	config.tenant_header = "x-scope-orgid";
	CHECK_OK(ask_for("function=measured&binary=program", &e), &e);
	CHECK(strstr(body, "\"missing\":\"") && strstr(body, "\"instructions\":[]"));
	config.tenant_header = NULL;
	CHECK(chmod(exe, 0700) == 0);
	CHECK_OK(ask_for("function=measured&binary=program", &e), &e);
	CHECK(strstr(body, "\"missing\":\"no executable of this build id\""));
}

static enum status may_begin(void *ctx, const struct debuginfo_record *known, struct err *e)
{
	(void)ctx;
	(void)known;
	(void)e;
	return OK;
}

/* What an agent of another host sends of this program: names, and nothing of .text. */
static void upload_names(void)
{
	static uint8_t bytes[1 << 24];
	const struct debuginfo_key key = { str_of(build_id), STR(""), DEBUGINFO_DEBUG };
	struct debuginfo_record r;
	struct debuginfo_extract *x;
	struct debuginfo_upload *up;
	struct objfile *obj;
	struct err e;
	CHECK_OK(objfile_open(exe, &obj, &e), &e);
	CHECK_OK(debuginfo_extract_new(obj, &x, &e), &e);
	uint64_t len = debuginfo_extract_bytes(x), got;
	CHECK(len <= sizeof(bytes));
	CHECK_OK(debuginfo_extract_read(x, 0, bytes, len, &e), &e);
	debuginfo_extract_free(x);
	objfile_close(obj);
	CHECK_OK(debuginfo_uploads_begin(s.uploads, &key, STR("h"), len, may_begin, NULL, &r, &e),
		&e);
	CHECK_OK(debuginfo_upload_open(s.uploads, &key, str_of(r.upload), INT64_MAX, &up, &e), &e);
	CHECK_OK(debuginfo_upload_write(up, str_make(bytes, len), &e), &e);
	CHECK_OK(debuginfo_upload_end(up, &got, &e), &e);
	debuginfo_upload_close(up);
	CHECK_OK(debuginfo_uploads_finish(s.uploads, &key, str_of(r.upload), &r, &e), &e);
	CHECK(!r.invalid);
	CHECK_OK(symbolizer_look_again(s.engine.symbolizer, build_id, false, &e), &e);
}

static void names_of_others_are_no_executable(void **state)
{
	(void)state;
	struct err e = { 0 };
	upload_names();
	int64_t end = clock_monotonic_ns() + 60 * NS_PER_SEC;
	CHECK_OK(ask_for("function=measured&binary=program", &e), &e);
	while (strstr(body, "is not known yet") && clock_monotonic_ns() < end) {
		usleep(10000);
		CHECK_OK(ask_for("function=measured&binary=program", &e), &e);
	}
	CHECK(strstr(body, "\"ret") && !strstr(body, "missing"));
}

static void says_what_is_missing(void **state)
{
	(void)state;
	struct err e = { 0 };
	CHECK(ask_for("binary=program", &e) == E_INVALID && strstr(e.text, "function:"));
	CHECK_OK(ask_for("function=measured", &e), &e);
	CHECK(strstr(body, "\"binary\":\"program\""));
	CHECK_OK(ask_for("function=other", &e), &e);
	CHECK(strstr(body, "\"instructions\":[]}") && !strstr(body, "missing"));
	CHECK_OK(ask_for("function=measured&build_id=00112233", &e), &e);
	CHECK(strstr(body, "\"missing\":\"where the function begins and ends is not known"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
TEST_MAIN_WITH(debuginfo_child_main, CASE(lists_a_function),
	CASE(names_of_others_are_no_executable), CASE(says_what_is_missing))
