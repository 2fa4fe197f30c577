/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is posted unchanged. The server's answer becomes a message and an exit code.
 */
#include "cli/ask/push.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "codec/codec.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "stacktext/stacktext.h"

#define PUSH_TIMEOUT_NS (120 * NS_PER_SEC)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)

struct push {
	const char *server;
	const char *name;
	struct cli_list labels;
	struct cli_credentials who;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "server", .kind = CLI_TEXT, .at = offsetof(struct push, server), .value = "URL",
	  .otherwise = "http://127.0.0.1:7070", .env = "FIRN_SERVER",
	  .help = "The server to send to." },
	{ .name = "labels", .letter = 'l', .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct push, labels), .value = "NAME=VALUE,...",
	  .help = "Labels of the samples, beside their own; may be repeated." },
	{ .name = "name", .kind = CLI_TEXT, .at = offsetof(struct push, name), .value = "NAME",
	  .help = "The first part of the profile type: process_cpu, memory. Default: what Go calls "
		  "such a profile." },
	CLI_CREDENTIALS_OPTIONS(struct push, who),
};
/* clang-format on */

static const struct cli_command command = {
	.name = "push",
	.summary = "firn push: store pprof files in a server.",
	.args = "FILE...",
	.args_least = 1,
	.args_most = 4096,
	.text = "Files of profile.proto, with gzip or without, as Go's pprof and others write "
		"them. "
		"Samples get the time that is in the file. A file that the server has already is "
		"not stored twice.\n"
		"\n"
		"  firn push cpu.pb.gz --labels job=api,version=2\n"
		"  curl -s localhost:6060/debug/pprof/heap > heap.pb.gz && firn push heap.pb.gz",
	.groups = { { "Flags", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1,
};

static int refused(const char *file, int http_status, struct str answer)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, ANSWER_BYTES_MAX);
	cli_error_text(answer, &text);
	cli_complain("%s: %.*s", file, STR_ARG(buf_view(&text)));
	buf_u8(&text, 0);
	if (text.data && strstr((const char *)text.data, "where retention begins"))
		cli_complain("`firn open %s` shows a file of any age", file);
	return http_status == 400 ? CLI_USAGE : CLI_FAILED;
}

/* Complains if the file is a text, which no pprof file is. */
static bool complain_of_text(const char *file, struct str bytes)
{
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, CLI_PUSH_BYTES_MAX);
	bool packed = codec_is_gzip(bytes.p, bytes.len);
	if (packed && codec_gunzip(bytes.p, bytes.len, &plain, &e) != OK)
		return false; /* the server says why */
	switch (stacktext_guess(packed ? buf_view(&plain) : bytes)) {
	case STACKTEXT_NONE:
		return false;
	case STACKTEXT_PERF:
		cli_complain("%s is what `perf script` prints; push takes pprof files only. `firn "
			     "open %s` shows it",
			file, file);
		return true;
	case STACKTEXT_FOLDED:
		cli_complain("%s is a text; push takes pprof files (profile.proto, with gzip or "
			     "without). `firn open` shows folded stacks",
			file);
		return true;
	}
	UNREACHABLE();
}

static uint64_t samples_of(struct str answer)
{
	struct str head = STR("{\"samples\":");
	struct str rest = str_sub(answer, head.len, answer.len);
	uint64_t n = 0;
	bool counted = str_starts(answer, head) &&
		       str_parse_u64(str_sub(rest, 0, str_index(rest, '}')), 10, &n);
	return counted ? n : 0;
}

int cli_push_bytes(const char *server, const struct cli_credentials *who,
	const char *path_and_query, const char *file, struct str bytes, uint64_t *out_samples)
{
	CLEANUP(buf_deinit) struct buf answer;
	struct fetch *f = NULL;
	struct err e = { 0 };
	int http_status = 0;
	buf_init(&answer, ANSWER_BYTES_MAX);
	enum status s = cli_fetch_new(server, who, &f, &e);
	if (s != OK) {
		cli_complain("%s: %s", cli_server_source(server), err_text(&e, s));
		return CLI_USAGE;
	}
	s = fetch_post(f, path_and_query, NULL, bytes, PUSH_TIMEOUT_NS, &http_status, &answer, &e);
	fetch_free(f);
	if (s != OK) {
		cli_complain("no firn server answers at %s: %s", server, err_text(&e, s));
		return CLI_UNREACHABLE;
	}
	if (http_status != 200)
		return refused(file, http_status, buf_view(&answer));
	*out_samples = samples_of(buf_view(&answer));
	return CLI_OK;
}

static int push_file(const struct push *p, const char *path_and_query, const char *file)
{
	CLEANUP(buf_deinit) struct buf bytes;
	struct err e = { 0 };
	uint64_t samples = 0;
	buf_init(&bytes, CLI_PUSH_BYTES_MAX);
	enum status s = os_read_file(file, &bytes, &e);
	if (s != OK) {
		cli_complain("%s", err_text(&e, s));
		return CLI_FAILED;
	}
	if (complain_of_text(file, buf_view(&bytes)))
		return CLI_USAGE;
	int code = cli_push_bytes(
		p->server, &p->who, path_and_query, file, buf_view(&bytes), &samples);
	if (code == CLI_OK)
		printf("%s: %llu sample%s stored\n", file, (unsigned long long)samples,
			samples == 1 ? "" : "s");
	return code;
}

int cli_push(int argc, char **argv)
{
	static struct push p;
	int at = 0, code = CLI_OK;
	p = (struct push){ 0 };
	if (!cli_parse(&command, argc, argv, &p, &at, &code))
		return code;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 20);
	cli_url_begin(&url, "/api/push");
	cli_url_add(&url, "name", p.name);
	for (uint32_t i = 0; i < p.labels.count; i++) {
		if (!strchr(p.labels.v[i], '=')) {
			cli_complain("--labels: '%s' is not NAME=VALUE", p.labels.v[i]);
			return CLI_USAGE;
		}
		cli_url_add(&url, "labels", p.labels.v[i]);
	}
	buf_u8(&url, 0);
	for (code = CLI_OK; at < argc; at++) {
		int one = push_file(&p, (const char *)url.data, argv[at]);
		code = one == CLI_OK ? code : one;
		if (one == CLI_UNREACHABLE)
			break;
	}
	return code;
}
