/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options/options: the flags of a verb as a table, which gives parsing, environment variables,
 * defaults and --help.
 *
 * Private to cli/. A verb has groups of options; each group fills the struct that lies at its
 * offset in the verb's own struct.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/options/configfile.h"
#include "cli/options/option.h"
#include "cli/options/plain.h"

#define CLI_GROUPS_MAX 8
#define CLI_OPTIONS_MAX 192 /* of all groups */

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
	/* Not NULL: each flag is a variable FIRN_… and a key of the file that --config-path names;
	 * the file may have the keys of all these groups (NULL at the end). */
	const struct cli_group *const *file_groups;
};

/* Fill `out` from argv, the environment, the configuration file and defaults (argv[0] is the verb).
 * argv is permuted so that arguments that are no flags come last, from *out_args on. False: help or
 * an error was printed; the verb returns *out_exit. */
bool cli_parse(const struct cli_command *c, int argc, char **argv, void *out, int *out_args,
	int *out_exit);

/* A verb of a verb, such as `firn store verify`. */
struct cli_subverb {
	const char *name;
	int (*run)(int argc, char **argv);
};
/* Runs the verb of `verbs` that argv[1] names, or says that `c` has only `those`. Returns the exit
 * code. */
int cli_run_subverb(const struct cli_command *c, const struct cli_subverb *verbs, size_t count,
	const char *those, int argc, char **argv);

/* Where a value comes from; the first that has it wins. */
enum cli_source { CLI_FROM_FLAG, CLI_FROM_ENV, CLI_FROM_FILE, CLI_FROM_DEFAULT, CLI_FROM_NOWHERE };
/* Not NULL: cli_parse() of a verb with file_groups writes all values and their sources here, and
 * returns false with CLI_OK. */
extern struct buf *cli_shown;

/* Not NULL: cli_parse() calls it with the command in place of printing the help (`firn manual`). */
extern void (*cli_described)(const struct cli_command *c);

/* The text of --help about a flag: its help, the default and the variable. */
void cli_option_text(const struct cli_option *o, char *out, size_t out_size);
/* The text of --help. */
void cli_help(const struct cli_command *c, struct buf *out);

/* `text` broken at blanks into lines of at most `width`, each after `indent` blanks. */
void cli_wrap(struct buf *out, const char *text, size_t indent, size_t width);

/* Not NULL: gets the sentences in place of standard error, without an end of line. */
extern struct buf *cli_complaints;
/* Prints one sentence on standard error: "firn: …", without control characters for a terminal. */
void cli_complain(const char *fmt, ...) PRINTF(1, 2);
