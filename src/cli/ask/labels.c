/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>

#include "cli/ask/ask.h"

static const struct cli_command command = {
	.name = "labels",
	.summary = "firn labels: label names, or the values of one label.",
	.args = "[NAME] [SELECTOR]",
	.args_most = 2,
	.text = "  firn labels\n"
		"  firn labels comm\n"
		"  firn labels pid '{comm=\"python3\"}'",
	.groups = { { "The query", cli_ask_index_options, CLI_ASK_INDEX_OPTIONS, 0 } },
	.group_count = 1,
};

int cli_labels(int argc, char **argv)
{
	struct cli_ask ask = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &ask, &at, &code))
		return code;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	cli_url_begin(&url, "/api/labels");
	bool is_selector = at < argc && strpbrk(argv[argc - 1], "{:");
	if (is_selector)
		ask.query = argv[--argc];
	if (argc - at > 1) {
		cli_complain("'%s' is no selector, which has braces: '{comm=\"python3\"}'",
			argv[argc - 1]);
		return CLI_USAGE;
	}
	if (at < argc) {
		buf_u8(&url, '/');
		cli_url_escape(&url, argv[at]);
		buf_cstr(&url, "/values");
	}
	return cli_ask(&ask, &url, ask.format, NULL);
}
