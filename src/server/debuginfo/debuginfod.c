/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod's protocol (elfutils 0.194, debuginfod(8)): sends the server's files of a build id:
 * gdb, perf, elfutils and other servers of profiles name addresses by them.
 *
 * Files come from uploads, the host's own files and the debug directories, as the symbolizer finds
 * them. If there are tenants, each gets only its own uploads: not those of others, and no files of
 * this host. The agent hands over programs that only root may read: only authenticated clients get
 * them.
 */
#include "base/clock.h"
#include "os/os.h"
#include "server/debuginfo/debuginfo.h"
#include "server/debuginfo/files.h"
#include "server/debuginfo/source.h"
#include "server/request/request.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUILDID "/buildid/"
#define SECTION_BYTES_MIN ((uint64_t)16 << 20)
#define PIECE_BYTES ((size_t)64 << 10)
#define METADATA_ARENA_BYTES ((size_t)64 << 10)

struct asked {
	struct server *s;
	const struct net_request *r;
	struct net_stream *stream;
	struct str tenant;
	char build_id[DEBUGINFO_ID_MAX + 1];
	struct str what, rest; /* "source", "usr/src/a.c" */
};

/* As much of the server's memory as one section may take; files are sent piece by piece. */
static uint64_t section_max(const struct server *s)
{
	uint64_t share = s->config->storage_memory_bytes / 4;
	return MIN(MAX(share, SECTION_BYTES_MIN), (uint64_t)NET_ANSWER_MAX);
}

enum status server_build_file(struct server *s, const struct net_request *r,
	const struct debuginfo_key *key, int *out_fd, struct err *e)
{
	uint64_t bytes;
	if (s->config->tenant_header || r->caller.has_tenant)
		return debuginfo_uploads_file(s->uploads, key, out_fd, &bytes, e);
	bool for_all = !s->auth || !auth_is_required(s->auth);
	return symbolizer_file(s->engine.symbolizer, key->build_id, key->type, for_all, out_fd, e);
}

static enum status open_file(
	const struct asked *a, enum debuginfo_type type, int *out_fd, struct err *e)
{
	const struct debuginfo_key key = { str_of(a->build_id), a->tenant, type };
	enum status s = server_build_file(a->s, a->r, &key, out_fd, e);
	/* Hex digits that no file can have as its id, such as an odd number of them. */
	return s == E_INVALID ? err_set(e, E_NOTFOUND, "no file has this build id") : s;
}

static enum status take_id(struct asked *a, struct str id, struct err *e)
{
	if (id.len < 8 || id.len > DEBUGINFO_ID_MAX)
		return err_set(e, E_INVALID,
			"expected a build id in hexadecimal digits, as in " BUILDID "ID/WHAT");
	for (size_t i = 0; i < id.len; i++) {
		char c = id.p[i];
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return err_set(e, E_INVALID, "a build id has digits and a to f only");
		a->build_id[i] = c;
	}
	return OK;
}

/* "/buildid/ID/WHAT[/REST]" */
static enum status read_path(struct asked *a, struct err *e)
{
	struct str path = str_sub(a->r->path, strlen(BUILDID), a->r->path.len), id;
	(void)str_split(&path, '/', &id);
	enum status s = take_id(a, id, e);
	if (s != OK)
		return s;
	if (!str_split(&path, '/', &a->what))
		return err_set(e, E_INVALID, "expected executable, debuginfo, source or section");
	a->rest = path;
	return OK;
}

