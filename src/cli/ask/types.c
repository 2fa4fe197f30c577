/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "cli/ask/ask.h"

static const struct cli_command command = {
	.name = "types",
	.summary = "firn types: the profile types that a server holds.",
	.args = "",
	.text = "A type is what the other verbs' selectors begin with, like "
		"parca_agent:samples:count:cpu:nanoseconds:delta for the CPU samples of firn's "
		"own agent.\n"
		"\n"
		"  firn types\n"
		"  firn types --from now-1d",
	.groups = { { "The query", cli_ask_index_options, CLI_ASK_INDEX_OPTIONS, 0 } },
	.group_count = 1,
};

int cli_types(int argc, char **argv)
{
	struct cli_ask ask = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &ask, &at, &code))
		return code;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	cli_url_begin(&url, "/api/types");
	return cli_ask(&ask, &url, ask.format, NULL);
}
