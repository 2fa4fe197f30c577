/* SPDX-License-Identifier: Apache-2.0 */
/* Two made servers: asked in their order, missing, failing, sending what is no ELF file. */
#include "test.h"

#include "base/clock.h"
#include "debuginfod/debuginfod.h"
#include "gen/elf.h"
#include "net/net.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define ID "aabbccddeeff0011"

static atomic_int asked[2], status[2];
static atomic_bool html, other_id, half;
static _Atomic(const char *) found;

/* An ELF file with the build id and something of DWARF's name. */
static void put_file(struct buf *out, bool is_other)
{
	static const uint8_t note[] = { 4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa,
		0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x11 };
	struct gen_elf g;
	uint8_t own[sizeof(note)];
	memcpy(own, note, sizeof(note));
	own[sizeof(own) - 1] += is_other;
	gen_elf_init(&g);
	gen_section(&g, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x1000, own, sizeof(own));
	gen_section(&g, ".debug_info", SHT_PROGBITS, 0, 0, "names", 5);
	gen_elf_finish(&g);
	buf_str(out, buf_view(&g.file));
	gen_elf_deinit(&g);
}

static void answer(void *ctx, const struct net_request *r, struct net_response *out)
{
	int which = ctx == &asked[1];
	(void)r;
	atomic_fetch_add(&asked[which], 1);
	out->http_status = atomic_load(&status[which]);
	out->content_type = "application/octet-stream";
	if (atomic_load(&html))
		buf_cstr(&out->body, "<html>");
	else
		put_file(&out->body, which == 0 && atomic_load(&other_id));
	if (which == 0 && atomic_load(&half))
		out->body.len -= out->body.len / 2;
}

static void note(void *ctx, const char *build_id, const char *wanted)
{
	static char text[300];
	(void)ctx;
	snprintf(text, sizeof(text), "%s %s", build_id, wanted);
	atomic_store(&found, text);
}

static uint64_t metric(struct debuginfod *d, const char *name)
{
	CLEANUP(buf_deinit) struct buf text;
	uint64_t v = 0;
	buf_init(&text, 1 << 16);
	debuginfod_write_metrics(d, &text);
	buf_u8(&text, 0);
	const char *at = strstr((const char *)text.data, name);
	CHECK(at);
	struct str s = str_of(at + strlen(name) + 1);
	CHECK(str_parse_u64(str_sub(s, 0, str_index(s, '\n')), 10, &v));
	return v;
}

