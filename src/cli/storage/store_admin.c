/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target is a server's URL or a directory: target_open() finds out, and each verb has one
 * function that works on either. If an answer does not fit into one part of an export, its time
 * range is exported in two halves.
 */
#include "cli/storage/store_admin.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "query/query.h"
#include "selector/selector.h"
#include "store/store.h"

#define TIMEOUT_NS (3600 * NS_PER_SEC)
#define SELECTOR_ARENA_BYTES ((size_t)1 << 20)
#define EXPORT_BYTES_MAX ((size_t)32 << 20) /* of one part: an import of it fits into a request */
#define STORE_PATH_BYTES 4096

struct options {
	const char *query;
	const char *from;
	const char *to;
	const char *tenant;
	uint64_t memory_bytes; /* of a directory */
	bool again;
	struct cli_credentials who;
};

struct target {
	const char *name;
	struct fetch *client; /* of a server */
	struct store *store;  /* of a directory */
	struct os_pool *pool; /* its threads */
	struct arena arena;
	struct selector selector;
	struct samples_query q;
	struct str tenant;
};

/* ---- opening ---- */

static void notice(void *ctx, const char *sentence)
{
	(void)ctx;
	cli_complain("%s", sentence);
}

/* Gives up privileges, unless the directory is another user's and root needs them to read and write
 * it. */
static enum status drop_privileges(const char *path, struct err *e)
{
	struct stat st;
	uint64_t keep = 0;
	if (stat(path, &st) < 0 || st.st_uid != geteuid())
		keep = (uint64_t)1 << CAP_DAC_OVERRIDE | (uint64_t)1 << CAP_FOWNER |
		       (uint64_t)1 << CAP_CHOWN;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return os_set_capabilities(keep, keep, e);
}

static enum status open_directory(struct target *t, const struct options *o, struct err *e)
{
	char parts[STORE_PATH_BYTES];
	struct stat st;
	if (snprintf(parts, sizeof(parts), "%s/parts", t->name) >= (int)sizeof(parts))
		return err_set(e, E_LIMIT, "the path is too long");
	if (stat(parts, &st) < 0)
		return err_set(e, E_NOTFOUND,
			"%s is no storage directory (it has no parts/), and no http:// address",
			t->name);
	enum status s = drop_privileges(t->name, e);
	if (s != OK)
		return s;
	struct store_config c;
	store_config_default(&c);
	c.path = t->name;
	c.memory_bytes = o->memory_bytes;
	s = os_pool_new(os_cpus() - 1, "query", &t->pool, e);
	if (s != OK)
		return s;
	c.pool = t->pool;
	s = store_open(&c, notice, NULL, &t->store, e);
	return s == E_EXISTS ? err_prefix(e, s, "name the server's address instead") : s;
}

static enum status take_time(const char *text, const char *flag, int64_t *out, struct err *e)
{
	if (!text || !text[0])
		return OK;
	unsigned flags = QUERY_TIME_LOCAL | (strcmp(flag, "to") == 0 ? QUERY_TIME_END : 0);
	enum status s = query_parse_time(str_of(text), clock_realtime_ns(), flags, out, e);
	return s == OK ? OK : err_prefix(e, s, "--%s", flag);
}

static enum status take_query(struct target *t, const struct options *o, struct err *e)
{
	t->tenant = str_of(o->tenant ? o->tenant : "");
	t->q = (struct samples_query){
		.selector = &t->selector, .from_ns = INT64_MIN, .to_ns = INT64_MAX
	};
	enum status s = selector_parse(str_of(o->query), &t->arena, &t->selector, e);
	if (s == OK)
		s = take_time(o->from, "from", &t->q.from_ns, e);
	if (s == OK)
		s = take_time(o->to, "to", &t->q.to_ns, e);
	if (s == OK && t->q.from_ns >= t->q.to_ns)
		s = err_set(e, E_INVALID, "--from must lie before --to");
	return s;
}

