/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfod's paths: what is sent, with which headers, and what is refused. */
#include "test.h"

#include "base/clock.h"
#include "objfile/objfile.h"
#include "server/debuginfo/debuginfo.h"
#include "server/debuginfo/files.h"
#include "server/request/state.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], build_id[129];
static struct server_config config;
static struct server s; /* ctx of the route */

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

/* The whole answer, head and body. */
static void ask(const struct net_server *net, const char *path, const char *header,
	const char *value, struct buf *out)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	char text[512];
	to.sin_port = htons((uint16_t)atoi(strrchr(net_server_address(net), ':') + 1)); /* NOLINT */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	int n = snprintf(text, sizeof(text),
		"GET %s HTTP/1.1\r\nhost: h\r\nconnection: close\r\n%s%s%s%s\r\n", path,
		header ? header : "", header ? ": " : "", header ? value : "",
		header ? "\r\n" : "");
	CHECK(write(fd, text, (size_t)n) == n);
	for (ssize_t got = 1; got > 0;) {
		uint8_t *to_buf = buf_reserve(out, 65536);
		CHECK(to_buf);
		got = read(fd, to_buf, 65536);
		out->len += got > 0 ? (size_t)got : 0;
	}
	close(fd);
}

static struct net_server *serve(void)
{
	static const struct net_route routes[] = {
		{ .method = "GET",
			.path = "/buildid/*",
			.stream_fn = server_debuginfod,
			.ctx = &s },
		{ .method = "GET",
			.path = "/metadata",
			.fn = server_debuginfod_metadata,
			.ctx = &s },
	};
	struct net_server_config c;
	struct net_server *net;
	struct err e;
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &net, &e), &e);
	return net;
}

static void answers(void **state)
{
	(void)state;
	static const struct {
		const char *name, *id, *what; /* id NULL: this program's */
		const char *header, *value;
		int status;
	} cases[] = {
		{ "debug file", NULL, "debuginfo", NULL, NULL, 200 },
		{ "section", NULL, "section/.debug_info", NULL, NULL, 200 },
		{ "no code", NULL, "executable", NULL, NULL, 404 },
		{ "no bytes of it", NULL, "section/.text", NULL, NULL, 404 },
		{ "no sources", NULL, "source/usr/src/a.c", NULL, NULL, 404 },
		{ "unknown", "00112233445566778899", "debuginfo", NULL, NULL, 404 },
		{ "too large", NULL, "debuginfo", "x-debuginfod-maxsize", "100", 406 },
		{ "large enough", NULL, "debuginfo", "x-debuginfod-maxsize", "100000000", 200 },
		{ "half a byte", "00112233445566778", "debuginfo", NULL, NULL, 404 },
		{ "capital letters", "AABBCCDDEEFF", "debuginfo", NULL, NULL, 400 },
		{ "no id", "xyzxyzxyz", "debuginfo", NULL, NULL, 400 },
		{ "short", "abc", "debuginfo", NULL, NULL, 400 },
		{ "nothing", NULL, "", NULL, NULL, 400 },
		{ "what", NULL, "metadata", NULL, NULL, 404 },
		{ "more", NULL, "debuginfo/x", NULL, NULL, 404 },
		/* Files of this host are no tenant's. */
		{ "tenant", NULL, "debuginfo", "x-scope-orgid", "a", 404 },
	};
	struct net_server *net = serve();
	FOR_EACH_CASE (c, cases) {
		char path[256], status[32], size[64];
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, NET_ANSWER_MAX);
		snprintf(path, sizeof(path), "/buildid/%s%s%s", c->id ? c->id : build_id,
			c->what[0] ? "/" : "", c->what);
		bool tenant = c->header && strcmp(c->header, "x-scope-orgid") == 0;
		config.tenant_header = tenant ? "x-scope-orgid" : NULL;
		ask(net, path, c->header, c->value, &out);
		snprintf(status, sizeof(status), "HTTP/1.1 %d ", c->status);
		if (!str_starts(buf_view(&out), str_of(status)))
			print_error("%.*s\n", (int)MIN(out.len, (size_t)300), (char *)out.data);
		CHECK_CASE(c, str_starts(buf_view(&out), str_of(status)));
		const char *body = memmem(out.data, out.len, "\r\n\r\n", 4);
		CHECK_CASE(c, body);
		size_t bytes = (size_t)((char *)out.data + out.len - body - 4);
		snprintf(size, sizeof(size), "x-debuginfod-size: %zu\r\n", bytes);
		bool ok = c->status == 200;
		CHECK_CASE(c, !ok || (bytes > 0 && memmem(out.data, out.len, size, strlen(size))));
		CHECK_CASE(c, !ok || memmem(out.data, out.len, "x-debuginfod-file: ", 19));
	}
	CHECK(atomic_load(&s.downloads) == 0);
	atomic_store(&s.downloads, SERVER_DOWNLOADS_MAX);
	CLEANUP(buf_deinit) struct buf busy;
	char path[256];
	buf_init(&busy, 1 << 20);
	snprintf(path, sizeof(path), "/buildid/%s/debuginfo", build_id);
	ask(net, path, NULL, NULL, &busy);
	CHECK(str_starts(buf_view(&busy), STR("HTTP/1.1 503 ")));
	atomic_store(&s.downloads, 0);
	net_server_stop(net);
}

