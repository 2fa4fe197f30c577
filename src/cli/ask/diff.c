/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>

#include "cli/ask/ask.h"

struct diff {
	struct cli_ask ask;
	const char *base_query;
	const char *base_from;
	const char *base_to;
	const char *limit;
	const char *fail_above;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "base-query", .kind = CLI_TEXT, .at = offsetof(struct diff, base_query),
	  .value = "SELECTOR", .help = "What to compare with. Default: the same selector." },
	{ .name = "base-from", .kind = CLI_TEXT, .at = offsetof(struct diff, base_from),
	  .value = "TIME", .help = "Begin of the base's time range. Default: that of --from." },
	{ .name = "base-to", .kind = CLI_TEXT, .at = offsetof(struct diff, base_to),
	  .value = "TIME", .help = "End of the base's time range. Default: that of --to." },
	{ .name = "limit", .kind = CLI_TEXT, .at = offsetof(struct diff, limit), .value = "N",
	  .otherwise = "20", .help = "How many functions; 0 for all." },
	{ .name = "fail-above", .kind = CLI_TEXT, .at = offsetof(struct diff, fail_above),
	  .value = "SHARE",
	  .help = "Exit with 4 when the self share of some function grew by more than this, from 0 to "
		  "1: 0.02 is two percent of the total." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "diff",
	.summary = "firn diff: the functions whose share of the whole changed most.",
	.args = "[SELECTOR]",
	.args_most = 1,
	.text = "Compares a selector and time range with a base. Without a --base flag the base is "
		"the same selector over as long a time right before. A share is of its own side's "
		"total. Where one side has no samples nothing is compared, and the exit code is "
		"6.\n"
		"\n"
		"  firn diff --from now-5m\n"
		"  firn diff --from now-1h --base-from now-25h --base-to now-24h\n"
		"  firn diff '{version=\"2\"}' --base-query '{version=\"1\"}' --fail-above 0.02",
	.groups = { { "The query", cli_ask_table_options, CLI_ASK_OPTIONS,
			    offsetof(struct diff, ask) },
		{ "The comparison", options, ARRAY_COUNT(options), 0 } },
	.group_count = 2,
};

int cli_diff(int argc, char **argv)
{
	struct diff d = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &d, &at, &code))
		return code;
	if (at < argc)
		d.ask.query = argv[at];
	CLEANUP(buf_deinit) struct buf url, body;
	buf_init(&url, 1 << 20);
	buf_init(&body, CLI_ANSWER_BYTES_MAX);
	cli_url_begin(&url, "/api/diff");
	cli_url_add(&url, "limit", d.limit);
	cli_url_add(&url, "base_query", d.base_query);
	if (!cli_url_add_time(&url, "base_from", "base-from", d.base_from) ||
		!cli_url_add_time(&url, "base_to", "base-to", d.base_to))
		return CLI_USAGE;
	cli_url_add(&url, "worse_above", d.fail_above);
	cli_url_add_width(&url, d.ask.format);
	code = cli_ask_body(&d.ask, &url, d.ask.format, &body);
	if (code == CLI_OK)
		code = cli_pass_on(buf_view(&body), NULL);
	bool worse = str_starts(buf_view(&body), STR("{\"worse\":true")) ||
		     str_starts(buf_view(&body), STR("worse:"));
	return code == CLI_OK && worse ? CLI_WORSE : code;
}