static enum status target_open(
	struct target *t, const char *name, const struct options *o, struct err *e)
{
	*t = (struct target){ .name = name };
	arena_init(&t->arena, SELECTOR_ARENA_BYTES);
	if (str_starts(str_of(name), STR("http:")) || str_starts(str_of(name), STR("https:")) ||
		str_starts(str_of(name), STR("unix:")))
		return cli_fetch_new(name, &o->who, &t->client, e);
	return open_directory(t, o, e);
}

static void target_close(struct target *t)
{
	fetch_free(t->client);
	store_close(t->store);
	os_pool_free(t->pool);
	selector_deinit(&t->selector);
	arena_deinit(&t->arena);
}

/* ---- asking a server ---- */

static void add_time(struct buf *url, const char *key, int64_t t, int64_t none)
{
	char text[48];
	if (t == none)
		return;
	snprintf(text, sizeof(text), "%lld.%09lld", (long long)(t / NS_PER_SEC),
		(long long)(t % NS_PER_SEC));
	cli_url_add(url, key, text);
}

static enum status refused(const struct target *t, int http_status, struct str body, struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 64 << 10);
	cli_error_text(body, &text);
	enum status s = http_status == 422   ? E_LIMIT
			: http_status == 400 ? E_INVALID
			: http_status == 403 ? E_DENIED
			: http_status == 409 ? E_EXISTS
					     : E_IO;
	if (text.len == 0)
		buf_printf(&text, "HTTP status %d", http_status);
	return err_set(e, s, "%s: %.*s", t->name, STR_ARG(buf_view(&text)));
}

/* POST when `body` is given. */
static enum status ask(
	struct target *t, struct buf *url, const struct str *body, struct buf *out, struct err *e)
{
	int http_status = 0;
	buf_u8(url, 0);
	if (buf_status(url) != OK)
		return err_set(e, E_LIMIT, "the query is too long");
	const char *path = (const char *)url->data;
	enum status s =
		body ? fetch_post(t->client, path, NULL, *body, TIMEOUT_NS, &http_status, out, e)
		     : fetch_get(t->client, path, TIMEOUT_NS, &http_status, out, e);
	if (s == E_UNAVAILABLE || s == E_TIMEOUT)
		return err_prefix(e, E_UNAVAILABLE, "no firn server answers at %s", t->name);
	if (s != OK || http_status == 200)
		return s;
	return refused(t, http_status, buf_view(out), e);
}

static void query_url(struct target *t, const char *path, const struct options *o, int64_t from_ns,
	int64_t to_ns, struct buf *url)
{
	cli_url_begin(url, path);
	cli_url_add(url, "query", o->query);
	cli_url_add(url, "tenant", o->tenant);
	add_time(url, "from", from_ns, INT64_MIN);
	add_time(url, "to", to_ns, INT64_MAX);
	(void)t;
}

/* ---- the end of a verb ---- */

static int finish(enum status s, const struct err *e)
{
	if (s == OK)
		return CLI_OK;
	cli_complain("%s", err_text(e, s));
	return s == E_INVALID ? CLI_USAGE : s == E_UNAVAILABLE ? CLI_UNREACHABLE : CLI_FAILED;
}

/* clang-format off */
#define MEMORY_OPTION                                                                              \
	{ .name = "storage-memory", .kind = CLI_SIZE, .at = offsetof(struct options, memory_bytes), \
	  .value = "SIZE", .otherwise = "256MiB", .help = "Memory, where TARGET is a directory. " \
		  "Best as much as the server had that wrote it." }
#define PICK_OPTIONS                                                                               \
	{ .name = "from", .kind = CLI_TEXT, .at = offsetof(struct options, from),                  \
	  .value = "TIME", .help = "Begin of the time range: now-15m, now/d, 2026-01-31, RFC 3339 " \
		  "or unix time. Default: the first sample." },                                    \
	{ .name = "to", .kind = CLI_TEXT, .at = offsetof(struct options, to),                      \
	  .value = "TIME", .help = "End of the time range. Default: the last sample." },           \
	{ .name = "tenant", .kind = CLI_TEXT, .at = offsetof(struct options, tenant),              \
	  .value = "NAME", .help = "Whose samples. Default: those without a tenant." }