static void tells_what_there_is(void **state)
{
	(void)state;
	static const struct {
		const char *name, *query;
		bool mine, tenant;
		const char *says;
	} cases[] = {
		{ "its debug file", "key=buildid&value=", true, false,
			"{\"results\":[{\"type\":\"debuginfo\",\"buildid\":\"" },
		{ "nothing", "key=buildid&value=00112233445566778899", false, false,
			"{\"results\":[],\"complete\":true}" },
		{ "of another tenant", "key=buildid&value=", true, true,
			"{\"results\":[],\"complete\":true}" },
		{ "a path", "key=glob&value=/usr/bin/*", false, false,
			"{\"results\":[],\"complete\":false}" },
		{ "no key", "value=1", false, false, "HTTP/1.1 400" },
		{ "no id", "key=buildid&value=../../etc", false, false, "HTTP/1.1 400" },
	};
	struct net_server *net = serve();
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		char path[300];
		buf_init(&out, NET_ANSWER_MAX);
		config.tenant_header = c->tenant ? "x-scope-orgid" : NULL;
		snprintf(path, sizeof(path), "/metadata?%s%s", c->query, c->mine ? build_id : "");
		ask(net, path, c->tenant ? "x-scope-orgid" : NULL, "a", &out);
		CHECK_CASE(c, memmem(out.data, out.len, c->says, strlen(c->says)));
	}
	config.tenant_header = NULL;
	net_server_stop(net);
}

static atomic_uint upstream_asked;

static void upstream(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&upstream_asked, 1);
	out->http_status = str_ends(r->path, STR("/source/usr/src/a.c")) ? 200 : 404;
	out->content_type = "application/octet-stream";
	buf_cstr(&out->body, "int upstream;\n");
}

static void not_called(void *ctx, const char *id, const char *wanted)
{
	(void)ctx;
	(void)id;
	(void)wanted;
}

/* Sources that nobody uploaded: of another server, but not for tenants. */
static void fetches_sources(void **state)
{
	(void)state;
	static const struct {
		const char *name, *path, *tenant;
		unsigned asked;
		const char *says;
	} cases[] = {
		{ "a tenant's question", "usr/src/a.c", "a", 0, "HTTP/1.1 404" },
		{ "fetched", "usr/src/a.c", NULL, 1, "\r\n\r\nint upstream;\n" },
		{ "kept", "usr/src/a.c", NULL, 1, "x-debuginfod-size: 14\r\n" },
		{ "not there", "usr/src/b.c", NULL, 2, "HTTP/1.1 404" },
		{ "a tenant, when it is kept", "usr/src/a.c", "a", 2, "HTTP/1.1 404" },
	};
	struct net_server *other, *net = serve();
	const struct net_route route = { .method = "GET", .path = "/buildid/*", .fn = upstream };
	struct net_server_config c;
	struct err e = { 0 };
	char url[100], cache[128];
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, &route, 1, &other, &e), &e);
	snprintf(url, sizeof(url), "http://%s", net_server_address(other));
	snprintf(cache, sizeof(cache), "%s/fetched", dir);
	const char *const list[] = { url, NULL };
	const struct debuginfod_config d = { .servers = list,
		.dir = cache,
		.bytes_max = 1 << 20,
		.timeout_ns = 20 * NS_PER_SEC,
		.found = not_called };
	CHECK_OK(debuginfod_open(&d, &s.debuginfod, &e), &e);
	FOR_EACH_CASE (k, cases) {
		CLEANUP(buf_deinit) struct buf out;
		char path[300];
		buf_init(&out, 1 << 20);
		config.tenant_header = k->tenant ? "x-scope-orgid" : NULL;
		snprintf(path, sizeof(path), "/buildid/%s/source/%s", build_id, k->path);
		ask(net, path, k->tenant ? "x-scope-orgid" : NULL, k->tenant, &out);
		CHECK_CASE(k, memmem(out.data, out.len, k->says, strlen(k->says)));
		CHECK_CASE(k, atomic_load(&upstream_asked) == k->asked);
	}
	config.tenant_header = NULL;
	/* /api/source and the SOURCE report say where a text is from. */
	CLEANUP(buf_deinit) struct buf text;
	const char *origin = NULL;
	buf_init(&text, 1 << 20);
	CHECK_OK(server_source_text(&s, STR(""), str_of(build_id), STR("/usr/src/a.c"), INT64_MAX,
			 NULL, NULL, &origin, &text, &e),
		&e);
	CHECK_STR(str_of(origin), "debuginfod");
	CHECK_STR(buf_view(&text), "int upstream;\n");
	net_server_stop(net);
	debuginfod_close(s.debuginfod);
	net_server_stop(other);
}

