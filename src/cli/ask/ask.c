/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one GET. The exit code says what failed: 3 when no server answered, 2 when the server
 * refused the query (400), 6 when the answer is empty (404), 1 for the rest.
 */
#include "cli/ask/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "query/query.h"

#define ANSWER_TIMEOUT_NS (120 * NS_PER_SEC)
#define ERROR_SHOWN_MAX 800

/* clang-format off */
#define FROM_HELP                                                                                  \
	"Begin of the time range: now-15m, now/d (today), now-7d/d, 2026-01-31, '2026-01-31 "     \
	"14:05', RFC 3339 or unix time; local time where no zone is given"
#define TABLE_HELP "text (a table) or json."
#define MATCH                                                                                      \
	{ .name = "match", .kind = CLI_TEXT, .at = offsetof(struct cli_ask, match),                \
	  .value = "TEXT",                                                                         \
	  .help = "Only stacks with a function whose name contains TEXT, in upper or lower case. " \
		  "Not for series." }
#define ASK_OPTIONS(from_otherwise, from_help, format_choices, format_otherwise, format_help)      \
	{ .name = "server", .kind = CLI_TEXT, .at = offsetof(struct cli_ask, server),              \
	  .value = "URL", .otherwise = "http://127.0.0.1:7070", .env = "FIRN_SERVER",              \
	  .help = "The server to ask." },                                                          \
	{ .name = "query", .kind = CLI_TEXT, .at = offsetof(struct cli_ask, query),                \
	  .value = "SELECTOR",                                                                     \
	  .help = "What to look at: a profile type, conditions on labels in braces, or both: "     \
		  "'{comm=\"python3\",node=~\"a.*\"}'. Without a type: the CPU time that "         \
		  "agents sample, or what is nearest to it of what the server holds." },                                                             \
	{ .name = "from", .kind = CLI_TEXT, .at = offsetof(struct cli_ask, from),                  \
	  .value = "TIME", .otherwise = from_otherwise, .help = from_help },                       \
	{ .name = "to", .kind = CLI_TEXT, .at = offsetof(struct cli_ask, to),                      \
	  .value = "TIME", .otherwise = "now",                                                     \
	  .help = "End of the time range, in the same forms." },                 \
	{ .name = "format", .kind = CLI_CHOICE, .at = offsetof(struct cli_ask, format),            \
	  .value = "FORMAT", .choices = format_choices, .otherwise = format_otherwise,             \
	  .help = format_help },                                                                  \
	CLI_CREDENTIALS_OPTIONS(struct cli_ask, who)

const struct cli_option cli_ask_index_options[] = {
	ASK_OPTIONS("0", FROM_HELP "; 0: all time.", "text json", "text", TABLE_HELP) };
const struct cli_option cli_ask_table_options[] = {
	ASK_OPTIONS("now-15m", FROM_HELP ".", "text json", "text", TABLE_HELP), MATCH };
const struct cli_option cli_ask_options[] = {
	ASK_OPTIONS("now-15m", FROM_HELP ".", "text json folded html speedscope firefox pprof", NULL,
		"text (a table) or json; of flame graphs also folded, html (a page of its own), "
		"speedscope and firefox; pprof is --report pprof. Default: by the suffix of "
		"--output, else text."),
	MATCH };
/* clang-format on */
static_assert(ARRAY_COUNT(cli_ask_options) == CLI_ASK_OPTIONS, "ask.h");
static_assert(ARRAY_COUNT(cli_ask_table_options) == CLI_ASK_OPTIONS, "ask.h");
static_assert(ARRAY_COUNT(cli_ask_index_options) == CLI_ASK_INDEX_OPTIONS, "ask.h");

static const struct {
	const char *suffix, *format;
} suffixes[] = {
	{ ".pb.gz", "pprof" },
	{ ".html", "html" },
	{ ".folded", "folded" },
	{ ".speedscope.json", "speedscope" },
	{ ".firefox.json", "firefox" },
	{ ".txt", "text" },
};

const char *cli_format_of(const char *path)
{
	for (size_t i = 0; path && i < ARRAY_COUNT(suffixes); i++)
		if (str_ends(str_of(path), str_of(suffixes[i].suffix)))
			return suffixes[i].format;
	return NULL;
}

void cli_url_begin(struct buf *url, const char *path)
{
	buf_clear(url);
	buf_cstr(url, path);
}

void cli_url_escape(struct buf *url, const char *text)
{
	static const char plain[] = "-._~";
	for (; *text; text++) {
		uint8_t c = (uint8_t)*text;
		bool alnum = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
		if (alnum || strchr(plain, c))
			buf_u8(url, c);
		else
			buf_printf(url, "%%%02X", c);
	}
}