static void await(struct debuginfod *d, const char *name, uint64_t want)
{
	for (int i = 0; i < 2000 && metric(d, name) < want; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	CHECK(metric(d, name) == want);
}

#define RESULT(r) "\nfirn_debuginfod_fetches_total{result=\"" r "\"}"

enum first { NONE, OTHER, HALF };

static void ask_both(enum first how)
{
	atomic_store(&asked[0], 0);
	atomic_store(&asked[1], 0);
	atomic_store(&html, false);
	struct net_server *servers[2];
	char dir[64], url[2][100], both[240];
	struct err e = { 0 };
	for (int i = 0; i < 2; i++) {
		struct net_server_config c;
		const struct net_route route = {
			.method = "GET", .path = "/buildid/*", .fn = answer, .ctx = &asked[i]
		};
		net_server_config_default(&c);
		c.address = "127.0.0.1:0";
		CHECK_OK(net_server_start(&c, &route, 1, &servers[i], &e), &e);
		snprintf(url[i], sizeof(url[i]), "http://%s", net_server_address(servers[i]));
	}
	snprintf(dir, sizeof(dir), "/tmp/firn-test-debuginfod-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(both, sizeof(both), "ima:enforcing %s/ %s/buildid/", url[0], url[1]);
	const char *const list[] = { both, NULL };
	const struct debuginfod_config config = { .servers = list,
		.dir = dir,
		.bytes_max = 1 << 20,
		.timeout_ns = 20 * NS_PER_SEC,
		.found = note };
	struct debuginfod *d = NULL;
	CHECK_OK(debuginfod_open(&config, &d, &e), &e);
	/* The first has none, another, or half of one; the second has it. */
	atomic_store(&status[0], how == NONE ? 404 : 200);
	atomic_store(&other_id, how == OTHER);
	atomic_store(&half, how == HALF);
	atomic_store(&status[1], 200);
	debuginfod_want(d, ID, ID);
	await(d, RESULT("found"), 1);
	CHECK(metric(d, "\nfirn_debuginfod_unusable_files_total") == (how != NONE));
	debuginfod_stop(d); /* so that the last call has returned */
	CHECK(strcmp(atomic_load(&found), ID " " ID) == 0);
	CHECK(atomic_load(&asked[0]) == 1 && atomic_load(&asked[1]) == 1);
	debuginfod_close(d);
	/* It is there: nobody is asked. */
	CHECK_OK(debuginfod_open(&config, &d, &e), &e);
	debuginfod_want(d, "1234567890", ID);
	await(d, RESULT("found"), 1);
	CHECK(atomic_load(&asked[1]) == 1);
	atomic_store(&status[0], 404);
	/* Nobody has it: asked once. No build ids are passed over. */
	atomic_store(&status[1], 404);
	debuginfod_want(d, "00112233", "00112233");
	await(d, RESULT("missing"), 1);
	debuginfod_want(d, "00112233", "00112233");
	debuginfod_want(d, "x0112233", "x0112233");
	debuginfod_want(d, "../../../../etc", "../../../../etc");
	/* What is no ELF file is none, and that server is left alone. */
	atomic_store(&status[1], 200);
	atomic_store(&html, true);
	debuginfod_want(d, "00112244", "00112244");
	await(d, RESULT("failed"), 1);
	CHECK(atomic_load(&asked[0]) == 3 && atomic_load(&asked[1]) == 3);
	debuginfod_want(d, "00112255", "00112255");
	await(d, RESULT("failed"), 2);
	CHECK(atomic_load(&asked[0]) == 4 && atomic_load(&asked[1]) == 3);
	debuginfod_close(d);
	for (int i = 0; i < 2; i++)
		net_server_stop(servers[i]);
	char command[100];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0); /* NOLINT */
}

static void asks_in_order(void **state)
{
	(void)state;
	ask_both(NONE);
	ask_both(OTHER);
	ask_both(HALF);
}

#define SOURCE "/usr/src/./x//../a b+%.c"

static atomic_int sources_asked;
static atomic_bool held; /* the answer about "held.c" */

static void answer_source(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&sources_asked, 1);
	out->http_status = 200;
	out->content_type = "text/x-c";
	for (int i = 0; i < 2000 && atomic_load(&held) && str_ends(r->path, STR("held.c")); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	if (str_ends(r->path, STR("nul.c")))
		buf_str(&out->body, STR("int\0a;"));
	else if (str_ends(r->path, STR("long.c")))
		for (uint64_t i = 0; i <= DEBUGINFOD_SOURCE_BYTES_MAX / 16; i++)
			buf_str(&out->body, STR("int a_variable;\n"));
	else if (str_ends(r->path, STR("page.c")))
		out->content_type = "text/html; charset=utf-8";
	else if (str_eq(r->path, STR("/buildid/" ID "/source/usr/src/a b+%.c")) ||
		 str_ends(r->path, STR("held.c")))
		buf_cstr(&out->body, "int a;\n\xff");
	else
		out->http_status = 404;
}

static enum status source_of(struct debuginfod *d, const char *id, struct str path, struct buf *out)
{
	struct err e = { 0 };
	buf_clear(out);
	return debuginfod_source(
		d, str_of(id), path, clock_monotonic_ns() + 20 * NS_PER_SEC, out, &e);
}

static void refuses_sources(struct debuginfod *d, struct buf *out)
{
	static char too_long[DEBUGINFOD_SOURCE_PATH_MAX + 2];
	memset(too_long, '/', sizeof(too_long) - 1);
	/* Not asked for: what no server could have, and what leads elsewhere. */
	CHECK(source_of(d, ID, STR("a.c"), out) == E_NOTFOUND);
	CHECK(source_of(d, ID, STR("/../debuginfo"), out) == E_NOTFOUND);
	CHECK(source_of(d, ID, STR("/a/./../../debuginfo"), out) == E_NOTFOUND);
	CHECK(source_of(d, ID, STR("/a\0.c"), out) == E_NOTFOUND);
	CHECK(source_of(d, ID, str_of(too_long), out) == E_NOTFOUND);
	CHECK(source_of(d, "../../aabbccdd", STR("/a.c"), out) == E_NOTFOUND);
	CHECK(source_of(d, "", STR("/a.c"), out) == E_NOTFOUND);
	CHECK(atomic_load(&sources_asked) == 0);
	/* Asked for once, and not kept. */
	for (int i = 0; i < 2; i++) {
		CHECK(source_of(d, ID, STR("/nul.c"), out) == E_NOTFOUND);
		CHECK(source_of(d, ID, STR("/long.c"), out) == E_NOTFOUND);
		CHECK(source_of(d, ID, STR("/none.c"), out) == E_NOTFOUND);
		CHECK(out->len == 0 && atomic_load(&sources_asked) == 3);
	}
	CHECK(metric(d, "\nfirn_debuginfod_unusable_files_total") == 1);
}

static void fetches_sources(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct net_server_config c;
	struct net_server *server;
	struct debuginfod *d = NULL;
	struct err e = { 0 };
	const struct net_route route = {
		.method = "GET", .path = "/buildid/*", .fn = answer_source
	};
	char dir[64], url[100], command[100];
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, &route, 1, &server, &e), &e);
	snprintf(url, sizeof(url), "http://%s", net_server_address(server));
	snprintf(dir, sizeof(dir), "/tmp/firn-test-debuginfod-XXXXXX");
	CHECK(mkdtemp(dir));
	const char *const list[] = { url, NULL };
	const struct debuginfod_config config = { .servers = list,
		.dir = dir,
		.bytes_max = 64 << 20,
		.timeout_ns = 20 * NS_PER_SEC,
		.found = note };
	buf_init(&out, 32 << 20);
	CHECK_OK(debuginfod_open(&config, &d, &e), &e);
	refuses_sources(d, &out);
	CHECK(source_of(d, ID, STR(SOURCE), &out) == OK);
	CHECK(str_eq(buf_view(&out), STR("int a;\n\xff")) && atomic_load(&sources_asked) == 4);
	/* Whoever cannot wait gets it later. */
	atomic_store(&held, true);
	CHECK(debuginfod_source(d, STR(ID), STR("/held.c"), 0, &out, &e) == E_UNAVAILABLE);
	atomic_store(&held, false);
	CHECK(source_of(d, ID, STR("/held.c"), &out) == OK && out.len == 8);
	CHECK(source_of(d, ID, STR("/page.c"), &out) == E_NOTFOUND);
	CHECK(metric(d, RESULT("found")) == 2 && metric(d, RESULT("failed")) == 1);
	debuginfod_close(d);
	/* It is there: the server, which is gone, is not asked. */
	net_server_stop(server);
	CHECK_OK(debuginfod_open(&config, &d, &e), &e);
	CHECK(source_of(d, ID, STR(SOURCE), &out) == OK && out.len == 8);
	CHECK(atomic_load(&sources_asked) == 6);
	debuginfod_close(d);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0); /* NOLINT */
}

static void refuses_servers(void **state)
{
	(void)state;
	static const char *const bad[] = { "file:///srv", "ftp://h", "", "ima:enforcing",
		"ftp://user:hidden/more@h" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		const char *const list[] = { bad[i], NULL };
		const struct debuginfod_config config = { .servers = list,
			.dir = "/tmp/firn-test-debuginfod-none" };
		struct debuginfod *d = NULL;
		struct err e = { 0 };
		CHECK(debuginfod_open(&config, &d, &e) == E_INVALID && e.text[0] &&
			!strstr(e.text, "hidden"));
	}
}

TEST_MAIN(cmocka_unit_test(asks_in_order), cmocka_unit_test(fetches_sources),
	cmocka_unit_test(refuses_servers))
