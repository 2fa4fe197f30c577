/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "cli/ask/ask.h"

struct query {
	struct cli_ask ask;
	const char *report;
	const char *output;
	struct cli_list by;
	const char *step;
	const char *limit;
	const char *trim;
	bool invert;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "report", .kind = CLI_CHOICE, .at = offsetof(struct query, report),
	  .value = "REPORT", .otherwise = "flamegraph", .choices = "flamegraph series pprof",
	  .help = "flamegraph: the tree of calls. series: the value over time. pprof: a gzipped "
		  "profile.proto, for `go tool pprof` and others." },
	{ .name = "output", .letter = 'o', .kind = CLI_TEXT, .at = offsetof(struct query, output),
	  .value = "FILE", .help = "Write the answer to FILE instead of standard output, in the format that its "
		  "ending names." },
	{ .name = "by", .kind = CLI_LIST, .separator = ',', .at = offsetof(struct query, by),
	  .value = "LABEL,...",
	  .help = "flamegraph: the values of this label stand below the root. series: one series for each "
		  "value of these labels. pprof: the labels to keep." },
	{ .name = "step", .kind = CLI_TEXT, .at = offsetof(struct query, step),
	  .value = "DURATION", .help = "series: the time between two points." },
	{ .name = "limit", .kind = CLI_TEXT, .at = offsetof(struct query, limit), .value = "N",
	  .help = "series: only the N largest; the others are added up in one." },
	{ .name = "trim", .kind = CLI_TEXT, .at = offsetof(struct query, trim), .value = "SHARE",
	  .help = "flamegraph: leave out what is less than this share of the total, from 0 to 1." },
	{ .name = "invert", .kind = CLI_BOOL, .at = offsetof(struct query, invert),
	  .help = "flamegraph: from the called functions up to their callers." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "query",
	.summary = "firn query: ask a server for a flame graph, a time series or a pprof file.",
	.args = "[SELECTOR]",
	.args_most = 1,
	.text = "  firn query\n"
		"  firn query '{comm=\"python3\"}' --report series --by pid\n"
		"  firn query -o graph.html\n"
		"  firn query --format folded | flamegraph.pl > graph.svg\n"
		"  firn query -o cpu.pb.gz && go tool pprof -http : cpu.pb.gz",
	.groups = { { "The query", cli_ask_options, CLI_ASK_OPTIONS, offsetof(struct query, ask) },
		{ "The report", options, ARRAY_COUNT(options), 0 } },
	.group_count = 2,
};

/* Whether the file's suffix names a format: a table in "graph.svg" would be a mistake. */
static bool ending_is_known(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return !strchr(name + (*name == '.'), '.') || str_ends(str_of(name), STR(".json"));
}

/* Complains of a flag that this report does not have. */
static bool flags_fit(const struct query *q)
{
	const struct {
		const char *name;
		bool is_set;
		const char *reports, *instead;
	} flags[] = {
		{ "by", q->by.count > 0, "flamegraph series pprof", "" },
		{ "step", q->step != NULL, "series", "" },
		{ "limit", q->limit != NULL, "series",
			"; a flame graph has --trim SHARE, and `firn top` a --limit" },
		{ "trim", q->trim != NULL, "flamegraph", "" },
		{ "invert", q->invert, "flamegraph", "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
		if (!flags[i].is_set || strstr(flags[i].reports, q->report))
			continue;
		cli_complain("--%s does nothing for --report %s%s", flags[i].name, q->report,
			strcmp(q->report, "flamegraph") == 0 ? flags[i].instead : "");
		return false;
	}
	return true;
}

int cli_query(int argc, char **argv)
{
	struct query q = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &q, &at, &code))
		return code;
	if (at < argc)
		q.ask.query = argv[at];
	if (!q.ask.format)
		q.ask.format = cli_format_of(q.output);
	if (q.ask.format && strcmp(q.ask.format, "pprof") == 0)
		q.report = "pprof";
	bool pprof = strcmp(q.report, "pprof") == 0;
	if (q.output && !q.ask.format && !pprof) {
		if (!ending_is_known(q.output)) {
			cli_complain(
				"--output %s: its ending names none of the formats: .txt, .json, "
				".html, .folded, .speedscope.json, .firefox.json, .pb.gz; "
				"--format names one, whatever the ending",
				q.output);
			return CLI_USAGE;
		}
		if (str_ends(str_of(q.output), STR(".json")))
			q.ask.format = "json";
	}
	if (pprof && !q.output && isatty(STDOUT_FILENO)) {
		cli_complain("a pprof file is not for a terminal: -o FILE writes it to FILE");
		return CLI_USAGE;
	}
	if (!flags_fit(&q))
		return CLI_USAGE;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	cli_url_begin(&url, "/api/");
	buf_cstr(&url, q.report);
	for (uint32_t i = 0; i < q.by.count; i++)
		cli_url_add(&url, "by", q.by.v[i]);
	cli_url_add(&url, "step", q.step);
	cli_url_add(&url, "limit", q.limit);
	cli_url_add(&url, "trim", q.trim);
	cli_url_add(&url, "invert", q.invert ? "1" : NULL);
	return cli_ask(&q.ask, &url, pprof ? NULL : q.ask.format ? q.ask.format : "text", q.output);
}