static const struct cli_option delete_options[] = { PICK_OPTIONS, MEMORY_OPTION,
	CLI_CREDENTIALS_OPTIONS(struct options, who) };
static const struct cli_option export_options[] = {
	{ .name = "query", .kind = CLI_TEXT, .at = offsetof(struct options, query),
	  .value = "SELECTOR", .otherwise = "{}", .help = "Which samples; {}: all." },
	PICK_OPTIONS,
	MEMORY_OPTION, CLI_CREDENTIALS_OPTIONS(struct options, who),
};
static const struct cli_option import_options[] = {
	{ .name = "again", .kind = CLI_BOOL, .at = offsetof(struct options, again),
	  .help = "Take samples even if they were exported from this very store (to undo a "
		  "deletion)." },
	{ .name = "from", .kind = CLI_TEXT, .at = offsetof(struct options, from),
	  .value = "TIME", .help = "Only samples from then on. Default: the first." },
	{ .name = "to", .kind = CLI_TEXT, .at = offsetof(struct options, to),
	  .value = "TIME", .help = "Only samples before. Default: the last." },
	MEMORY_OPTION, CLI_CREDENTIALS_OPTIONS(struct options, who),
};
#define OPTIONS(v) .groups = { { "What", v, ARRAY_COUNT(v), 0 } }, .group_count = 1
/* clang-format on */

#define TARGET_TEXT                                                                          \
	"\n\nTARGET is the address of a running server that was started with "               \
	"--enable-admin-api (http://127.0.0.1:7070), or a storage directory that no server " \
	"has open.\n\n"

/* Prints a server's answer on a line of its own. */
static enum status say(struct str body, struct err *e)
{
	if (cli_show(stdout, body) && putchar('\n') == '\n')
		return OK;
	return err_set(e, E_IO, "standard output could not be written");
}

/* ---- delete ---- */

static const struct cli_command delete_command = {
	.name = "store delete",
	.summary = "firn store delete: remove samples, in memory, log and parts.",
	.args = "TARGET SELECTOR",
	.args_least = 2,
	.args_most = 2,
	.text = "When it ends with exit code 0 no query returns the samples any more, also after a "
		"crash, and they are gone from the disk, damaged files in quarantine/ excepted. "
		"After any other exit code some may be gone: run it again." TARGET_TEXT
		"  firn store delete http://127.0.0.1:7070 '{comm=\"secret\"}' --to now-1h",
	OPTIONS(delete_options),
};

static enum status delete_there(struct target *t, const struct options *o, struct err *e)
{
	CLEANUP(buf_deinit) struct buf url, body;
	struct str nothing = STR("");
	struct store_deleted done;
	buf_init(&url, 1 << 20);
	buf_init(&body, 1 << 20);
	if (t->client) {
		query_url(t, "/api/admin/delete", o, t->q.from_ns, t->q.to_ns, &url);
		enum status s = ask(t, &url, &nothing, &body, e);
		return s == OK ? say(buf_view(&body), e) : s;
	}
	enum status s = store_delete(t->store, t->tenant, &t->q, &done, e);
	if (s == OK)
		printf("{\"rows\":%llu,\"samples\":%llu,\"parts\":%llu,\"damaged\":%llu}\n",
			(unsigned long long)done.rows, (unsigned long long)done.samples,
			(unsigned long long)done.parts, (unsigned long long)done.damaged);
	return s;
}

int cli_store_delete(int argc, char **argv)
{
	struct options o = { 0 };
	struct err e = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&delete_command, argc, argv, &o, &at, &code))
		return code;
	o.query = argv[at + 1];
	struct target t;
	enum status s = target_open(&t, argv[at], &o, &e);
	if (s == OK)
		s = take_query(&t, &o, &e);
	if (s == OK)
		s = delete_there(&t, &o, &e);
	target_close(&t);
	return finish(s, &e);
}

