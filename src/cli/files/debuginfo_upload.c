/* SPDX-License-Identifier: Apache-2.0 */
/* The flags, the files and the messages of the verb; upload/upload.h sends. */
#include "cli/files/debuginfo.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "debuginfo/debuginfo.h"
#include "net/net.h"
#include "upload/upload.h"

#define PATHS_MAX 1024
#define CALL_TIMEOUT_NS (60 * NS_PER_SEC)
#define UPLOAD_TIMEOUT_NS (3600 * NS_PER_SEC)
#define HASH_BYTES ((size_t)64 << 10) /* at a time */
#define HASH_TEXT_LEN 32
#define TOKEN_BYTES_MAX 65536
#define ADDRESS_BYTES_MAX 512

struct upload {
	const char *address, *token, *token_file;
	bool insecure, skip_verify, no_extract, no_initiate, force;
	const char *type, *build_id;
	const char *log_level; /* "debug": print each step */
	struct cli_list headers;
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "store-address", .kind = CLI_TEXT, .at = offsetof(struct upload, address),
	  .value = "HOST:PORT", .otherwise = "http://127.0.0.1:7070",
	  .help = "The server. HOST:PORT is spoken to with TLS, unless --insecure is given; "
		  "http://HOST:PORT without, https://HOST:PORT always." },
	{ .name = "insecure", .kind = CLI_BOOL, .at = offsetof(struct upload, insecure),
	  .help = "Send without TLS; a token goes in clear text then." },
	{ .name = "insecure-skip-verify", .kind = CLI_BOOL,
	  .at = offsetof(struct upload, skip_verify),
	  .help = "Use TLS, and trust whoever answers." },
	{ .name = "bearer-token", .kind = CLI_TEXT, .at = offsetof(struct upload, token),
	  .value = "TOKEN", .env = "PARCA_DEBUGINFO_BEARER_TOKEN",
	  .help = "Sent as \"authorization: Bearer TOKEN\". The command line is for all to see: "
		  "better a file." },
	{ .name = "bearer-token-file", .kind = CLI_TEXT, .at = offsetof(struct upload, token_file),
	  .value = "FILE", .help = "The same from a file." },
	{ .name = "grpc-headers", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct upload, headers), .value = "NAME=VALUE;...",
	  .help = "Headers that are sent with each call; may be repeated." },
	{ .name = "type", .kind = CLI_CHOICE, .at = offsetof(struct upload, type),
	  .value = "TYPE", .choices = "debuginfo executable sources", .otherwise = "debuginfo",
	  .help = "What PATH is: a program or debug file of which the debug information is sent, "
		  "a program to be sent whole, an archive of `firn debuginfo source`." },
	{ .name = "build-id", .kind = CLI_TEXT, .at = offsetof(struct upload, build_id),
	  .value = "ID", .help = "The build id to upload under; without it the file's own." },
	{ .name = "no-extract", .kind = CLI_BOOL, .at = offsetof(struct upload, no_extract),
	  .help = "Send PATH as it is, and not what was extracted from it." },
	{ .name = "no-initiate", .kind = CLI_BOOL, .at = offsetof(struct upload, no_initiate),
	  .help = "Send nothing, only ask whether the server wants it." },
	{ .name = "force", .kind = CLI_BOOL, .at = offsetof(struct upload, force),
	  .help = "Upload also what the server has already." },
	{ .name = "log-level", .kind = CLI_CHOICE, .at = offsetof(struct upload, log_level),
	  .value = "LEVEL", .choices = "error warn info debug", .otherwise = "info",
	  .help = "info tells what was sent, debug each step." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "debuginfo upload",
	.summary = "firn debuginfo upload: send debug information to a server.",
	.args = "PATH...",
	.args_least = 1,
	.args_most = PATHS_MAX,
	.text = "To a firn server, or to Parca's. What the server has already is not sent again.\n"
		"\n"
		"  firn debuginfo upload --store-address firn.example:7070 app\n"
		"\n"
		"Exit codes: 0 sent, or not wanted; 1 something failed; 2 the command line is "
		"wrong; 3 no server answers.",
	.groups = { { "Upload", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1,
};

/* A file that is being sent. */
struct sent {
	const struct upload *flags;
	struct net_client *client;
	const char *path;
	struct upload_file file;
	struct upload_ticket ticket;
	char build_id[DEBUGINFO_ID_MAX + 1];
	char hash[HASH_TEXT_LEN + 1];
	int fd;
};

static enum debuginfo_type type_of(const char *name)
{
	return strcmp(name, "sources") == 0      ? DEBUGINFO_SOURCES
	       : strcmp(name, "executable") == 0 ? DEBUGINFO_EXECUTABLE
						 : DEBUGINFO_DEBUG;
}

/* ---- the server ---- */

static bool check_flags(const struct upload *f)
{
	if (f->token && f->token[0] && f->token_file)
		cli_complain("--bearer-token and --bearer-token-file: one of them is enough");
	else if (f->insecure && strncmp(f->address, "https:", 6) == 0)
		cli_complain("--insecure: %s is spoken to with TLS", f->address);
	else if (f->skip_verify && (f->insecure || strncmp(f->address, "http:", 5) == 0))
		cli_complain("--insecure-skip-verify: there is no TLS");
	else if (f->build_id &&
		 (strlen(f->build_id) < DEBUGINFO_ID_MIN || strlen(f->build_id) > DEBUGINFO_ID_MAX))
		cli_complain("--build-id: %d to %d characters, not '%s'", DEBUGINFO_ID_MIN,
			DEBUGINFO_ID_MAX, f->build_id);
	else
		return true;
	return false;
}

static enum status add_token(const struct upload *f, struct net_client *c, struct err *e)
{
	CLEANUP(buf_deinit) struct buf value;
	buf_init(&value, TOKEN_BYTES_MAX);
	buf_cstr(&value, "Bearer ");
	size_t begin = value.len;
	if (f->token_file) {
		enum status s = os_read_file(f->token_file, &value, e);
		if (s != OK)
			return s;
		while (value.len > begin && value.data[value.len - 1] <= ' ')
			value.len--;
	} else {
		buf_cstr(&value, f->token ? f->token : "");
	}
	if (value.len == begin)
		return OK;
	buf_u8(&value, 0);
	enum status s = buf_status(&value);
	return s == OK ? net_client_header(c, "authorization", (const char *)value.data, e)
		       : err_set(e, s, "the token is too long");
}

static enum status add_header(struct net_client *c, const char *text, struct err *e)
{
	char name[256];
	size_t len = strcspn(text, "=");
	if (!text[len] || len >= sizeof(name))
		return err_set(e, E_INVALID, "--grpc-headers: '%s' is not NAME=VALUE", text);
	memcpy(name, text, len);
	name[len] = 0;
	return net_client_header(c, name, text + len + 1, e);
}

static enum status open_client(const struct upload *f, struct net_client **out, struct err *e)
{
	char address[ADDRESS_BYTES_MAX];
	bool bare = !strstr(f->address, "://") && strncmp(f->address, "unix:", 5) != 0;
	const char *scheme = bare && !f->insecure ? "https://" : "";
	struct net_client *c;
	if (snprintf(address, sizeof(address), "%s%s", scheme, f->address) >= (int)sizeof(address))
		return err_set(
			e, E_INVALID, "--store-address: more than %d bytes", ADDRESS_BYTES_MAX - 1);
	enum status s = net_client_new(address, &c, e);
	if (s != OK)
		return err_prefix(e, s, "--store-address");
	if (f->skip_verify)
		net_client_trust_anybody(c);
	net_client_limit(c, UPLOAD_ANSWER_BYTES_MAX);
	s = add_token(f, c, e);
	for (uint32_t i = 0; s == OK && i < f->headers.count; i++)
		s = add_header(c, f->headers.v[i], e);
	if (s != OK)
		net_client_free(c);
	else
		*out = c;
	return s;
}

/* ---- one file ---- */

static bool loud(const struct sent *x)
{
	return strcmp(x->flags->log_level, "debug") == 0;
}

static enum status hash_file(struct sent *x, struct err *e)
{
	struct hash_stream *h = hash_stream_new();
	CLEANUP(free_cleanup) uint8_t *piece = malloc(HASH_BYTES);
	enum status s = h && piece ? OK : err_set(e, E_NOMEM, "hash");
	for (uint64_t at = 0; s == OK && at < x->file.bytes; at += HASH_BYTES) {
		size_t n = (size_t)MIN(x->file.bytes - at, (uint64_t)HASH_BYTES);
		s = os_pread_full(x->fd, piece, n, at, x->path, e);
		if (s == OK)
			hash_stream_add(h, piece, n);
	}
	if (s == OK) {
		struct hash128 sum = hash_stream_end(h);
		snprintf(x->hash, sizeof(x->hash), "%016" PRIx64 "%016" PRIx64, sum.hi, sum.lo);
	}
	hash_stream_free(h);
	return s;
}

static enum status read_file(void *ctx, uint64_t at, void *out, size_t len, struct err *e)
{
	const struct sent *x = ctx;
	return os_pread_full(x->fd, out, len, at, x->path, e);
}

static bool is_quiet(const struct sent *x)
{
	const char *level = x->flags->log_level;
	return strcmp(level, "error") == 0 || strcmp(level, "warn") == 0;
}

static void say_not_sent(const struct sent *x, const struct upload_answer *a)
{
	CLEANUP(buf_deinit) struct buf reason;
	/* A byte that cannot be shown becomes up to three. */
	buf_init(&reason, 4 * sizeof(a->reason));
	cli_plain(str_of(a->reason), "", &reason);
	printf(a->wanted ? "Not uploading \"%s\" with build id %s, as asked; the server would take "
			   "it: %.*s\n"
			 : "Skipping upload of \"%s\" with build id %s: the server does not want "
			   "it: "
			   "%.*s\n",
		x->path, x->build_id, STR_ARG(buf_view(&reason)));
}

static void say_begun(const struct sent *x)
{
	CLEANUP(buf_deinit) struct buf id;
	buf_init(&id, 4 * sizeof(x->ticket.id));
	cli_plain(str_of(x->ticket.id), "", &id);
	printf("Uploading \"%s\" with build id %s as %.*s: %" PRIu64 " bytes\n", x->path,
		x->build_id, STR_ARG(buf_view(&id)), x->file.bytes);
}

static enum status upload(struct sent *x, struct err *e)
{
	const struct upload_limits limits = {
		.call_ns = CALL_TIMEOUT_NS,
		.bytes_ns = UPLOAD_TIMEOUT_NS,
		.clear_text = x->flags->insecure || strstr(x->flags->address, "http:"),
		.wake_fd = -1,
	};
	struct upload_answer answer;
	bool retry;
	enum status s = upload_ask(x->client, &limits, &x->file, &answer, &retry, e);
	if (s == OK && (!answer.wanted || x->flags->no_initiate)) {
		say_not_sent(x, &answer);
		return OK;
	}
	if (s == OK)
		s = hash_file(x, e);
	if (s == OK)
		s = upload_begin(x->client, &limits, &x->file, &x->ticket, &retry, e);
	if (s == OK && loud(x))
		say_begun(x);
	if (s == OK)
		s = upload_send(x->client, &limits, &x->file, &x->ticket, &retry, e);
	if (s == OK)
		s = upload_finish(x->client, &limits, &x->file, &x->ticket, &retry, e);
	if (s == OK && !is_quiet(x))
		printf("Uploaded \"%s\" with build id %s: %" PRIu64 " bytes\n", x->path,
			x->build_id, x->file.bytes);
	return s == OK ? OK : err_prefix(e, s, "%s", x->path);
}

/* Warns of a stripped program, from which no names can come. */
static void warn_if_stripped(const struct objfile *obj, const char *path)
{
	static const char *const names[] = { ".symtab", ".debug_info", ".zdebug_info",
		".gnu_debugdata", ".gopclntab", ".data.rel.ro.gopclntab" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (objfile_section(obj, names[i]))
			return;
	cli_complain("%s is stripped: it names exported functions only. Its debug file, or the "
		     "file before it was stripped, names all",
		path);
}

/* Finds the build id, and opens the file to send. */
static enum status prepare(struct sent *x, struct err *e)
{
	const struct upload *f = x->flags;
	bool extracts = !f->no_extract && x->file.type == DEBUGINFO_DEBUG;
	const char *id = f->build_id;
	struct objfile *obj = NULL;
	enum status s = OK;
	if (x->file.type == DEBUGINFO_SOURCES && !id)
		return err_set(e, E_INVALID,
			"%s: an archive does not say what it is the source of: --build-id ID is "
			"needed",
			x->path);
	if (extracts || !id)
		s = cli_debuginfo_open(x->path, !id, &obj, e);
	if (s != OK)
		return s;
	snprintf(x->build_id, sizeof(x->build_id), "%s", id ? id : objfile_build_id(obj));
	if (obj && x->file.type == DEBUGINFO_DEBUG)
		warn_if_stripped(obj, x->path);
	if (extracts) {
		s = cli_debuginfo_temporary(&x->fd, e);
		if (s == OK)
			s = debuginfo_extract(obj, x->fd, e);
	} else {
		s = os_open_regular(AT_FDCWD, x->path, &x->fd, e);
	}
	objfile_close(obj);
	struct stat st;
	if (s == OK && fstat(x->fd, &st) != 0)
		s = err_os(e, "%s", x->path);
	if (s == OK && st.st_size == 0)
		s = err_set(e, E_INVALID, "%s: the file is empty", x->path);
	if (s == OK)
		x->file.bytes = (uint64_t)st.st_size;
	return s;
}

static enum status upload_path(
	const struct upload *f, struct net_client *c, const char *path, struct err *e)
{
	struct sent *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "%s", path);
	x->flags = f;
	x->client = c;
	x->path = path;
	x->file = (struct upload_file){
		.build_id = x->build_id,
		.type = type_of(f->type),
		.hash = x->hash,
		.force = f->force,
		.read = read_file,
		.ctx = x,
	};
	x->fd = -1;
	enum status s = prepare(x, e);
	if (s == OK)
		s = upload(x, e);
	fd_cleanup(&x->fd);
	free(x);
	return s;
}

int cli_debuginfo_upload(int argc, char **argv)
{
	static struct upload v;
	struct net_client *c = NULL;
	struct err e = { 0 };
	int at = 0, code = CLI_OK;
	v = (struct upload){ 0 };
	if (!cli_parse(&command, argc, argv, &v, &at, &code))
		return code;
	if (!check_flags(&v))
		return CLI_USAGE;
	if (v.build_id && argc - at > 1) {
		cli_complain("--build-id is that of one file");
		return CLI_USAGE;
	}
	enum status s = open_client(&v, &c, &e);
	if (s != OK) {
		cli_complain("%s", err_text(&e, s));
		return s == E_INVALID ? CLI_USAGE : CLI_FAILED;
	}
	for (code = CLI_OK; at < argc; at++) {
		s = upload_path(&v, c, argv[at], &e);
		if (s != OK)
			code = cli_debuginfo_code(s, &e);
		if (s != OK && !v.insecure && strstr(e.text, "does not speak it"))
			cli_complain("--insecure sends without TLS");
		if (code == CLI_UNREACHABLE)
			break;
	}
	net_client_free(c);
	return code;
}
