/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.debuginfo.v1alpha1.DebuginfoService from the client's side: ask whether the server wants
 * the file, announce it, send its bytes as one stream of messages, say that it is whole. Whatever
 * goes wrong after the announcement leaves an upload that the server takes for broken.
 */
#include "cli/debuginfo.h"

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
#include "cli/options.h"
#include "cli/plain.h"
#include "debuginfo/debuginfo.h"
#include "net/net.h"
#include "pb/pb.h"

#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define PATHS_MAX 1024
#define CALL_TIMEOUT_NS (60 * NS_PER_SEC)
#define UPLOAD_TIMEOUT_NS (3600 * NS_PER_SEC)
#define CHUNK_BYTES ((size_t)1 << 20)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define TOKEN_BYTES_MAX 65536
#define ADDRESS_BYTES_MAX 512
#define STRATEGY_GRPC 1
#define STRATEGY_SIGNED_URL 2

struct upload {
	const char *address, *token, *token_file;
	bool insecure, skip_verify, no_extract, no_initiate, force;
	const char *type, *build_id;
	const char *log_level; /* "debug": says what it does */
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
	  .help = "debug tells what is done." },
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

/* One file on its way. */
struct sent {
	const struct upload *flags;
	struct net_client *client;
	const char *path;
	enum debuginfo_type type;
	char build_id[DEBUGINFO_ID_MAX + 1];
	char upload_id[DEBUGINFO_ID_MAX + 1];
	int fd;
	uint64_t bytes, at;
	bool has_begun; /* the stream's first message */
	struct buf message;
	uint8_t chunk[CHUNK_BYTES];
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
	net_client_limit(c, ANSWER_BYTES_MAX);
	s = add_token(f, c, e);
	for (uint32_t i = 0; s == OK && i < f->headers.count; i++)
		s = add_header(c, f->headers.v[i], e);
	if (s != OK)
		net_client_free(c);
	else
		*out = c;
	return s;
}

static enum status call(struct sent *x, const char *method, struct buf *answer, struct err *e)
{
	char path[128];
	bool retry;
	enum status s = buf_status(&x->message);
	if (s != OK)
		return err_set(e, s, "%s: the question", method);
	snprintf(path, sizeof(path), SERVICE "%s", method);
	s = net_client_rpc(
		x->client, path, buf_view(&x->message), CALL_TIMEOUT_NS, answer, &retry, e);
	return s == OK ? OK : err_prefix(e, s, "%s: %s", x->path, method);
}

static enum status torn(const char *method, struct err *e)
{
	return err_set(e, E_IO, "%s: the server's answer is malformed", method);
}

/* ---- the four steps ---- */

/* { build_id = 1; hash = 2; force = 3; type = 4 } gives { should_initiate_upload = 1; reason = 2 }
 */
static enum status ask(struct sent *x, bool *out_wanted, struct buf *reason, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	struct pb_field f;
	buf_init(&answer, ANSWER_BYTES_MAX);
	buf_clear(&x->message);
	pb_put_str(&x->message, 1, str_of(x->build_id));
	pb_put_bool(&x->message, 3, x->flags->force);
	pb_put_u64(&x->message, 4, x->type);
	enum status s = call(x, "ShouldInitiateUpload", &answer, e);
	if (s != OK)
		return s;
	struct reader r = reader_over(answer.data, answer.len);
	*out_wanted = false;
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_VARINT)
			*out_wanted = f.u64 != 0;
		else if (f.number == 2 && f.wire == PB_BYTES)
			cli_plain(f.bytes, "", reason);
	}
	return r.failed ? torn("ShouldInitiateUpload", e) : OK;
}

/* UploadInstructions { build_id = 1; upload_id = 2; upload_strategy = 3; signed_url = 4; type = 5 }
 */
static enum status take_instructions(struct sent *x, struct str bytes, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint64_t strategy = 0;
	struct str id = STR("");
	while (pb_next(&r, &f)) {
		if (f.number == 2 && f.wire == PB_BYTES)
			id = f.bytes;
		else if (f.number == 3 && f.wire == PB_VARINT)
			strategy = f.u64;
	}
	if (r.failed || id.len == 0 || id.len >= sizeof(x->upload_id))
		return torn("InitiateUpload", e);
	if (strategy == STRATEGY_SIGNED_URL)
		return err_set(e, E_UNSUPPORTED,
			"%s: the server wants it at a signed address, which is not supported",
			x->path);
	if (strategy != STRATEGY_GRPC)
		return err_set(e, E_UNSUPPORTED, "%s: upload strategy %" PRIu64 " is not known",
			x->path, strategy);
	snprintf(x->upload_id, sizeof(x->upload_id), "%.*s", STR_ARG(id));
	return OK;
}

static enum status hash_file(struct sent *x, char out[33], struct err *e)
{
	struct hash_stream *h = hash_stream_new();
	enum status s = h ? OK : err_set(e, E_NOMEM, "hash");
	for (uint64_t at = 0; s == OK && at < x->bytes;) {
		size_t n = (size_t)MIN(x->bytes - at, (uint64_t)sizeof(x->chunk));
		s = os_pread_full(x->fd, x->chunk, n, at, x->path, e);
		if (s == OK)
			hash_stream_add(h, x->chunk, n);
		at += n;
	}
	if (s == OK) {
		struct hash128 sum = hash_stream_end(h);
		snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, sum.hi, sum.lo);
	}
	hash_stream_free(h);
	return s;
}