/* ---- export ---- */

static const struct cli_command export_command = {
	.name = "store export",
	.summary = "firn store export: copy samples into a file.",
	.args = "TARGET FILE",
	.args_least = 2,
	.args_most = 2,
	.text = "FILE is replaced when all is written. It holds parts, one behind the other "
		"(docs/formats/export.md), for `firn store import`; `firn query -o` gives "
		"pprof." TARGET_TEXT "  firn store export /var/lib/firn all.parts --from now-24h",
	OPTIONS(export_options),
};

struct exporting {
	struct target *t;
	const struct options *o;
	int fd;
	const char *path;
	uint64_t bytes;
	unsigned parts;
};

static enum status export_piece(
	struct exporting *x, int64_t from_ns, int64_t to_ns, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	if (x->t->client) {
		query_url(x->t, "/api/admin/export", x->o, from_ns, to_ns, &url);
		return ask(x->t, &url, NULL, out, e);
	}
	struct store_view *v;
	struct samples_query q = x->t->q;
	q.from_ns = from_ns;
	q.to_ns = to_ns;
	enum status s = store_view_open(x->t->store, x->t->tenant, &v, e);
	if (s != OK)
		return s;
	s = store_export(v, &q, out, e);
	store_view_close(v);
	return s;
}

/* The middle of the time range: a whole hour if there is one, else a whole step of the times of
 * merged samples, so that no rounding moves a sample from one half to the other. False: there is
 * none. */
static bool halve(int64_t from_ns, int64_t to_ns, int64_t *out)
{
	static const int64_t steps_ns[] = { 3600 * NS_PER_SEC, 300 * NS_PER_SEC, 10 * NS_PER_SEC,
		1 };
	int64_t low = MAX(from_ns, (int64_t)0);
	int64_t high = MIN(to_ns, clock_realtime_ns() + 86400 * NS_PER_SEC);
	for (size_t i = 0; i < ARRAY_COUNT(steps_ns) && high > low + 1; i++) {
		*out = low + (high - low) / 2;
		*out -= *out % steps_ns[i];
		if (*out > from_ns && *out > low && *out < to_ns)
			return true;
	}
	return false;
}

static enum status export_range(struct exporting *x, int64_t from_ns, int64_t to_ns, struct err *e)
{
	int64_t middle;
	enum status s;
	{
		CLEANUP(buf_deinit) struct buf piece;
		buf_init(&piece, EXPORT_BYTES_MAX);
		s = export_piece(x, from_ns, to_ns, &piece, e);
		if (s == OK && piece.len) {
			s = os_write_full(x->fd, piece.data, piece.len, x->path, e);
			x->bytes += piece.len;
			x->parts++;
		}
	}
	if (s != E_LIMIT || !halve(from_ns, to_ns, &middle))
		return s;
	s = export_range(x, from_ns, middle, e);
	return s == OK ? export_range(x, middle, to_ns, e) : s;
}

static enum status export_to(struct exporting *x, const char *path, struct err *e)
{
	char tmp[STORE_PATH_BYTES];
	if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp))
		return err_set(e, E_LIMIT, "the path is too long");
	CLEANUP(fd_cleanup) int fd = open(tmp, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_os(e, "open %s", tmp);
	x->fd = fd;
	x->path = tmp;
	enum status s = export_range(x, x->t->q.from_ns, x->t->q.to_ns, e);
	if (s == OK && fsync(fd) < 0)
		s = err_os(e, "sync %s", tmp);
	if (s == OK && rename(tmp, path) < 0)
		s = err_os(e, "rename %s to %s", tmp, path);
	if (s != OK)
		(void)!unlink(tmp);
	return s;
}

