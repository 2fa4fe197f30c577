/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the verb starts a server on a free port of this host, whose store is deleted at the end.
 * Files of other formats are converted to pprof first. Then all are pushed to the server like any
 * profile.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/flags/flags.h"
#include "cli/process/process.h"
#include "codec/codec.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "pprof/pprof.h"
#include "stacktext/stacktext.h"

/* A limit for the file, the decompressed file, and the profile made of it. */
#define FILE_BYTES_MAX ((size_t)1 << 30)
#define STORE_MEMORY_BYTES ((uint64_t)1 << 30)
#define GZIP_LEVEL 3
#define MARGIN_MS (60 * 1000)
#define ASK_TIMEOUT_NS (30 * NS_PER_SEC)
#define TYPES_BYTES_MAX ((size_t)16 << 20)

struct open {
	bool no_browser;
	struct cli_log_flags log;
	/* ---- */
	char **files;
	int count;
	struct buf *bodies; /* pprof files */
	const char **names; /* of the profiles' types; NULL: the server chooses */
	char dir[CLI_TEMP_DIR_BYTES];
	char server[160];
	bool failed, shown;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "no-browser", .kind = CLI_BOOL, .at = offsetof(struct open, no_browser),
	  .help = "Only print the address. Else xdg-open opens it where there is a display." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "open",
	.summary = "firn open: look at a profile in the browser, without a server.",
	.args = "FILE...",
	.args_least = 1,
	.args_most = 64,
	.text = "FILE is a pprof file, folded stacks, or what `perf script` prints; each with gzip "
		"or "
		"without, and - is standard input. It is shown on an address of this host only, "
		"until Ctrl-C; nothing is kept. Of several files each has the label `file`.\n"
		"\n"
		"  firn open cpu.pb.gz\n"
		"  perf record -g -a sleep 5 && perf script | firn open -",
	.groups = { { "Flags", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1,
};

/* ---- files ---- */

static enum status read_input(const char *path, struct buf *out, struct err *e)
{
	if (strcmp(path, "-") == 0)
		return os_read_fd(STDIN_FILENO, "standard input", out, e);
	return os_read_file(path, out, e);
}

/* Converts a text format to pprof. */
static enum status make_pprof(
	struct str plain, const char *path, enum stacktext_format f, struct buf *out, struct err *e)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	CLEANUP(buf_deinit) struct buf proto;
	struct stacktext_stats stats;
	buf_init(&proto, FILE_BYTES_MAX);
	enum status s = profile_init(&p, FILE_BYTES_MAX);
	if (s == OK)
		s = stacktext_decode(plain, f, clock_realtime_ns(), &p, &stats, e);
	if (s == OK)
		s = pprof_encode(&p, &proto, e);
	if (s == OK)
		s = codec_gzip(proto.data, proto.len, GZIP_LEVEL, out);
	if (s == OK && stats.skipped)
		cli_complain("%s: %llu line%s left out that say nothing of a stack, the first is "
			     "line %llu",
			path, (unsigned long long)stats.skipped, stats.skipped == 1 ? "" : "s",
			(unsigned long long)stats.first_skipped);
	return s;
}

static enum status load(const char *path, struct buf *body, const char **name, struct err *e)
{
	CLEANUP(buf_deinit) struct buf file;
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&file, FILE_BYTES_MAX);
	buf_init(&plain, FILE_BYTES_MAX);
	enum status s = read_input(path, &file, e);
	bool packed = s == OK && codec_is_gzip(file.data, file.len);
	if (packed)
		s = codec_gunzip(file.data, file.len, &plain, e);
	if (s != OK)
		return s;
	struct str text = buf_view(packed ? &plain : &file);
	enum stacktext_format f = stacktext_guess(text);
	if (f != STACKTEXT_NONE) {
		*name = f == STACKTEXT_PERF ? "perf" : "folded";
		return make_pprof(text, path, f, body, e);
	}
	buf_str(body, buf_view(&file));
	return buf_status(body);
}

static bool load_all(struct open *o)
{
	for (int i = 0; i < o->count; i++) {
		struct err e = { 0 };
		buf_init(&o->bodies[i], FILE_BYTES_MAX);
		enum status s = load(o->files[i], &o->bodies[i], &o->names[i], &e);
		if (s != OK) {
			bool named = strstr(err_text(&e, s), o->files[i]) != NULL;
			cli_complain("%s%s%s", named ? "" : o->files[i], named ? "" : ": ",
				err_text(&e, s));
			return false;
		}
	}
	return true;
}

/* ---- what is shown ---- */

/* The least or largest of all numbers that follow `key`. */
static int64_t find_ms(const char *json, const char *key, bool most)
{
	int64_t found = 0;
	bool any = false;
	for (const char *at = json; (at = strstr(at, key));) {
		at += strlen(key);
		int64_t ms = strtoll(at, NULL, 10);
		if (!any || (most ? ms > found : ms < found))
			found = ms;
		any = true;
	}
	return found;
}

static void put_time(struct buf *url, const char *key, int64_t ms)
{
	char text[40];
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		cli_url_add(url, key, text);
}