static void put_headers(const struct asked *a, const struct stat *st, const char *suffix,
	uint64_t bytes, struct net_response *out)
{
	char date[64] = "", modified[96] = "";
	struct tm tm;
	if (st && gmtime_r(&st->st_mtime, &tm)) {
		(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		snprintf(modified, sizeof(modified), "last-modified: %s\r\n", date);
	}
	out->content_type = "application/octet-stream";
	out->no_compress = true;
	snprintf(out->headers, sizeof(out->headers),
		"%sx-debuginfod-size: %llu\r\nx-debuginfod-file: %s%s\r\n", modified,
		(unsigned long long)bytes, a->build_id, suffix);
}

/* Checks the size against the client's limit. */
static enum status check_size(const struct asked *a, uint64_t bytes, int *out_http, struct err *e)
{
	uint64_t most;
	struct str wanted = net_header_find(a->r, "x-debuginfod-maxsize");
	if (wanted.len && str_parse_u64(wanted, 10, &most) && most && bytes > most) {
		*out_http = 406;
		return err_set(e, E_LIMIT, "%llu bytes, more than x-debuginfod-maxsize",
			(unsigned long long)bytes);
	}
	return OK;
}

/* Sends the file in pieces; a failure after the first one breaks the answer off. */
static enum status send_pieces(
	const struct asked *a, int fd, uint64_t bytes, struct net_stream *stream, struct err *e)
{
	CLEANUP(buf_deinit) struct buf piece;
	buf_init(&piece, PIECE_BYTES);
	uint8_t *to = buf_reserve(&piece, PIECE_BYTES);
	if (!to)
		return err_set(e, E_NOMEM, "a piece of a file");
	enum status s = OK;
	for (uint64_t at = 0; s == OK && at < bytes; at += PIECE_BYTES) {
		size_t len = (size_t)MIN(bytes - at, (uint64_t)PIECE_BYTES);
		s = os_pread_full(fd, to, len, (int64_t)at, a->build_id, e);
		if (s == OK)
			s = net_stream_send(stream, str_make((const char *)to, len), e);
	}
	return s;
}

static enum status send_file(const struct asked *a, enum debuginfo_type type,
	struct net_response *out, int *out_http, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct stat st;
	enum status s = open_file(a, type, &fd, e);
	if (s != OK)
		return s;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, E_NOTFOUND, "no such file");
	uint64_t bytes = (uint64_t)st.st_size;
	s = check_size(a, bytes, out_http, e);
	if (s != OK)
		return s;
	put_headers(a, &st, type == DEBUGINFO_DEBUG ? ".debug" : "", bytes, out);
	out->stream_bytes = bytes;
	return send_pieces(a, fd, bytes, a->stream, e);
}

/* Sends a section of the debug file, or if that does not have its bytes, of the executable. */
static enum status send_section(
	const struct asked *a, struct net_response *out, int *out_http, struct err *e)
{
	static const enum debuginfo_type types[] = { DEBUGINFO_DEBUG, DEBUGINFO_EXECUTABLE };
	enum status s = OK;
	out->body.max = MIN(out->body.max, (size_t)section_max(a->s));
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		CLEANUP(fd_cleanup) int fd = -1;
		s = open_file(a, types[i], &fd, e);
		if (s == OK)
			s = symbolizer_section(fd, a->rest, &out->body, e);
		if (s != E_NOTFOUND)
			break;
	}
	if (s == OK)
		s = check_size(a, out->body.len, out_http, e);
	if (s == OK)
		put_headers(a, NULL, "", out->body.len, out);
	return s;
}

static bool is_gone(void *ctx)
{
	const struct net_request *r = ctx;
	return r->gone(r);
}

/* Sends a source file of this host that the program's symbols name. */
static enum status send_host_source(const struct asked *a, struct str path, int64_t until_ns,
	struct net_response *out, struct err *e)
{
	struct stat st;
	if (!server_host_source(a->s, a->r, path, &out->body, &st))
		return err_set(e, E_NOTFOUND, "no such source");
	enum status s = symbolizer_names_source(
		a->s->engine.symbolizer, str_of(a->build_id), path, until_ns, e);
	if (s == OK)
		put_headers(a, &st, "", out->body.len, out);
	else
		buf_clear(&out->body);
	return s;
}

/* The path is absolute: the slash after "source" is its first character. */
static enum status send_source(const struct asked *a, struct net_response *out, struct err *e)
{
	void *request = (void *)(uintptr_t)a->r;
	struct str path = str_make(a->rest.p - 1, a->rest.len + 1);
	int64_t until = clock_monotonic_ns() + SERVER_SOURCE_WAIT_NS;
	enum status s = server_source_text(a->s, a->tenant, str_of(a->build_id), path, until,
		is_gone, request, NULL, &out->body, e);
	if (s == OK) {
		put_headers(a, NULL, "", out->body.len, out);
	} else if (s == E_NOTFOUND || s == E_UNAVAILABLE) {
		buf_clear(&out->body);
		struct err why = { 0 };
		enum status host = send_host_source(a, path, until, out, &why);
		if (host != E_NOTFOUND) {
			*e = why;
			return host;
		}
	}
	return s;
}