int cli_store_export(int argc, char **argv)
{
	struct options o = { 0 };
	struct err e = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&export_command, argc, argv, &o, &at, &code))
		return code;
	struct target t;
	struct exporting x = { .t = &t, .o = &o };
	enum status s = target_open(&t, argv[at], &o, &e);
	if (s == OK)
		s = take_query(&t, &o, &e);
	if (s == OK)
		s = export_to(&x, argv[at + 1], &e);
	if (s == OK)
		printf("{\"parts\":%u,\"bytes\":%llu}\n", x.parts, (unsigned long long)x.bytes);
	target_close(&t);
	return finish(s, &e);
}

/* ---- import ---- */

static const struct cli_command import_command = {
	.name = "store import",
	.summary = "firn store import: take samples from files of `firn store export`.",
	.args = "TARGET FILE...",
	.args_least = 2,
	.args_most = 1024,
	.text = "Part files of a storage directory are taken too. What was imported before, and is "
		"still there, is not stored again. Samples that two different exports have in "
		"common are stored twice: use --from and --to. Every byte is checked first; a "
		"damaged part is named, and not taken." TARGET_TEXT
		"  firn store import /var/lib/firn all.parts",
	OPTIONS(import_options),
};

static enum status import_piece(struct target *t, struct str part,
	const struct store_import_wish *wish, const char *name, struct err *e)
{
	CLEANUP(buf_deinit) struct buf url, body;
	struct store_imported done;
	buf_init(&url, 1 << 10);
	buf_init(&body, 1 << 20);
	if (t->client) {
		cli_url_begin(&url, "/api/admin/import");
		cli_url_add(&url, "again", wish->again ? "1" : NULL);
		add_time(&url, "from", wish->from_ns, INT64_MIN);
		add_time(&url, "to", wish->to_ns, INT64_MAX);
		enum status s = ask(t, &url, &part, &body, e);
		return s == OK ? say(buf_view(&body), e) : s;
	}
	enum status s = store_import(t->store, part, wish, &done, e);
	if (s != OK)
		return err_prefix(e, s, "%s", name);
	printf("{\"rows\":%llu,\"samples\":%llu,\"known\":%s}\n", (unsigned long long)done.rows,
		(unsigned long long)done.samples, done.known ? "true" : "false");
	return OK;
}

static enum status import_bytes(struct target *t, struct str bytes,
	const struct store_import_wish *wish, const char *name, struct err *e)
{
	while (bytes.len) {
		struct str part;
		enum status s = store_export_split(bytes, &bytes, &part, e);
		if (s != OK)
			return err_prefix(e, s, "%s", name);
		s = import_piece(t, part, wish, name, e);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status import_file(
	struct target *t, const char *path, const struct store_import_wish *wish, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct stat st;
	enum status s = os_open_regular(AT_FDCWD, path, &fd, e);
	if (s != OK)
		return s;
	if (fstat(fd, &st) < 0)
		return err_os(e, "stat %s", path);
	if (st.st_size == 0)
		return err_set(
			e, E_CORRUPT, "%s is empty: an export of nothing, or cut short", path);
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_os(e, "map %s", path);
	s = import_bytes(t, str_make(p, (size_t)st.st_size), wish, path, e);
	munmap(p, (size_t)st.st_size);
	return s;
}

int cli_store_import(int argc, char **argv)
{
	struct options o = { 0 };
	struct err e = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&import_command, argc, argv, &o, &at, &code))
		return code;
	struct target t = { 0 };
	struct store_import_wish wish = { o.again, INT64_MIN, INT64_MAX };
	enum status s = take_time(o.from, "from", &wish.from_ns, &e);
	if (s == OK)
		s = take_time(o.to, "to", &wish.to_ns, &e);
	if (s == OK && wish.from_ns >= wish.to_ns)
		s = err_set(&e, E_INVALID, "--from must lie before --to");
	if (s == OK)
		s = target_open(&t, argv[at], &o, &e);
	for (int i = at + 1; i < argc && s == OK; i++)
		s = import_file(&t, argv[i], &wish, &e);
	target_close(&t);
	return finish(s, &e);
}
