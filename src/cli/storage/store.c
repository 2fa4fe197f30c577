/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/storage/store_admin.h"
#include "store/store.h"

#define FINDINGS_BYTES_MAX ((size_t)256 << 20)

static const struct cli_command verify_command = {
	.name = "store verify",
	.summary = "firn store verify: find what is damaged in the files of a store.",
	.args = "PATH",
	.args_least = 1,
	.args_most = 1,
	.text = "Reads every byte of PATH (a part, a log, or a whole storage directory) and checks "
		"it "
		"against its checksums and its format. Nothing is changed.\n"
		"\n"
		"Exit codes: 0 all is sound; 1 something is damaged, and named; 2 the command line "
		"is wrong; 5 something could not be read; 7 nothing is damaged, but something was "
		"written by a newer firn.\n"
		"\n"
		"  firn store verify /var/lib/firn",
};

static const struct cli_command inspect_command = {
	.name = "store inspect",
	.summary = "firn store inspect: show what is in the files of a store.",
	.args = "PATH",
	.args_least = 1,
	.args_most = 1,
	.text = "PATH is a part, a log, or a whole storage directory. Nothing is changed.\n"
		"\n"
		"  firn store inspect /var/lib/firn/parts/000000000000002a.part",
};

typedef enum status look_fn(const char *path, struct buf *out, struct err *e);

static int code_of(enum status s)
{
	switch (s) {
	case OK:
		return CLI_OK;
	case E_UNSUPPORTED:
		return CLI_NEWER;
	case E_CORRUPT:
		return CLI_FAILED;
	default:
		return CLI_UNREADABLE;
	}
}

static int look(const struct cli_command *c, look_fn *fn, int argc, char **argv)
{
	int at = 0, code = CLI_OK;
	if (!cli_parse(c, argc, argv, NULL, &at, &code))
		return code;
	CLEANUP(buf_deinit) struct buf findings;
	buf_init(&findings, FINDINGS_BYTES_MAX);
	struct err e = { 0 };
	enum status s = fn(argv[at], &findings, &e);
	bool written = fwrite(findings.data, 1, findings.len, stdout) == findings.len &&
		       fflush(stdout) == 0;
	if (s != OK)
		cli_complain("%s", err_text(&e, s));
	return s == OK && !written ? CLI_UNREADABLE : code_of(s);
}

static int verify(int argc, char **argv)
{
	return look(&verify_command, store_verify, argc, argv);
}

static int inspect(int argc, char **argv)
{
	return look(&inspect_command, store_inspect, argc, argv);
}

static const struct cli_subverb verbs[] = {
	{ "verify", verify },
	{ "inspect", inspect },
	{ "delete", cli_store_delete },
	{ "export", cli_store_export },
	{ "import", cli_store_import },
};

static const struct cli_command command = {
	.name = "store",
	.summary = "firn store: look after the samples that are stored.",
	.args = "verify|inspect|delete|export|import ...",
	.args_least = 1,
	.args_most = 1,
	.text = "  verify PATH             find what is damaged\n"
		"  inspect PATH            show what is in parts and logs\n"
		"  delete TARGET SELECTOR  remove samples for good\n"
		"  export TARGET FILE      copy samples into a file\n"
		"  import TARGET FILE...   take them from there, each once\n"
		"\n"
		"`firn store VERB --help` says more.",
};

int cli_store(int argc, char **argv)
{
	return cli_run_subverb(&command, verbs, ARRAY_COUNT(verbs),
		"verify, inspect, delete, export and import", argc, argv);
}
