/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the verbs of the program `firn`.
 *
 * Top layer. main() looks the verb up in cli_verbs and calls it with the verb as argv[0]; its
 * return value is the exit code.
 */
#pragma once

#include <stddef.h>

/* Exit codes, as `firn help` documents them. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,       /* the command line, or the query, is wrong */
	CLI_UNREACHABLE = 3, /* no server answers */
	CLI_WORSE = 4,       /* `firn diff --fail-above`: a function grew by more */
	CLI_UNREADABLE = 5,  /* `firn store verify`, `inspect`: something could not be read */
	CLI_NOTHING = 6,     /* no samples match the query */
	CLI_NEWER = 7        /* `firn store verify`: written by a newer firn */
};

int cli_up(int argc, char **argv);
int cli_server(int argc, char **argv);
int cli_agent(int argc, char **argv);
int cli_record(int argc, char **argv);
int cli_query(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_ready(int argc, char **argv);
int cli_types(int argc, char **argv);
int cli_labels(int argc, char **argv);
int cli_open(int argc, char **argv);
int cli_push(int argc, char **argv);
int cli_store(int argc, char **argv);
int cli_debuginfo(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_manual(int argc, char **argv);
int cli_version(int argc, char **argv);

struct cli_verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* NULL: not shown in the help */
};

/* The verbs given to cli_main(); NULL before. */
extern const struct cli_verb *cli_verbs;
extern const char cli_exit_codes[]; /* the sentence of the overview about them */

/* The whole program: argv as main() gets it, verbs with a NULL name at the end. */
int cli_main(int argc, char **argv, const struct cli_verb *verbs);
