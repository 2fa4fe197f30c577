/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the agent's configuration of the flags: those of its server here, the others in settings.c.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/flags/flags.h"
#include "cli/process/process.h"
#include "http/http.h"
#include "os/os.h"

#define REMOTE_BYTES_MAX 512
#define HEADER_BYTES_MAX 4096

struct agent {
	struct cli_sending_flags sending;
	struct cli_profiling_flags profiling;
	struct cli_log_flags log;
};

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
	.file_groups = cli_file_groups,
};

static bool check_credentials(const struct cli_sending_flags *f)
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
	bool token = (f->token && f->token[0]) || f->token_file;
	if ((f->basic && f->basic[0]) + (f->basic_file != NULL) + token > 1) {
		cli_complain("--remote-store-basic-auth, --remote-store-basic-auth-file and a "
			     "token: one of them is enough");
		return false;
	}
	if (f->insecure && strncmp(f->remote, "https:", 6) == 0) {
		cli_complain("--remote-store-insecure: %s is spoken to with TLS", f->remote);
		return false;
	}
	return true;
}

/* A name and password are one more header. */
static bool add_basic(struct cli_sending_flags *f, char header[HEADER_BYTES_MAX])
{
	CLEANUP(buf_deinit) struct buf pair, value;
	struct err e = { 0 };
	buf_init(&pair, HEADER_BYTES_MAX / 2);
	buf_init(&value, HEADER_BYTES_MAX - 1);
	if (f->basic_file) {
		enum status s = os_read_file(f->basic_file, &pair, &e);
		if (s != OK) {
			cli_complain("--remote-store-basic-auth-file: %s", err_text(&e, s));
			return false;
		}
	} else if (f->basic && f->basic[0]) {
		buf_cstr(&pair, f->basic);
	} else {
		return true;
	}
	struct str text = str_trim(buf_view(&pair));
	buf_cstr(&value, "authorization=Basic ");
	http_base64_encode(&value, text);
	if (str_index(text, ':') == text.len || buf_status(&pair) != OK ||
		buf_status(&value) != OK || f->headers.count == CLI_LIST_MAX) {
		cli_complain("--remote-store-basic-auth: NAME:PASSWORD is expected");
		return false;
	}
	snprintf(header, HEADER_BYTES_MAX, "%.*s", STR_ARG(buf_view(&value)));
	explicit_bzero(pair.data, pair.len);
	f->headers.v[f->headers.count++] = header;
	f->headers.v[f->headers.count] = NULL;
	return true;
}

static bool has_secret_header(const struct cli_sending_flags *f)
{
	for (uint32_t i = 0; i < f->headers.count; i++)
		if (strncasecmp(f->headers.v[i], "authorization=", 14) == 0)
			return true;
	return false;
}

/* Whether the connection must use TLS: a token or a certificate must not be sent in clear text. */
static bool wants_tls(const struct cli_sending_flags *f)
{
	return !f->insecure && !strstr(f->remote, "://") && strncmp(f->remote, "unix:", 5) != 0 &&
	       (f->skip_verify || f->ca_file || f->client_cert || f->token_file ||
		       (f->token && f->token[0]) || has_secret_header(f));
}

static bool apply_remote(
	const struct cli_sending_flags *f, struct agent_config *out, char address[REMOTE_BYTES_MAX])
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

static bool apply_sending(const struct cli_sending_flags *f, struct agent_config *out, char *spool,
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
	c.groups[0] = cli_sending_group;
	c.groups[0].at = offsetof(struct agent, sending);
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
	char spool[PATH_MAX], address[REMOTE_BYTES_MAX], header[HEADER_BYTES_MAX];
	if (!cli_log_apply(&v.log) || !add_basic(&v.sending, header) ||
		!cli_profiling_apply(&v.profiling, &config) ||
		!apply_sending(&v.sending, &config, spool, address))
		return CLI_USAGE;
	struct err e = { 0 };
	enum status s = v.sending.upload ? OK : agent_probe(&e);
	if (s == OK) {
		cli_stop_on_signals();
		os_notify_open();
		s = v.sending.upload ? agent_upload(&config, &cli_stop, &e)
				     : agent_run(&config, &cli_stop, &e);
	}
	if (s == OK)
		return CLI_OK;
	if (!cli_complain_of_address(config.http_address, s, err_text(&e, s)))
		cli_complain("%s", err_text(&e, s));
	return CLI_FAILED;
}
