/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/flags.h"

#define REMOTE_BYTES_MAX 512

struct sending_flags {
	const char *remote;
	bool insecure, skip_verify;
	const char *ca_file, *client_cert, *client_key;
	const char *token, *token_file;
	struct cli_list headers;
	int64_t call_ns;
	bool no_names, strips;
	struct cli_list debug_folders;
	uint32_t names_parallel, names_queue;
	const char *offline_path;
	bool upload;
	const char *http_address;
	const char *spool_path;
	uint64_t spool_bytes;
	bool version;
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
		  "OTLP profiles over gRPC. Required. https://HOST:PORT is spoken to with TLS, and "
		  "so is HOST:PORT where one of the flags below asks for it." },
	{ .name = "remote-store-insecure", .kind = CLI_BOOL,
	  .at = offsetof(struct sending_flags, insecure),
	  .help = "Send without TLS, whatever the other flags say. A bearer token is then sent in "
		  "clear text." },
	{ .name = "remote-store-insecure-skip-verify", .kind = CLI_BOOL,
	  .at = offsetof(struct sending_flags, skip_verify),
	  .help = "Use TLS, but do not check the server's certificate." },
	{ .name = "remote-store-ca-file", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, ca_file), .value = "FILE",
	  .help = "Use TLS, and trust servers that these authorities (PEM) have signed, instead "
		  "of those that this host trusts." },
	{ .name = "remote-store-client-cert", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, client_cert), .value = "FILE",
	  .help = "Use TLS, with this certificate (PEM) for servers that ask for one. Read for "
		  "each connection." },
	{ .name = "remote-store-client-key", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, client_key), .value = "FILE",
	  .help = "Its private key." },
	{ .name = "remote-store-bearer-token", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, token), .value = "TOKEN",
	  .env = "PARCA_BEARER_TOKEN",
	  .help = "Use TLS, and send this as \"authorization: Bearer TOKEN\". The command line "
		  "is for all to see: better a file." },
	{ .name = "remote-store-bearer-token-file", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, token_file), .value = "FILE",
	  .help = "A file that holds the token. It is read again for each batch." },
	{ .name = "remote-store-grpc-headers", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct sending_flags, headers), .value = "NAME=VALUE;...",
	  .help = "Headers that are sent with each batch; may be repeated." },
	{ .name = "remote-store-rpc-unary-timeout", .kind = CLI_DURATION,
	  .at = offsetof(struct sending_flags, call_ns), .value = "DURATION", .otherwise = "5m",
	  .help = "Time limit of each request about debug files. (Batches of samples are sent "
		  "again after 10s.)" },
	{ .name = "debuginfo-upload-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct sending_flags, no_names),
	  .help = "Do not upload debug information of executables for which the server has none. "
		  "Their functions then have no names." },
	{ .name = "debuginfo-strip", .kind = CLI_BOOL,
	  .at = offsetof(struct sending_flags, strips), .otherwise = "true",
	  .help = "Send of an executable only what gives names (the default). "
		  "--debuginfo-strip=false sends it whole, with its code and data." },
	{ .name = "debuginfo-directories", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct sending_flags, debug_folders), .value = "DIR,...",
	  .otherwise = "/usr/lib/debug",
	  .help = "Directories that are searched, in this order, for the debug file of a stripped "
		  "executable: DIR/.build-id/ab/cdef….debug. The debug file is uploaded in place "
		  "of the executable." },
	{ .name = "debuginfo-upload-max-parallel", .kind = CLI_NUMBER, .least = 1, .most = 64,
	  .at = offsetof(struct sending_flags, names_parallel), .value = "N", .otherwise = "25",
	  .help = "Uploads at a time, where the server is slow. All together take at most 3% of a "
		  "CPU and 16MiB a second." },
	{ .name = "debuginfo-upload-queue-size", .kind = CLI_NUMBER, .least = 1, .most = 4096,
	  .at = offsetof(struct sending_flags, names_queue), .value = "N", .otherwise = "4096",
	  .help = "Executables that may wait for their upload." },
	{ .name = "offline-mode-storage-path", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, offline_path), .value = "DIR",
	  .help = "Send nothing: keep the samples in this directory, up to --spool-size, for a "
		  "later --offline-mode-upload." },
	{ .name = "offline-mode-upload", .kind = CLI_BOOL,
	  .at = offsetof(struct sending_flags, upload),
	  .help = "Sample nothing: send what is in --offline-mode-storage-path to the server, "
		  "remove what it took, and end." },
	{ .name = "http-address", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, http_address), .value = "HOST:PORT",
	  .otherwise = "127.0.0.1:7071",
	  .help = "The address that serves the agent's status page, /metrics, /healthy and "
		  "/ready; empty: none." },
	{ .name = "spool-path", .kind = CLI_TEXT,
	  .at = offsetof(struct sending_flags, spool_path), .value = "DIR",
	  .help = "Where samples wait that could not be sent. Default: /var/lib/firn/spool for "
		  "root, else spool below the user's state directory." },
	{ .name = "spool-size", .kind = CLI_SIZE,
	  .at = offsetof(struct sending_flags, spool_bytes), .value = "SIZE",
	  .otherwise = "256MiB", .help = "When more than this waits, the oldest is dropped." },
	{ .name = "version", .kind = CLI_BOOL, .at = offsetof(struct sending_flags, version),
	  .help = "Print the version and end." },
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
		"  firn agent --remote-store-address firn.example:7070\n"
		"\n"
		"Flags are parca-agent's where it has one. Those of its flags that have nothing to "
		"do here are taken, too, and say why they do nothing (docs/agent.md lists them).",
	.groups = { { "Sending", sending_options, ARRAY_COUNT(sending_options),
		offsetof(struct agent, sending) } },
	.group_count = 1,
};

