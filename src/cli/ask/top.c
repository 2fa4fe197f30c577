/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server writes the list. With --watch it is requested again and again, and drawn over the one
 * before; while no server answers, the last list stays, with the reason below it.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/flags/flags.h"
#include "cli/options/options.h"

#define HEAD_LINES 4 /* lines above the functions, and one for the prompt below them */
#define WATCHED "now-1m"
#define INTERVAL_NS (2 * NS_PER_SEC)
#define INTERVAL_MIN_NS (NS_PER_SEC / 10)

struct top {
	struct cli_ask ask;
	uint32_t limit;
	const char *sort;
	bool watch;
	int64_t interval_ns;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "limit", .kind = CLI_NUMBER, .at = offsetof(struct top, limit), .value = "N",
	  .otherwise = "20", .most = 1000000, .help = "How many functions; 0 for all." },
	{ .name = "sort", .kind = CLI_CHOICE, .at = offsetof(struct top, sort), .value = "COLUMN",
	  .otherwise = "self", .choices = "self total",
	  .help = "By what functions cost themselves, or with all that they call." },
	{ .name = "watch", .letter = 'w', .kind = CLI_BOOL, .at = offsetof(struct top, watch),
	  .help = "Ask again and again, until Ctrl-C; of the last minute, unless --from is given." },
	{ .name = "interval", .kind = CLI_DURATION, .at = offsetof(struct top, interval_ns),
	  .value = "DURATION", .help = "How often with --watch. Default: 2s." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "top",
	.summary = "firn top: the functions that cost most.",
	.args = "[SELECTOR]",
	.args_most = 1,
	.text = "Self is what a function cost itself, total is that with everything it called.\n"
		"\n"
		"  firn top\n"
		"  firn top --watch '{comm=\"python3\"}'\n"
		"  firn top --sort total --from now-1h\n"
		"  firn top --match malloc --limit 50",
	.groups = { { "The query", cli_ask_table_options, CLI_ASK_OPTIONS,
			    offsetof(struct top, ask) },
		{ "The table", options, ARRAY_COUNT(options), 0 } },
	.group_count = 2,
};

static void put_url(const struct top *t, uint32_t limit, struct buf *url)
{
	char text[16];
	cli_url_begin(url, "/api/top");
	snprintf(text, sizeof(text), "%u", limit);
	cli_url_add(url, "limit", text);
	cli_url_add(url, "sort", t->sort);
}

/* The number of functions for which the terminal has lines. */
static uint32_t shown_functions(const struct top *t)
{
	struct winsize size = { 0 };
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > HEAD_LINES;
	uint32_t room = known ? (uint32_t)size.ws_row - HEAD_LINES : t->limit;
	return t->limit && t->limit < room ? t->limit : room;
}

/* Draws over the last list line by line, so that nothing flickers. `trouble`: one line. */
static bool redraw(struct str text, struct str trouble)
{
	struct winsize size = { 0 };
	CLEANUP(buf_deinit) struct buf plain;
	CLEANUP(buf_deinit) struct buf screen;
	struct str line;
	buf_init(&plain, CLI_ANSWER_BYTES_MAX);
	buf_init(&screen, CLI_ANSWER_BYTES_MAX);
	cli_plain(text, "\n", &plain);
	text = buf_view(&plain);
	while (str_split(&text, '\n', &line)) {
		buf_str(&screen, line);
		buf_cstr(&screen, "\033[K\n");
	}
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	buf_str(&screen, str_sub(trouble, 0, known ? size.ws_col - 1u : trouble.len));
	return fputs("\033[H", stdout) >= 0 &&
	       fwrite(screen.data, 1, screen.len, stdout) == screen.len &&
	       fputs("\033[J", stdout) >= 0 && fflush(stdout) == 0;
}

static int watch(const struct top *t)
{
	bool drawn = false;
	CLEANUP(buf_deinit) struct buf shown, trouble;
	buf_init(&shown, CLI_ANSWER_BYTES_MAX);
	buf_init(&trouble, 1 << 16);
	cli_stop_on_signals();
	while (!cli_stop) {
		CLEANUP(buf_deinit) struct buf url;
		CLEANUP(buf_deinit) struct buf body;
		buf_init(&url, 1 << 20);
		buf_init(&body, CLI_ANSWER_BYTES_MAX);
		buf_clear(&trouble);
		put_url(t, shown_functions(t), &url);
		cli_url_add_width(&url, t->ask.format);
		cli_complaints = drawn ? &trouble : NULL;
		int code = cli_ask_body(&t->ask, &url, t->ask.format, &body);
		cli_complaints = NULL;
		if (code == CLI_USAGE || (code != CLI_OK && code != CLI_NOTHING && !drawn))
			return code;
		if (code == CLI_OK) {
			if (!drawn && fputs("\033[2J", stdout) < 0)
				return CLI_FAILED;
			buf_clear(&shown);
			buf_str(&shown, buf_view(&body));
			drawn = true;
		}
		if (drawn && !redraw(buf_view(&shown), buf_view(&trouble)))
			return CLI_FAILED;
		const struct timespec pause = { .tv_sec = t->interval_ns / NS_PER_SEC,
			.tv_nsec = t->interval_ns % NS_PER_SEC };
		if (!cli_stop)
			nanosleep(&pause, NULL);
	}
	return CLI_OK;
}

int cli_top(int argc, char **argv)
{
	struct top t = { 0 };
	int at = 0, code = CLI_OK;
	bool has_from = false;
	for (int i = 1; i < argc; i++)
		has_from |= strncmp(argv[i], "--from", strlen("--from")) == 0;
	if (!cli_parse(&command, argc, argv, &t, &at, &code))
		return code;
	if (at < argc)
		t.ask.query = argv[at];
	if (t.watch && (!isatty(STDOUT_FILENO) || strcmp(t.ask.format, "text") != 0)) {
		cli_complain("--watch is for a table on a terminal");
		return CLI_USAGE;
	}
	if (!t.watch && t.interval_ns) {
		cli_complain("--interval is for --watch, which is not given");
		return CLI_USAGE;
	}
	if (!t.interval_ns)
		t.interval_ns = INTERVAL_NS;
	if (t.interval_ns < INTERVAL_MIN_NS) {
		cli_complain("--interval: at least 100ms");
		return CLI_USAGE;
	}
	if (t.watch && !has_from)
		t.ask.from = WATCHED;
	if (t.watch)
		return watch(&t);
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	put_url(&t, t.limit, &url);
	return cli_ask(&t.ask, &url, t.ask.format, NULL);
}