/* Sources of this host: those only that the symbol table of the build id names. */
static void sends_sources_of_the_host(void **state)
{
	(void)state;
	static const struct {
		const char *name, *id, *file; /* id NULL: the program's */
		unsigned mode;
		bool not_local, open, tenant;
		const char *says;
	} cases[] = {
		{ "named", NULL, "a.c", 0644, .says = "\r\n\r\nint main(" },
		{ "its date", NULL, "a.c", 0644, .says = "\r\nlast-modified: " },
		{ "not named", NULL, "b.c", 0644, .says = "HTTP/1.1 404" },
		{ "of another build", "00112233445566778899", "a.c", 0644, .says = "HTTP/1.1 404" },
		{ "its owner's only", NULL, "a.c", 0600, .says = "HTTP/1.1 404" },
		{ "on a server of others", NULL, "a.c", 0644, .not_local = true,
			.says = "HTTP/1.1 404" },
		{ "to everybody in reach", NULL, "a.c", 0644, .open = true,
			.says = "HTTP/1.1 404" },
		{ "of a tenant", NULL, "a.c", 0644, .tenant = true, .says = "HTTP/1.1 404" },
	};
	static const char id[] = "5ca1ab1e0123456789";
	run("cd %s && chmod 755 . && printf 'int main(void)\n{\n\treturn 0;\n}\n' > a.c && "
	    "cp a.c b.c && cc -g -Wl,--build-id=0x%s -o a %s/a.c && "
	    "mkdir -p debug/.build-id/%.2s && cp a debug/.build-id/%.2s/%s.debug",
		dir, id, dir, id, id, id + 2);
	struct net_server *net = serve();
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		char path[300];
		buf_init(&out, 1 << 20);
		config.local_files = !c->not_local;
		config.allow_unauthenticated = c->open;
		config.tenant_header = c->tenant ? "x-scope-orgid" : NULL;
		run("chmod %o %s/a.c", c->mode, dir);
		snprintf(path, sizeof(path), "/buildid/%s/source%s/%s", c->id ? c->id : id, dir,
			c->file);
		/* The table is made when it is first asked for. */
		do {
			buf_clear(&out);
			ask(net, path, c->tenant ? "x-scope-orgid" : NULL, "a", &out);
		} while (str_starts(buf_view(&out), STR("HTTP/1.1 503 ")));
		if (!memmem(out.data, out.len, c->says, strlen(c->says)))
			print_error("%.*s\n", (int)out.len, (char *)out.data);
		CHECK_CASE(c, memmem(out.data, out.len, c->says, strlen(c->says)));
		CHECK_CASE(c, str_starts(str_of(c->says), STR("\r\n")) ||
				      !memmem(out.data, out.len, "int main", 8));
	}
	server_config_default(&config);
	net_server_stop(net);
}

TEST_MAIN_WITH(debuginfo_child_main, cmocka_unit_test_setup_teardown(answers, set_up, tear_down),
	cmocka_unit_test_setup_teardown(tells_what_there_is, set_up, tear_down),
	cmocka_unit_test_setup_teardown(fetches_sources, set_up, tear_down),
	cmocka_unit_test_setup_teardown(sends_sources_of_the_host, set_up, tear_down))
