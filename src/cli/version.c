/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>

#include "cli/options/options.h"

static const struct cli_command command = {
	.name = "version",
	.summary = "firn version: print the version.",
	.args = "",
	.text = "One line: the name and the version.",
};

int cli_version(int argc, char **argv)
{
	int at = 0, code = CLI_OK;
	if (argc > 1 && !cli_parse(&command, argc, argv, NULL, &at, &code))
		return code;
	puts("firn " FIRN_VERSION);
	return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}
