/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: the flags of a verb as a table, from which parsing, environment, defaults and --help
 * come.
 *
 * Private to cli/. A verb has groups of options; each group fills the struct that lies at its
 * offset in the verb's own struct.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define CLI_GROUPS_MAX 8
#define CLI_OPTIONS_MAX 192 /* of all groups */
#define CLI_LIST_MAX 64     /* values of one repeated flag */
#define CLI_LIST_BYTES_MAX 8192

enum cli_kind {
	CLI_TEXT,     /* const char * */
	CLI_BOOL,     /* bool; --flag, --flag=false */
	CLI_NUMBER,   /* uint32_t, from least to most */
	CLI_SHARE,    /* double, 0 to 1 */
	CLI_DURATION, /* int64_t ns */
	CLI_SIZE,     /* uint64_t bytes */
	CLI_CHOICE,   /* const char *, one of `choices` */
	CLI_LIST      /* struct cli_list; repeated, or several with `separator` between */
};

struct cli_list {
	const char *v[CLI_LIST_MAX + 1]; /* in text; NULL behind the last. Do not copy the struct */
	uint32_t count;
	size_t used;
	char text[CLI_LIST_BYTES_MAX];
};

struct cli_option {
	const char *name; /* without the dashes */
	enum cli_kind kind;
	size_t at;             /* of the field, in the group's struct */
	const char *value;     /* what --help calls the value: "HOST:PORT" */
	const char *help;      /* sentences; the default is added */
	const char *otherwise; /* the default, read like a value; NULL: the field stays zero */
	const char *env;       /* environment variable that comes before the default; or NULL */
	const char *choices;   /* "json text" */
	char letter;           /* -o; 0: none */
	char separator;        /* of a list */
	uint32_t least, most;
	bool hidden; /* accepted, not shown */
	const char
		*gone; /* the flag does nothing, and this says why; or NULL. The field is not set */
};

struct cli_group {
	const char *title; /* "": all of it is hidden */
	const struct cli_option *options;
	size_t count;
	size_t at; /* of its struct, in the verb's struct */
};

struct cli_command {
	const char *name;    /* "up" */
	const char *summary; /* one line */
	const char *args;    /* "[SELECTOR]"; "" for none */
	uint32_t args_least, args_most;
	bool args_are_a_command; /* flags end at the first argument; the rest is not ours */
	const char *text;        /* paragraphs, a line break between; may hold lines that begin with
				  * a blank, which are kept as they are */
	struct cli_group groups[CLI_GROUPS_MAX];
	size_t group_count;
};

/* Fill `out` from defaults, environment and argv (argv[0] is the verb). argv is permuted so that
 * what is no flag comes last, from *out_args on. False: the verb is done and its exit code is in
 * *out_exit: help was printed, or a sentence on what is wrong. */
bool cli_parse(const struct cli_command *c, int argc, char **argv, void *out, int *out_args,
	int *out_exit);

/* The text of --help. */
void cli_help(const struct cli_command *c, struct buf *out);

/* `text` broken at blanks into lines of at most `width`, each after `indent` blanks. */
void cli_wrap(struct buf *out, const char *text, size_t indent, size_t width);

/* Takes sentences in place of standard error, where it is not NULL; without an end of line. */
extern struct buf *cli_complaints;
/* One sentence on standard error: "firn: …", without what a terminal obeys. */
void cli_complain(const char *fmt, ...) PRINTF(1, 2);
