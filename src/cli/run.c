/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the first argument is the verb. `help` and `version` are also understood as flags, since
 * that is what people type first.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/options/options.h"

#define VERBS_MAX 32
#define OVERVIEW_WIDTH 78

const struct cli_verb *cli_verbs;
const char cli_exit_codes[] =
	"Exit codes: 0 all is well; 1 it did not work, and a sentence says why; 2 the command line "
	"or the query is wrong; 3 no server answers; 4 `firn diff --fail-above` found something "
	"worse; 5 `firn store` could not read something; 6 there are no such samples; 7 `firn "
	"store "
	"verify` met files of a newer firn. `firn record` ends with its command's.";

static int print_overview(const struct cli_verb *verbs, FILE *to)
{
	fputs("firn profiles every process of this host, all the time, and shows where the\n"
	      "CPU's time goes.\n"
	      "\n"
	      "  sudo firn up        then open the address that it prints\n"
	      "\n"
	      "usage: firn VERB [flags]\n"
	      "\n"
	      "Verbs:\n",
		to);
	for (; verbs->name; verbs++)
		if (verbs->summary)
			fprintf(to, "  %-9s %s\n", verbs->name, verbs->summary);
	fputs("  help      show this; `firn help VERB` and `firn VERB --help` say more\n\n", to);
	CLEANUP(buf_deinit) struct buf codes;
	buf_init(&codes, 1 << 12);
	cli_wrap(&codes, cli_exit_codes, 0, OVERVIEW_WIDTH);
	fwrite(codes.data, 1, codes.len, to);
	return fflush(to) == 0 ? CLI_OK : CLI_FAILED;
}

static const struct cli_verb *find_verb(const struct cli_verb *verbs, const char *name)
{
	for (; verbs->name; verbs++)
		if (strcmp(verbs->name, name) == 0)
			return verbs;
	return NULL;
}

static int unknown_verb(const struct cli_verb *verbs, const char *name)
{
	const char *names[VERBS_MAX + 2];
	size_t count = 0;
	for (; verbs->name && count < VERBS_MAX; verbs++)
		if (verbs->summary)
			names[count++] = verbs->name;
	names[count++] = "help";
	names[count] = NULL;
	const char *nearest = nearest_word(name, names);
	if (nearest)
		cli_complain("there is no verb '%s'; did you mean `firn %s`?", name, nearest);
	else
		cli_complain("there is no verb '%s'; `firn help` lists what there is", name);
	return CLI_USAGE;
}

/* `firn help [VERB]` */
static int help(int argc, char **argv, const struct cli_verb *verbs)
{
	if (argc < 2)
		return print_overview(verbs, stdout);
	const struct cli_verb *verb = find_verb(verbs, argv[1]);
	if (!verb || !verb->summary)
		return unknown_verb(verbs, argv[1]);
	char flag[] = "--help";
	char *args[] = { argv[1], flag, NULL };
	return verb->run(2, args);
}

int cli_main(int argc, char **argv, const struct cli_verb *verbs)
{
	cli_verbs = verbs;
	if (argc < 2) {
		print_overview(verbs, stderr);
		return CLI_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "help") == 0)
		return help(argc - 1, argv + 1, verbs);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return print_overview(verbs, stdout);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	const struct cli_verb *verb = find_verb(verbs, name);
	return verb ? verb->run(argc - 1, argv + 1) : unknown_verb(verbs, name);
}