static bool check_credentials(const struct sending_flags *f)
{
	if (!f->client_cert != !f->client_key) {
		cli_complain("--remote-store-client-cert and --remote-store-client-key belong "
			     "together");
		return false;
	}
	if (f->token && f->token[0] && f->token_file) {
		cli_complain("--remote-store-bearer-token and --remote-store-bearer-token-file: "
			     "one of them is enough");
		return false;
	}
	if (f->insecure && strncmp(f->remote, "https:", 6) == 0) {
		cli_complain("--remote-store-insecure: %s is spoken to with TLS", f->remote);
		return false;
	}
	return true;
}

static bool has_secret_header(const struct sending_flags *f)
{
	for (uint32_t i = 0; i < f->headers.count; i++)
		if (strncasecmp(f->headers.v[i], "authorization=", 14) == 0)
			return true;
	return false;
}

/* A token, or a name for ourselves, is nothing to be shown to everybody on the way. */
static bool wants_tls(const struct sending_flags *f)
{
	return !f->insecure && !strstr(f->remote, "://") && strncmp(f->remote, "unix:", 5) != 0 &&
	       (f->skip_verify || f->ca_file || f->client_cert || f->token_file ||
		       (f->token && f->token[0]) || has_secret_header(f));
}

static bool apply_remote(
	const struct sending_flags *f, struct agent_config *out, char address[REMOTE_BYTES_MAX])
{
	if (!check_credentials(f))
		return false;
	int len = snprintf(address, REMOTE_BYTES_MAX, "https://%s", f->remote);
	if (len >= REMOTE_BYTES_MAX) {
		cli_complain("--remote-store-address: more than %d bytes", REMOTE_BYTES_MAX - 1);
		return false;
	}
	out->remote_store_address = wants_tls(f) ? address : f->remote;
	out->remote_store_trust_anybody = f->skip_verify;
	out->remote_store_ca_file = f->ca_file;
	out->remote_store_client_cert = f->client_cert;
	out->remote_store_client_key = f->client_key;
	out->remote_store_token = f->token;
	out->remote_store_token_file = f->token_file;
	out->remote_store_headers = f->headers.count ? f->headers.v : NULL;
	return true;
}

static bool apply_sending(const struct sending_flags *f, struct agent_config *out, char *spool,
	char address[REMOTE_BYTES_MAX])
{
	if (f->offline_path && !f->upload) {
		if (f->remote && f->remote[0]) {
			cli_complain("--offline-mode-storage-path sends nothing: leave "
				     "--remote-store-address out, or add --offline-mode-upload");
			return false;
		}
		out->offline = true;
		out->http_address = f->http_address;
		out->spool_dir = f->offline_path;
		out->spool_bytes_max = f->spool_bytes;
		return true;
	}
	if (f->upload && !f->offline_path) {
		cli_complain("--offline-mode-upload needs --offline-mode-storage-path DIR");
		return false;
	}
	if (!f->remote || !f->remote[0]) {
		cli_complain("agent needs --remote-store-address HOST:PORT; `firn up` runs agent "
			     "and server together");
		return false;
	}
	if (f->upload)
		out->spool_dir = f->offline_path;
	else if (f->spool_path)
		out->spool_dir = f->spool_path;
	else if (cli_state_path(spool, "spool"))
		out->spool_dir = spool;
	else
		return false;
	if (!apply_remote(f, out, address))
		return false;
	out->debuginfo_upload = !f->no_names && !f->upload;
	out->debuginfo_no_strip = !f->strips;
	out->debuginfo_folders = f->debug_folders.count ? f->debug_folders.v : NULL;
	out->debuginfo_parallel_max = f->names_parallel;
	out->debuginfo_queue_max = f->names_queue;
	out->remote_store_call_ns = f->call_ns;
	out->http_address = f->http_address;
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
	c.groups[3] = cli_parca_group;
	c.group_count = 4;
	int at = 0, code = CLI_OK;
	if (!cli_parse(&c, argc, argv, &v, &at, &code))
		return code;
	if (v.sending.version)
		return cli_version(0, NULL);
	struct agent_config config;
	char spool[PATH_MAX], address[REMOTE_BYTES_MAX];
	if (!cli_log_apply(&v.log) || !cli_profiling_apply(&v.profiling, &config) ||
		!apply_sending(&v.sending, &config, spool, address))
		return CLI_USAGE;
	struct err e = { 0 };
	enum status s = v.sending.upload ? OK : agent_probe(&e);
	if (s == OK) {
		cli_stop_on_signals();
		s = v.sending.upload ? agent_upload(&config, &cli_stop, &e)
				     : agent_run(&config, &cli_stop, &e);
	}
	if (s == OK)
		return CLI_OK;
	cli_complain("%s", err_text(&e, s));
	return CLI_FAILED;
}
