/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: GET of /ready, which server and agent answer without authentication. Certificates of https
 * are not checked: nothing secret is sent, and a container's own address is not the name in its
 * certificate.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/options.h"
#include "fetch/fetch.h"

#define ANSWER_BYTES_MAX 4096

struct ready {
	const char *server;
	int64_t timeout_ns;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "server", .kind = CLI_TEXT, .at = offsetof(struct ready, server),
	  .value = "URL", .otherwise = "http://127.0.0.1:7070", .env = "FIRN_SERVER",
	  .help = "Server or agent (http://127.0.0.1:7071), with its --path-prefix if it has one. "
		  "Certificates are not checked." },
	{ .name = "timeout", .kind = CLI_DURATION, .at = offsetof(struct ready, timeout_ns),
	  .value = "DURATION", .otherwise = "5s",
	  .help = "How long to wait for the answer." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "ready",
	.summary = "firn ready: whether a server or an agent is ready.",
	.args = "",
	.text = "For health checks of containers, which have no other program: exit code 0 when "
		"it is ready, 1 when it is not (it starts, or is about to stop), 3 when nobody "
		"answers.\n"
		"\n"
		"  firn ready\n"
		"  firn ready --server http://127.0.0.1:7071",
	.groups = { { "The server", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1,
};

/* "/firn/ready" of "http://host:7070/firn/". */
static void target_of(const char *server, struct buf *out)
{
	const char *scheme = strstr(server, "://");
	const char *path =
		strncmp(server, "unix:", 5) == 0 ? NULL : strchr(scheme ? scheme + 3 : server, '/');
	struct str prefix = path ? str_of(path) : STR("");
	while (str_ends(prefix, STR("/")))
		prefix.len--;
	buf_str(out, prefix);
	buf_cstr(out, "/ready");
	buf_u8(out, 0);
}

static enum status ask(const struct ready *r, int *out_http_status, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf target;
	buf_init(&target, FETCH_URL_MAX);
	target_of(r->server, &target);
	if (buf_status(&target) != OK)
		return err_set(e, E_INVALID, "the address is too long");
	struct fetch *f = NULL;
	enum status s = fetch_new(
		&(struct fetch_config){ .address = r->server, .trust_anybody = true }, &f, e);
	if (s == OK)
		s = fetch_get(f, (const char *)target.data, r->timeout_ns, out_http_status, out, e);
	fetch_free(f);
	return s;
}

int cli_ready(int argc, char **argv)
{
	struct ready r = { 0 };
	int at = 0, code = CLI_OK, http_status = 0;
	if (!cli_parse(&command, argc, argv, &r, &at, &code))
		return code;
	if (r.timeout_ns <= 0) {
		cli_complain("--timeout: more than 0s");
		return CLI_USAGE;
	}
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf answer;
	buf_init(&answer, ANSWER_BYTES_MAX);
	enum status s = ask(&r, &http_status, &answer, &e);
	if (s == OK && http_status == 200)
		return puts("ready") >= 0 && fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
	if (s == OK) {
		cli_complain("%s is not ready: HTTP status %d", r.server, http_status);
		return CLI_FAILED;
	}
	cli_complain("%s", err_text(&e, s));
	return s == E_INVALID ? CLI_USAGE : s == E_UNSUPPORTED ? CLI_FAILED : CLI_UNREACHABLE;
}