void cli_url_add(struct buf *url, const char *key, const char *value)
{
	if (!value || !value[0])
		return;
	buf_u8(url, memchr(url->data, '?', url->len) ? '&' : '?');
	buf_cstr(url, key);
	buf_u8(url, '=');
	cli_url_escape(url, value);
}

bool cli_url_add_time(struct buf *url, const char *key, const char *flag, const char *text)
{
	struct err e = { 0 };
	char exact[32];
	int64_t now = clock_realtime_ns(), here = 0, utc = 0;
	unsigned end = str_ends(str_of(key), STR("to")) ? QUERY_TIME_END : 0;
	if (!text || !text[0])
		return true;
	enum status s = query_parse_time(str_of(text), now, end | QUERY_TIME_LOCAL, &here, &e);
	if (s == OK)
		s = query_parse_time(str_of(text), now, end, &utc, &e);
	if (s != OK) {
		cli_complain("--%s: %s", flag, err_text(&e, s));
		return false;
	}
	/* A time that does not depend on the time zone goes to the server as it is, since the
	 * server's clock counts. */
	snprintf(exact, sizeof(exact), "%lld.%09lld", (long long)(here / NS_PER_SEC),
		(long long)(here % NS_PER_SEC));
	cli_url_add(url, key, here == utc ? text : exact);
	return true;
}

/* ---- the answer ---- */

static void put_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_u8(out, (uint8_t)c);
	} else if (c < 0x800) {
		buf_u8(out, (uint8_t)(0xC0 | c >> 6));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3F)));
	} else {
		buf_u8(out, (uint8_t)(0xE0 | c >> 12));
		buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3F)));
		buf_u8(out, (uint8_t)(0x80 | (c & 0x3F)));
	}
}

/* Decodes the content of a JSON string up to its closing quote; control characters become '?'. */
static void unescape(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.len && s.p[i] != '"'; i++) {
		char c = s.p[i];
		uint64_t code = 0;
		if (c == '\\' && i + 1 < s.len) {
			c = s.p[++i];
			if (c == 'u' && str_parse_u64(str_sub(s, i + 1, 4), 16, &code)) {
				put_utf8(out, code < 0x20 ? '?' : (uint32_t)code);
				i += 4;
				continue;
			}
			c = c == 'n' || c == 't' ? ' ' : c;
		}
		buf_u8(out, (uint8_t)c < 0x20 ? '?' : (uint8_t)c);
	}
}

void cli_error_text(struct str body, struct buf *out)
{
	struct str key = STR("{\"error\":\"");
	body = str_trim(body);
	if (str_starts(body, key))
		unescape(str_sub(body, key.len, body.len), out);
	else
		for (size_t i = 0; i < MIN(body.len, (size_t)ERROR_SHOWN_MAX); i++)
			buf_u8(out, (uint8_t)body.p[i] < 0x20 ? ' ' : (uint8_t)body.p[i]);
}

static int refused(int http_status, struct str body)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 64 << 10);
	cli_error_text(body, &text);
	if (text.len == 0)
		buf_printf(&text, "the server answered with HTTP status %d", http_status);
	cli_complain("%.*s%s", STR_ARG(buf_view(&text)),
		http_status == 401 ? " (--bearer-token-file, --basic-auth)" : "");
	return http_status == 400 ? CLI_USAGE : http_status == 404 ? CLI_NOTHING : CLI_FAILED;
}

/* Whether the output replaces the file at the end, so that it is complete or absent. Other things
 * (a pipe, a device, a link) are written to and never replaced. */
static bool is_replaced(const char *path)
{
	struct stat st;
	return lstat(path, &st) < 0 || S_ISREG(st.st_mode);
}

