/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/flags.h"

struct sending_flags {
	const char *remote;
	bool insecure;
	const char *http_address;
	const char *spool_path;
	uint64_t spool_bytes;
};

struct agent {
	struct sending_flags sending;
	struct cli_profiling_flags profiling;
	struct cli_log_flags log;
};

/* clang-format off */
static const struct cli_option sending_options[] = {
	{ .name = "remote-store-address", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, remote), .value = "HOST:PORT",
	  .help = "The server that gets the samples: a firn server, or anything else that takes "
		  "OTLP profiles over gRPC. Required." },
	{ .name = "remote-store-insecure", .kind = CLI_BOOL,
	  .at = offsetof(struct sending_flags, insecure),
	  .help = "Taken for compatibility: the connection is always without TLS." },
	{ .name = "http-address", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, http_address), .value = "HOST:PORT",
	  .otherwise = "127.0.0.1:7071",
	  .help = "Where the agent's own /metrics and /healthy are served; empty: nowhere." },
	{ .name = "spool-path", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, spool_path), .value = "DIR",
	  .help = "Where samples wait that could not be sent. Default: /var/lib/firn/spool for "
		  "root, else spool below the user's state directory." },
	{ .name = "spool-size", .kind = CLI_SIZE,
	  .at = offsetof(struct sending_flags, spool_bytes), .value = "SIZE",
	  .otherwise = "256MiB", .help = "When more than this waits, the oldest is dropped." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "agent",
	.summary = "firn agent: profile this host and send it to a server.",
	.args = "",
	.text = "Samples the stacks of every process and of the kernel with eBPF, and sends them "
		"as OTLP profiles over gRPC. Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, "
		"CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH and CAP_SYSLOG. SIGTERM or Ctrl-C "
		"sends what is left and ends it.\n"
		"\n"
		"  firn agent --remote-store-address firn.example:7070",
	.groups = { { "Sending", sending_options, ARRAY_COUNT(sending_options),
		offsetof(struct agent, sending) } },
	.group_count = 1,
};

static bool apply_sending(const struct sending_flags *f, struct agent_config *out, char *spool)
{
	if (!f->remote || !f->remote[0]) {
		cli_complain("agent needs --remote-store-address HOST:PORT; `firn up` runs agent "
			     "and server together");
		return false;
	}
	if (!f->spool_path && !cli_state_path(spool, "spool"))
		return false;
	out->remote_store_address = f->remote;
	out->http_address = f->http_address;
	out->spool_dir = f->spool_path ? f->spool_path : spool;
	out->spool_bytes_max = f->spool_bytes;
	return true;
}

int cli_agent(int argc, char **argv)
{
	struct agent v = { 0 };
	struct cli_command c = command;
	c.groups[1] = cli_profiling_group;
	c.groups[1].at = offsetof(struct agent, profiling);
	c.groups[2] = cli_log_group;
	c.groups[2].at = offsetof(struct agent, log);
	c.group_count = 3;
	int at = 0, code = CLI_OK;
	if (!cli_parse(&c, argc, argv, &v, &at, &code))
		return code;
	struct agent_config config;
	char spool[PATH_MAX];
	if (!cli_log_apply(&v.log) || !cli_profiling_apply(&v.profiling, &config) ||
		!apply_sending(&v.sending, &config, spool))
		return CLI_USAGE;
	struct err e = { 0 };
	enum status s = agent_probe(&e);
	if (s == OK) {
		cli_stop_on_signals();
		s = agent_run(&config, &cli_stop, &e);
	}
	if (s == OK)
		return CLI_OK;
	cli_complain("%s", err_text(&e, s));
	return CLI_FAILED;
}