/* Chooses the type that people mostly look for, if the profile has it; else the first type. */
static void put_type(struct buf *url, const char *json)
{
	static const char *const wanted[] = { ":cpu:nanoseconds:", ":inuse_space:", ":samples:" };
	static const char key[] = "{\"type\":\"";
	char type[512];
	for (size_t i = 0; i <= ARRAY_COUNT(wanted); i++)
		for (const char *at = json; (at = strstr(at, key));) {
			at += strlen(key);
			snprintf(type, sizeof(type), "%.*s", (int)strcspn(at, "\""), at);
			if (i < ARRAY_COUNT(wanted) && !strstr(type, wanted[i]))
				continue;
			cli_url_add(url, "query", type);
			return;
		}
}

static void browse(const char *address)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	if (geteuid() == 0 || (!(x && x[0]) && !(wayland && wayland[0])))
		return; /* the address is printed; a browser is not run as root */
	if (fork() != 0)
		return;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2)
		execlp("xdg-open", "xdg-open", address, (char *)NULL);
	_exit(1);
}

static bool get(const struct open *o, const char *path, struct buf *out)
{
	struct err e = { 0 };
	struct fetch *f = NULL;
	int http_status = 0;
	enum status s = fetch_new(&(struct fetch_config){ .address = o->server }, &f, &e);
	if (s == OK)
		s = fetch_get(f, path, ASK_TIMEOUT_NS, &http_status, out, &e);
	fetch_free(f);
	buf_u8(out, 0);
	return s == OK && http_status == 200 && buf_status(out) == OK;
}

static void show(struct open *o)
{
	CLEANUP(buf_deinit) struct buf types;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&types, TYPES_BYTES_MAX);
	buf_init(&url, 1 << 16);
	if (!get(o, "/api/types?from=0&to=now", &types)) {
		cli_complain("the server does not answer");
		o->failed = true;
		return;
	}
	const char *json = (const char *)types.data;
	cli_url_begin(&url, o->server);
	buf_u8(&url, '/');
	put_type(&url, json);
	put_time(&url, "from", find_ms(json, "\"first\":", false) - MARGIN_MS);
	put_time(&url, "to", find_ms(json, "\"last\":", true) + MARGIN_MS);
	buf_u8(&url, 0);
	printf("%s\nCtrl-C ends it; nothing is kept.\n", (const char *)url.data);
	fflush(stdout);
	o->shown = true;
	if (!o->no_browser)
		browse((const char *)url.data);
}

static void push_all(struct open *o)
{
	for (int i = 0; i < o->count && !o->failed; i++) {
		CLEANUP(buf_deinit) struct buf url;
		char label[300];
		const char *slash = strrchr(o->files[i], '/');
		uint64_t samples = 0;
		buf_init(&url, 1 << 16);
		cli_url_begin(&url, "/api/push");
		cli_url_add(&url, "name", o->names[i]);
		snprintf(label, sizeof(label), "file=%.255s", slash ? slash + 1 : o->files[i]);
		if (o->count > 1)
			cli_url_add(&url, "labels", label);
		buf_u8(&url, 0);
		o->failed = cli_push_bytes(o->server, NULL, (const char *)url.data, o->files[i],
				    buf_view(&o->bodies[i]), &samples) != CLI_OK;
		if (!o->failed && samples == 0) {
			cli_complain("%s: there are no samples in it", o->files[i]);
			o->failed = true;
		}
		buf_deinit(&o->bodies[i]);
	}
}

static void on_server(void *ctx, const char *address, const char *dial)
{
	struct open *o = ctx;
	(void)address;
	if (o->shown)
		return; /* the server was started again, with its stored samples */
	snprintf(o->server, sizeof(o->server), "http://%s", dial);
	push_all(o);
	if (!o->failed)
		show(o);
}

static bool on_second(void *ctx, int64_t *next_ns)
{
	(void)next_ns;
	return ((const struct open *)ctx)->failed;
}

static int serve(struct open *o)
{
	struct supervise_config c = { .on_server = on_server, .on_second = on_second, .ctx = o };
	server_config_default(&c.server);
	c.server.http_address = "127.0.0.1:0";
	c.server.storage_path = o->dir;
	c.server.storage_memory_bytes = STORE_MEMORY_BYTES;
	c.server.symbols_on_demand = true;
	c.server.retention_ns = 0;
	c.server.resolution_ns = 0;
	int code = supervise_run(&c);
	return o->failed ? CLI_FAILED : code;
}

int cli_open(int argc, char **argv)
{
	static struct open o;
	struct cli_command c = command;
	c.groups[1] = cli_quiet_log_group;
	c.groups[1].at = offsetof(struct open, log);
	c.group_count = 2;
	int at = 0, code = CLI_OK;
	o = (struct open){ 0 };
	if (!cli_parse(&c, argc, argv, &o, &at, &code))
		return code;
	if (!cli_log_apply(&o.log))
		return CLI_USAGE;
	o.files = argv + at;
	o.count = argc - at;
	struct buf bodies[64] = { 0 };
	const char *names[ARRAY_COUNT(bodies)] = { 0 };
	o.bodies = bodies;
	o.names = names;
	code = CLI_FAILED;
	if (load_all(&o) && cli_temp_dir_make("open", o.dir)) {
		code = serve(&o);
		cli_temp_dir_remove(o.dir);
	}
	for (int i = 0; i < o.count; i++)
		buf_deinit(&bodies[i]);
	return code;
}
