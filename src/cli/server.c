/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: server_run() in the main thread; a second thread waits for its ready line and prints the
 * address, which is known only then.
 */
#include "cli/cli.h"
#include "cli/process/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/flags/flags.h"
#include "os/os.h"

struct server_own {
	const char *config_path;
};

struct server {
	struct server_own own;
	struct cli_server_flags server;
	struct cli_log_flags log;
	struct cli_forward_flags forward;
};

/* clang-format off */
static const struct cli_option own_options[] = {
	{ .name = "config-path", .kind = CLI_TEXT, .at = offsetof(struct server_own, config_path),
	  .value = "FILE",
	  .help = "YAML in which each flag is a key (`http_address` for --http-address), with "
		  "Parca's object_storage and scrape_configs. A flag wins over the environment "
		  "(FIRN_HTTP_ADDRESS), and that over the file. `firn config check FILE` reads "
		  "it only." },
};
/* clang-format on */
static const struct cli_group own_group = { "Configuration", own_options, ARRAY_COUNT(own_options),
	0 };

static const struct cli_command command = {
	.name = "server",
	.file_groups = cli_file_groups,
	.summary = "firn server: keep profiles and answer queries about them.",
	.args = "",
	.text = "Takes OTLP profiles over gRPC and HTTP from agents and other senders, keeps them "
		"durably, names their addresses, and serves the page and the API on the same "
		"port. Needs no privileges. SIGTERM or Ctrl-C ends it cleanly.",
};

struct announcer {
	int fd;
	const struct server_config *config;
	const char *storage_path; /* as given by the flag; NULL: without a storage directory */
	bool page;                /* false: the server only scrapes, and has no page */
};

static void *announce(void *ctx)
{
	struct announcer *a = ctx;
	char line[256] = "";
	size_t len = 0;
	while (len < sizeof(line) - 1 && !strchr(line, '\n')) {
		ssize_t n = read(a->fd, line + len, sizeof(line) - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
		line[len] = 0;
	}
	close(a->fd);
	line[strcspn(line, "\n")] = 0;
	if (line[0]) {
		const char *prefix = a->config->path_prefix;
		printf("firn " FIRN_VERSION " server\n  %s  %s://%s%s%s\n",
			a->page ? "open" : "targets", a->config->tls_cert_file ? "https" : "http",
			line, prefix ? prefix : "", a->page ? "" : "/api/targets");
		if (a->storage_path)
			printf("  data  %s\n", a->storage_path);
		fflush(stdout);
	}
	return NULL;
}

/* `typed`: as the flags say, before privileges were given up. `to`: where a server that only
 * scrapes sends profiles; else NULL. */
static int run(struct server_config *config, const struct server_config *typed,
	const struct server_forward *to)
{
	struct err e = { 0 };
	int ready[2];
	pthread_t thread;
	if (pipe2(ready, O_CLOEXEC) < 0) {
		cli_complain("no pipe: %m");
		return CLI_FAILED;
	}
	struct announcer a = { ready[0], config, to ? NULL : typed->storage_path, !to };
	config->ready_fd = ready[1];
	enum status s = os_thread_start(&thread, "announce", announce, &a, &e);
	if (s == OK) {
		s = to ? server_run_scraper(config, to, &cli_stop, &e)
		       : server_run(config, &cli_stop, &e);
		close(ready[1]);
		pthread_join(thread, NULL);
	}
	if (s == OK)
		return CLI_OK;
	if (to) {
		cli_complain("%s", err_text(&e, s));
		return CLI_FAILED;
	}
	return cli_complain_of_start(typed, config->storage_path, s, &e);
}

/* "NAME=VALUE" texts. */
static bool split(const char *flag, const struct cli_list *list, size_t max, size_t i,
	const char **out_name, const char **out_value)
{
	char *equals = strchr(list->v[i], '=');
	if (!equals || equals == list->v[i] || i >= max) {
		cli_complain("--%s \"%s\": %s", flag, list->v[i],
			i >= max ? "too many of them" : "NAME=VALUE is expected");
		return false;
	}
	*equals = 0;
	*out_name = list->v[i];
	*out_value = equals + 1;
	return true;
}

/* Takes the flags; if they contradict each other, complains and returns false. */
static bool take_forward(const struct cli_forward_flags *f, const struct server_config *config,
	struct server_forward *out, bool *out_only)
{
	*out_only = strcmp(f->mode, "scraper-only") == 0;
	if (!*out_only && strcmp(f->mode, "all") != 0) {
		cli_complain("--mode must be all or scraper-only");
		return false;
	}
	if (!*out_only && f->store) {
		cli_complain("--store-address goes with --mode scraper-only");
		return false;
	}
	if (*out_only && (!f->store || !f->store[0] || !config->config_path)) {
		cli_complain("--mode scraper-only needs --store-address and --config-path");
		return false;
	}
	*out = (struct server_forward){ .address = f->store,
		.token = f->token,
		.token_file = f->token_file,
		.insecure = f->insecure,
		.trust_anybody = f->skip_verify };
	for (; out->label_count < f->labels.count; out->label_count++)
		if (!split("external-label", &f->labels, SERVER_FORWARD_LABELS_MAX,
			    out->label_count, &out->labels[out->label_count].name,
			    &out->labels[out->label_count].value))
			return false;
	for (; out->header_count < f->headers.count; out->header_count++)
		if (!split("grpc-headers", &f->headers, SERVER_FORWARD_HEADERS_MAX,
			    out->header_count, &out->headers[out->header_count].name,
			    &out->headers[out->header_count].value))
			return false;
	return true;
}

static void on_hangup(int number)
{
	(void)number;
	server_reload_wanted = 1;
}

int cli_server(int argc, char **argv)
{
	struct server v = { 0 };
	struct cli_command c = command;
	c.groups[0] = cli_server_group;
	c.groups[0].at = offsetof(struct server, server);
	c.groups[1] = cli_log_group;
	c.groups[1].at = offsetof(struct server, log);
	c.groups[2] = own_group;
	c.groups[2].at = offsetof(struct server, own);
	c.groups[3] = cli_forward_group;
	c.groups[3].at = offsetof(struct server, forward);
	c.group_count = 4;
	int at = 0, code = CLI_OK;
	if (!cli_parse(&c, argc, argv, &v, &at, &code))
		return code;
	struct server_config config;
	if (!cli_log_apply(&v.log) || !cli_server_apply(&v.server, &config))
		return CLI_USAGE;
	config.config_path = v.own.config_path;
	config.check_config = cli_config_verify;
	cli_stop_on_signals();
	os_notify_open();
	sigaction(SIGHUP, &(struct sigaction){ .sa_handler = on_hangup }, NULL);
	struct err e = { 0 };
	struct server_forward to;
	bool only_scrapes = false;
	if (!take_forward(&v.forward, &config, &to, &only_scrapes))
		return CLI_USAGE;
	struct child_server own = { 0 };
	if (only_scrapes)
		config.storage_path = NULL;
	enum status s = child_give_up(&config, &own, &e);
	if (s == OK)
		code = run(&own.config, &config, only_scrapes ? &to : NULL);
	fd_cleanup(&own.storage_fd);
	if (s == OK)
		return code;
	return cli_complain_of_start(&config, NULL, s, &e);
}
