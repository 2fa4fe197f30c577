/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: parses the flags, runs the probe, then the supervisor, and prints on standard output what
 * the supervisor reports.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/flags/flags.h"
#include "cli/process/process.h"
#include "os/os.h"

/* Messages of the agent, each of five seconds of samples: names for a program that runs shorter are
 * read only when a query needs them. */
#define SYMBOLS_WANTS_MIN 12

struct up {
	struct cli_server_flags server;
	struct cli_profiling_flags profiling;
	struct cli_up_flags own;
	struct cli_log_flags log;
	struct supervise_config supervise;
	char spool[PATH_MAX];
	char token[AUTH_SESSION_TEXT]; /* the agent's token, for a server that authenticates
					  requests */
	struct err missing;            /* why there is no agent */
	bool announced;                /* the address was printed; a later one is logged */
	bool profiling_announced;
};

static const struct cli_command command = {
	.name = "up",
	.file_groups = cli_file_groups,
	.summary = "firn up: profile this host and show it in a browser.",
	.args = "",
	.text = "Runs the server, and an agent that samples the stacks of every process and of "
		"the kernel with eBPF, as two processes. The agent needs root (or CAP_BPF, "
		"CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH and "
		"CAP_SYSLOG); without that the server runs alone. Ctrl-C stops both and loses "
		"nothing; a second Ctrl-C ends at once.\n"
		"\n"
		"  sudo firn up\n"
		"  sudo firn up --http-address :7070 --web-config-file /etc/firn/web.yml",
};

/* ---- what a person reads ---- */

/* Counts processes that run a program; kernel threads have no command line. */
static unsigned count_processes(void)
{
	unsigned count = 0;
	DIR *proc = opendir("/proc");
	for (struct dirent *d; proc && (d = readdir(proc));) {
		char path[300], byte;
		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/cmdline", d->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		count += fd >= 0 && read(fd, &byte, 1) == 1;
		if (fd >= 0)
			close(fd);
	}
	if (proc)
		closedir(proc);
	return count;
}

static void on_server(void *ctx, const char *address, const char *dial)
{
	struct up *up = ctx;
	if (up->announced) {
		log_info("server is back", "address=%s", address);
		return;
	}
	up->announced = true;
	char age[UNITS_TEXT_MAX + 8] = "for ever", size[UNITS_TEXT_MAX + 16] = "";
	if (up->server.retention_ns > 0)
		units_format_duration(up->server.retention_ns, age);
	if (up->server.retention_bytes > 0) {
		char text[UNITS_TEXT_MAX];
		snprintf(size, sizeof(size), ", at most %s",
			units_format_bytes(up->server.retention_bytes, text));
	}
	printf("firn " FIRN_VERSION "\n"
	       "  open       %s://%s%s\n"
	       "  data       %s (kept %s%s)\n",
		up->server.tls_cert_file ? "https" : "http", dial,
		up->server.path_prefix ? up->server.path_prefix : "", up->server.path, age, size);
	if (!up->supervise.with_agent)
		printf("  profiling  nothing of this host: %s\n  stop       Ctrl-C\n",
			up->missing.text);
	fflush(stdout);
}

static void on_agent(void *ctx)
{
	struct up *up = ctx;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (up->profiling_announced) {
		log_info("agent is back", "cpus=%ld", cpus);
		return;
	}
	up->profiling_announced = true;
	printf("  profiling  all %u processes and the kernel on %ld CPU%s at %u Hz\n"
	       "  stop       Ctrl-C (what was recorded stays)\n",
		count_processes(), cpus, cpus == 1 ? "" : "s", up->profiling.frequency_hz);
	fflush(stdout);
}

/* ---- */

static bool parse(struct up *up, int argc, char **argv, int *out_code)
{
	struct cli_command c = command;
	const struct cli_group groups[] = { cli_server_group, cli_profiling_group, cli_up_group,
		cli_quiet_log_group };
	const size_t places[] = { offsetof(struct up, server), offsetof(struct up, profiling),
		offsetof(struct up, own), offsetof(struct up, log) };
	for (size_t i = 0; i < ARRAY_COUNT(groups); i++) {
		c.groups[i] = groups[i];
		c.groups[i].at = places[i];
	}
	c.group_count = ARRAY_COUNT(groups);
	int at = 0;
	return cli_parse(&c, argc, argv, up, &at, out_code);
}

/* Makes the token, which only the two children know. */
static bool settle_token(struct up *up)
{
	struct err e = { 0 };
	if (!up->server.web_config_file || !up->server.web_config_file[0])
		return true;
	enum status s = auth_random_text(up->token, &e);
	if (s != OK)
		cli_complain("%s", err_text(&e, s));
	up->supervise.server.own_token = up->token;
	up->supervise.agent.remote_store_token = up->token;
	return s == OK;
}

static bool configure(struct up *up)
{
	struct supervise_config *c = &up->supervise;
	if (!cli_log_apply(&up->log) || !cli_server_apply(&up->server, &c->server))
		return false;
	if (up->server.tls_client_ca_file && (!up->own.client_cert || !up->own.client_key)) {
		cli_complain("--tls-client-ca-file: the agent of `firn up` is a client too: give "
			     "it a certificate with --remote-store-client-cert and "
			     "--remote-store-client-key");
		return false;
	}
	c->server.config_path = up->profiling.config_path;
	c->server.check_config = cli_config_verify;
	c->with_agent = agent_probe(&up->missing) == OK;
	if (!c->with_agent)
		return true;
	c->server.symbols_on_demand = true;
	c->server.symbols_wants_min = SYMBOLS_WANTS_MIN;
	if (!cli_profiling_apply(&up->profiling, &c->agent) || !settle_token(up))
		return false;
	/* In the storage directory, since batches become data of this store: another store has
	 * another spool. */
	int len = snprintf(up->spool, sizeof(up->spool), "%s/agent-spool", up->server.path);
	if (len >= (int)sizeof(up->spool)) {
		cli_complain("--storage-path: the path is too long");
		return false;
	}
	c->agent.spool_dir = up->spool;
	c->agent.remote_store_client_cert = up->own.client_cert;
	c->agent.remote_store_client_key = up->own.client_key;
	c->agent.http_address = up->own.agent_http_address ? up->own.agent_http_address : "";
	return true;
}

int cli_up(int argc, char **argv)
{
	static struct up up;
	int code = CLI_OK;
	up = (struct up){ .supervise = { .on_server = on_server, .on_agent = on_agent } };
	up.supervise.ctx = &up;
	if (!parse(&up, argc, argv, &code))
		return code;
	if (!configure(&up))
		return CLI_USAGE;
	os_notify_open();
	return supervise_run(&up.supervise);
}