static bool is_stdout(const char *path)
{
	return !path || strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

enum status cli_output_check(const char *path, struct err *e)
{
	char temporary[PATH_MAX];
	struct stat st;
	if (is_stdout(path))
		return OK;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(e, E_INVALID, "%s is a folder", path);
	if (!is_replaced(path))
		return access(path, W_OK) == 0 ? OK : err_os(e, "%s", path);
	int n = snprintf(temporary, sizeof(temporary), "%s.%d.tmp", path, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return err_set(e, E_INVALID, "path too long: %.100s…", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_os(e, "%s cannot be written", path);
	close(fd);
	return unlink(temporary) == 0 ? OK : err_os(e, "%s", temporary);
}

static enum status write_to(const char *path, struct str body, struct err *e)
{
	if (is_replaced(path))
		return os_replace_file(path, body.p, body.len, 0644, e);
	CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "%s", path);
	return os_write_full(fd, body.p, body.len, path, e);
}

int cli_pass_on(struct str body, const char *path)
{
	struct err e = { 0 };
	if (!is_stdout(path)) {
		enum status s = write_to(path, body, &e);
		if (s == OK)
			return CLI_OK;
		cli_complain("%s", err_text(&e, s));
		return CLI_FAILED;
	}
	bool line = body.len > 0 && body.p[0] == '{'; /* JSON comes without a newline at its end */
	if (cli_show(stdout, body) && (!line || putchar('\n') == '\n') && fflush(stdout) == 0)
		return CLI_OK;
	if (errno == EPIPE) { /* the reader has ended, as with `| head` */
		clearerr(stdout);
		return CLI_OK;
	}
	cli_complain("standard output could not be written: %m");
	return CLI_FAILED;
}

void cli_url_add_width(struct buf *url, const char *format)
{
	struct winsize size = { 0 };
	char text[16];
	if (strcmp(format, "text") != 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 ||
		size.ws_col == 0)
		return;
	snprintf(text, sizeof(text), "%u", size.ws_col);
	cli_url_add(url, "width", text);
}

static enum status get(const struct cli_ask *ask, const char *url, int *http_status,
	struct buf *body, struct err *e)
{
	struct fetch *f = NULL;
	enum status s = cli_fetch_new(ask->server, &ask->who, &f, e);
	if (s != OK)
		return s;
	s = fetch_get(f, url, ANSWER_TIMEOUT_NS, http_status, body, e);
	fetch_free(f);
	return s;
}

/* Whether the text can be a selector. Complains of what people often type first: the name of a file
 * or a program, or a condition without braces. */
static bool selector_is_one(const char *s)
{
	if (!s || !s[0] || strchr(s, '{'))
		return true;
	if (access(s, F_OK) == 0) {
		cli_complain("'%s' is a file, and a server is asked here: `firn open %s` shows it, "
			     "`firn push %s` stores it in a server",
			s, s, s);
		return false;
	}
	if (strchr(s, ':'))
		return true;
	if (strchr(s, '='))
		cli_complain(
			"'%s' is no selector: conditions stand in braces, and values in quotes: "
			"'{comm=\"python3\"}'",
			s);
	else
		cli_complain(
			"'%s' is no selector: '{comm=\"%s\"}' is a program of this name", s, s);
	return false;
}

const char *cli_server_source(const char *server)
{
	const char *env = getenv("FIRN_SERVER");
	return env && env == server ? "FIRN_SERVER" : "--server";
}

int cli_ask_body(const struct cli_ask *ask, struct buf *url, const char *format, struct buf *out)
{
	if (!selector_is_one(ask->query))
		return CLI_USAGE;
	cli_url_add(url, "query", ask->query);
	if (!cli_url_add_time(url, "from", "from", ask->from) ||
		!cli_url_add_time(url, "to", "to", ask->to))
		return CLI_USAGE;
	cli_url_add(url, "match", ask->match);
	cli_url_add(url, "format", format);
	cli_url_add(url, "required", "1");
	buf_u8(url, 0);
	if (buf_status(url) != OK) {
		cli_complain("the query is too long");
		return CLI_USAGE;
	}
	struct err e = { 0 };
	int http_status = 0;
	enum status s = get(ask, (const char *)url->data, &http_status, out, &e);
	if (s == E_INVALID) {
		cli_complain("%s: %s", cli_server_source(ask->server), err_text(&e, s));
		return CLI_USAGE;
	}
	if (s != OK) {
		bool plain =
			strncmp(ask->server, "https:", 6) == 0 && strstr(e.text, "not speak it");
		const char *why = err_text(&e, s); /* "ADDRESS: connect: …" */
		size_t len = strlen(ask->server);
		bool named =
			strncmp(why, ask->server, len) == 0 && strncmp(why + len, ": ", 2) == 0;
		cli_complain("no firn server answers at %s: %s. %s", ask->server,
			named ? why + len + 2 : why,
			plain ? "http:// asks without TLS"
			      : "`firn up` starts one; --server or FIRN_SERVER names another");
		return CLI_UNREACHABLE;
	}
	if (http_status != 200)
		return refused(http_status, buf_view(out));
	return CLI_OK;
}

int cli_ask(const struct cli_ask *ask, struct buf *url, const char *format, const char *path)
{
	if (format && is_stdout(path))
		cli_url_add_width(url, format);
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, CLI_ANSWER_BYTES_MAX);
	int code = cli_ask_body(ask, url, format, &body);
	return code == CLI_OK ? cli_pass_on(buf_view(&body), path) : code;
}