static enum status answer(struct asked *a, struct net_response *out, int *out_http, struct err *e)
{
	enum status s = read_path(a, e);
	if (s == OK)
		s = server_tenant(a->s, a->r, &a->tenant, e);
	if (s != OK)
		return s;
	if (a->rest.len == 0 && str_eq(a->what, STR("executable")))
		return send_file(a, DEBUGINFO_EXECUTABLE, out, out_http, e);
	if (a->rest.len == 0 && str_eq(a->what, STR("debuginfo")))
		return send_file(a, DEBUGINFO_DEBUG, out, out_http, e);
	if (a->rest.len && str_eq(a->what, STR("section")))
		return send_section(a, out, out_http, e);
	if (a->rest.len && str_eq(a->what, STR("source")))
		return send_source(a, out, e);
	return err_set(
		e, E_NOTFOUND, "expected executable, debuginfo, source/PATH or section/NAME");
}

/* ---- /metadata ---- */

static void put_result(
	const struct asked *a, enum debuginfo_type type, bool *io_first, struct buf *b)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct err ignored = { 0 };
	bool debug = type == DEBUGINFO_DEBUG;
	if (open_file(a, type, &fd, &ignored) != OK)
		return;
	buf_printf(b, "%s{\"type\":\"%s\",\"buildid\":\"%s\",\"file\":\"%s%s\"}",
		*io_first ? "" : ",", debug ? "debuginfo" : "executable", a->build_id, a->build_id,
		debug ? ".debug" : "");
	*io_first = false;
}

/* Files are known by their build id here, not by their path. So the answer to a query by path is
 * empty, and not "complete": there may be such files. */
static enum status metadata(struct asked *a, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena arena;
	struct str key = STR(""), value = STR("");
	bool first = true;
	arena_init(&arena, METADATA_ARENA_BYTES);
	(void)net_query_param(a->r, "key", 0, &arena, &key);
	(void)net_query_param(a->r, "value", 0, &arena, &value);
	bool by_id = str_eq(key, STR("buildid"));
	if (!by_id && !str_eq(key, STR("file")) && !str_eq(key, STR("glob")))
		return err_set(e, E_INVALID, "key: buildid, file or glob is expected");
	enum status s = server_tenant(a->s, a->r, &a->tenant, e);
	if (s == OK && by_id)
		s = take_id(a, value, e);
	if (s != OK)
		return s;
	buf_cstr(out, "{\"results\":[");
	if (by_id) {
		put_result(a, DEBUGINFO_EXECUTABLE, &first, out);
		put_result(a, DEBUGINFO_DEBUG, &first, out);
	}
	buf_printf(out, "],\"complete\":%s}", by_id ? "true" : "false");
	return buf_status(out);
}

void server_debuginfod_metadata(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct asked a = { .s = ctx, .r = r };
	struct err e = { 0 };
	if (!server_is_ready(a.s, out))
		return;
	out->content_type = "application/json";
	enum status s = metadata(&a, &out->body, &e);
	if (s != OK)
		net_fail(out, s, &e);
}

void server_debuginfod(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct asked a = { .s = ctx, .r = r, .stream = stream };
	struct err e = { 0 };
	int http_status = 0;
	if (!server_is_ready(a.s, out))
		return;
	enum status s;
	if (atomic_fetch_add(&a.s->downloads, 1) >= SERVER_DOWNLOADS_MAX)
		s = err_set(&e, E_UNAVAILABLE, "%d files are being sent: try again",
			SERVER_DOWNLOADS_MAX);
	else
		s = answer(&a, out, &http_status, &e);
	atomic_fetch_sub(&a.s->downloads, 1);
	metric_add(s == OK ? &a.s->metrics.debuginfod_sent : &a.s->metrics.debuginfod_refused, 1);
	if (s == OK)
		return;
	net_fail(out, s, &e);
	if (http_status)
		out->http_status = http_status;
}
