/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/ask/ask: flags, request and answer, for all verbs that ask a server.
 *
 * Private to cli/. The server does the work (docs/api.md); here a URL is put together and the body
 * is passed on.
 */
#pragma once

#include "cli/ask/credentials.h"
#include "cli/ask/push.h"
#include "cli/options/options.h"

struct cli_ask {
	const char *server;
	const char *query; /* --query; a selector in the arguments comes before it */
	const char *from;
	const char *to;
	const char *match;
	const char *format;
	struct cli_credentials who;
};

extern const struct cli_option cli_ask_options[];       /* of `firn query`: every format */
extern const struct cli_option cli_ask_table_options[]; /* tables only */
extern const struct cli_option cli_ask_index_options[]; /* without match, and over all time */
#define CLI_ASK_OPTIONS 9
#define CLI_ASK_INDEX_OPTIONS 8

/* A path with a query string that grows. */
void cli_url_begin(struct buf *url, const char *path);
void cli_url_add(struct buf *url, const char *key, const char *value); /* NULL, "": left out */
void cli_url_escape(struct buf *url, const char *text);
/* Adds an end of a time range as people type it (query_parse_time()); it is local time if it has no
 * zone. A key that ends in "to" is the later end. False: it is no time, and an error was printed.
 */
bool cli_url_add_time(struct buf *url, const char *key, const char *flag, const char *text);
/* Where the address of the server came from: "--server", "FIRN_SERVER". */
const char *cli_server_source(const char *server);

#define CLI_ANSWER_BYTES_MAX ((size_t)1 << 30)

/* As cli_ask(), with the answer in `out`. Returns CLI_OK, or the exit code after an error was
 * printed. */
int cli_ask_body(const struct cli_ask *ask, struct buf *url, const char *format, struct buf *out);
/* Writes an answer to a file, or (NULL) to standard output, where a terminal gets no control
 * characters. Returns the exit code. */
int cli_pass_on(struct str body, const char *path);
/* Tries whether an answer can be written to `path` (cli_pass_on), without changing the file.
 * E_INVALID: no file can have this name. */
NODISCARD enum status cli_output_check(const char *path, struct err *e);
/* Adds query, from, to, match and format, asks, writes the body to `path` (NULL: standard output)
 * and returns the exit code; says on standard error what went wrong. */
int cli_ask(const struct cli_ask *ask, struct buf *url, const char *format, const char *path);
/* The format of a file of this name: "html"; NULL: its suffix names none. */
const char *cli_format_of(const char *path);
/* Adds the width of the terminal that standard output is, for a table. */
void cli_url_add_width(struct buf *url, const char *format);
/* The text of "error" in an answer that is JSON; else the beginning of the answer. For tests too.
 */
void cli_error_text(struct str body, struct buf *out);
