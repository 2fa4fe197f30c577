/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "store/store.h"

#define FINDINGS_BYTES_MAX ((size_t)256 << 20)

static const struct cli_command command = {
	.name = "store",
	.summary = "firn store: look at the files of a store, without a server.",
	.args = "verify|inspect PATH",
	.args_least = 2,
	.args_most = 2,
	.text = "verify reads every byte of PATH (a part, a log, or a whole storage directory), "
		"checks it against its checksums and its format, and ends with exit code 1 if "
		"anything is damaged. inspect prints what is in it. Nothing is changed.\n"
		"\n"
		"  firn store verify /var/lib/firn",
};

int cli_store(int argc, char **argv)
{
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, NULL, &at, &code))
		return code;
	const char *verb = argv[at], *path = argv[at + 1];
	bool verify = strcmp(verb, "verify") == 0;
	if (!verify && strcmp(verb, "inspect") != 0) {
		cli_complain("store can verify or inspect, not '%s'", verb);
		return CLI_USAGE;
	}
	CLEANUP(buf_deinit) struct buf findings;
	buf_init(&findings, FINDINGS_BYTES_MAX);
	struct err e = { 0 };
	enum status s =
		verify ? store_verify(path, &findings, &e) : store_inspect(path, &findings, &e);
	bool written = fwrite(findings.data, 1, findings.len, stdout) == findings.len &&
		       fflush(stdout) == 0;
	if (s != OK)
		cli_complain("%s", err_text(&e, s));
	return s == OK && written ? CLI_OK : CLI_FAILED;
}