/* { build_id = 1; size = 2; hash = 3; force = 4; type = 5 } gives { upload_instructions = 1 } */
static enum status initiate(struct sent *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	struct pb_field f;
	char hash[33];
	buf_init(&answer, ANSWER_BYTES_MAX);
	enum status s = hash_file(x, hash, e);
	if (s != OK)
		return s;
	buf_clear(&x->message);
	pb_put_str(&x->message, 1, str_of(x->build_id));
	pb_put_u64(&x->message, 2, x->bytes);
	pb_put_str(&x->message, 3, str_of(hash));
	pb_put_bool(&x->message, 4, x->flags->force);
	pb_put_u64(&x->message, 5, x->type);
	s = call(x, "InitiateUpload", &answer, e);
	if (s != OK)
		return s;
	struct reader r = reader_over(answer.data, answer.len);
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			return take_instructions(x, f.bytes, e);
	return torn("InitiateUpload", e);
}

static void put_upload(struct sent *x)
{
	pb_put_str(&x->message, 1, str_of(x->build_id));
	pb_put_str(&x->message, 2, str_of(x->upload_id));
	pb_put_u64(&x->message, 3, x->type);
}

/* UploadRequest { info = 1; chunk_data = 2 } */
static enum status next_message(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	struct sent *x = ctx;
	buf_clear(&x->message);
	*out_end = x->has_begun && x->at == x->bytes;
	if (!x->has_begun) {
		size_t at = pb_begin(&x->message, 1);
		put_upload(x);
		pb_end(&x->message, at);
		x->has_begun = true;
	} else if (!*out_end) {
		size_t n = (size_t)MIN(x->bytes - x->at, (uint64_t)sizeof(x->chunk));
		enum status s = os_pread_full(x->fd, x->chunk, n, x->at, x->path, e);
		if (s != OK)
			return s;
		pb_put_str(&x->message, 2, str_make(x->chunk, n));
		x->at += n;
	}
	*out = buf_view(&x->message);
	return buf_status(&x->message);
}

static enum status send_bytes(struct sent *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	bool retry;
	buf_init(&answer, ANSWER_BYTES_MAX);
	enum status s = net_client_send(x->client, SERVICE "Upload", next_message, x,
		UPLOAD_TIMEOUT_NS, &answer, &retry, e);
	return s == OK ? OK : err_prefix(e, s, "%s: Upload", x->path);
}

static enum status mark_finished(struct sent *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	buf_init(&answer, ANSWER_BYTES_MAX);
	buf_clear(&x->message);
	put_upload(x);
	return call(x, "MarkUploadFinished", &answer, e);
}

/* ---- one file ---- */

static bool loud(const struct sent *x)
{
	return strcmp(x->flags->log_level, "debug") == 0;
}

static enum status upload(struct sent *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf reason;
	bool wanted;
	buf_init(&reason, ANSWER_BYTES_MAX * 4);
	enum status s = ask(x, &wanted, &reason, e);
	if (s != OK)
		return s;
	if (!wanted || x->flags->no_initiate) {
		printf(wanted ? "Not uploading \"%s\" with build id %s, as asked; the server would "
				"take it: %.*s\n"
			      : "Skipping upload of \"%s\" with build id %s: the server does not "
				"want it: %.*s\n",
			x->path, x->build_id, STR_ARG(buf_view(&reason)));
		return OK;
	}
	s = initiate(x, e);
	if (s == OK && loud(x)) {
		buf_clear(&reason);
		cli_plain(str_of(x->upload_id), "", &reason);
		printf("Uploading \"%s\" with build id %s as %.*s: %" PRIu64 " bytes\n", x->path,
			x->build_id, STR_ARG(buf_view(&reason)), x->bytes);
	}
	if (s == OK)
		s = send_bytes(x, e);
	if (s == OK)
		s = mark_finished(x, e);
	if (s == OK && loud(x))
		printf("Uploaded \"%s\"\n", x->path);
	return s;
}

/* The build id, and the file whose bytes are sent. */
static enum status prepare(struct sent *x, struct err *e)
{
	const struct upload *f = x->flags;
	bool extracts = !f->no_extract && x->type == DEBUGINFO_DEBUG;
	const char *id = f->build_id;
	struct objfile *obj = NULL;
	enum status s = OK;
	if (x->type == DEBUGINFO_SOURCES && !id)
		return err_set(e, E_INVALID,
			"%s: an archive does not say what it is the source of: --build-id ID is "
			"needed",
			x->path);
	if (extracts || !id)
		s = cli_debuginfo_open(x->path, !id, &obj, e);
	if (s != OK)
		return s;
	snprintf(x->build_id, sizeof(x->build_id), "%s", id ? id : objfile_build_id(obj));
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
		x->bytes = (uint64_t)st.st_size;
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
	x->type = type_of(f->type);
	x->fd = -1;
	buf_init(&x->message, CHUNK_BYTES + 1024);
	enum status s = prepare(x, e);
	if (s == OK)
		s = upload(x, e);
	fd_cleanup(&x->fd);
	buf_deinit(&x->message);
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
		if (code == CLI_UNREACHABLE)
			break;
	}
	net_client_free(c);
	return code;
}
