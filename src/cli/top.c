/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "cli/ask.h"

struct top {
	struct cli_ask ask;
	const char *limit;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "limit", .kind = CLI_TEXT, .at = offsetof(struct top, limit), .value = "N",
	  .otherwise = "20", .help = "How many functions; 0 for all." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "top",
	.summary = "firn top: the functions that cost most, by their own time.",
	.args = "[SELECTOR]",
	.args_most = 1,
	.text = "Self is what a function cost itself, total is that with everything it called.\n"
		"\n"
		"  firn top\n"
		"  firn top '{comm=\"python3\"}' --from now-1h\n"
		"  firn top --match malloc --limit 50",
	.groups = { { "The question", cli_ask_table_options, CLI_ASK_OPTIONS,
			    offsetof(struct top, ask) },
		{ "The table", options, ARRAY_COUNT(options), 0 } },
	.group_count = 2,
};

int cli_top(int argc, char **argv)
{
	struct top t = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &t, &at, &code))
		return code;
	if (at < argc)
		t.ask.query = argv[at];
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	cli_url_begin(&url, "/api/top");
	cli_url_add(&url, "limit", t.limit);
	return cli_ask(&t.ask, &url, t.ask.format, NULL);
}
