/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One easy handle, set up anew for each call, in one multi handle that keeps the connection. The
 * multi handle is driven by our own loop (drive()), since only this allows to end a call by a
 * descriptor, and to give up a silent peer.
 *
 * An answer without an end is the same call, left unfinished: `under_way`. Bytes that the caller
 * has not taken yet wait in `body`; above FETCH_PIECE_MAX the transfer is paused.
 */
#include "fetch/fetch.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "fetch/curl.h"
#include "os/os.h"

#define PEM_BYTES_MAX ((size_t)8 << 20)
#define LOOK_MS 200 /* how often a transfer without progress is checked */

struct kept_header {
	char *name, *line;
};

struct fetch {
	const struct curl_functions *curl;
	struct fetch_config config;
	char name[300];        /* the caller's name of the server, for messages */
	char base[512];        /* "https://host:port"; "": calls give URLs */
	char socket_path[128]; /* "": none */
	bool is_local;         /* this host: no proxy */
	CURL *easy;
	CURLM *multi;
	bool under_way; /* `easy` is in `multi` */
	struct kept_header headers[FETCH_HEADERS_MAX];
	size_t header_count;
	const struct fetch_signature *signature; /* NULL */
	size_t answer_max;
	int wake_fd;         /* -1: none */
	int64_t patience_ns; /* 0: none */
	/* of the call */
	bool streams, stream_ended, paused, head_is_whole, too_long, head_too_long;
	enum status stream_status; /* how it failed */
	struct err stream_err;
	struct buf body;
	size_t head_bytes;
	struct curl_slist *lines;
	char why[CURL_ERROR_SIZE];
	char content_type[128];
	fetch_piece_fn *next;
	void *next_ctx;
	struct str piece;
	bool pieces_end;
	enum status piece_status;
	struct err piece_err;
};

/* ---- addresses ---- */

static bool is_this_host(struct str host)
{
	static const char *const names[] = { "localhost", "[::1]" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(host, str_of(names[i])))
			return true;
	return str_starts(host, STR("127."));
}

/* The host, without a user and password, which are not shown. */
static struct str host_of(struct str url)
{
	struct str rest = url;
	if (str_starts(rest, STR("https://")) || str_starts(rest, STR("http://")))
		rest = str_sub(rest, str_index(rest, '/') + 2, rest.len);
	rest = str_sub(rest, 0, str_index(rest, '/'));
	size_t at = str_rindex(rest, '@');
	if (at < rest.len)
		rest = str_sub(rest, at + 1, rest.len);
	if (rest.len && rest.p[0] == '[')
		return str_sub(rest, 0, str_index(rest, ']') + 1);
	return str_sub(rest, 0, str_index(rest, ':'));
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("@?#\\", s.p[i]))
			return false;
	return s.len > 0;
}

/* Whether the text is a host, with or without ":" and a port. */
static bool names_host(struct str s)
{
	struct str host = host_of(s);
	if (!is_plain(s) || !host.len)
		return false;
	for (size_t i = host.len + 1; i < s.len; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return true;
}

static enum status take_unix(struct fetch *f, struct str path, struct err *e)
{
	if (!path.len || path.len >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(e, E_INVALID, "unix: path must have 1 to %zu bytes",
			sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	snprintf(f->socket_path, sizeof(f->socket_path), "%.*s", STR_ARG(path));
	snprintf(f->base, sizeof(f->base), "http://localhost");
	f->is_local = true;
	return OK;
}

static enum status take_address(struct fetch *f, const char *address, struct err *e)
{
	const char *colon = strstr(address, "://");
	const char *at = strrchr(address, '@');
	const char *shown = at ? at + 1 : address; /* a password may be before it */
	struct str rest = str_of(address);
	snprintf(f->name, sizeof(f->name), "%s", address);
	if (str_starts(rest, STR("unix:")))
		return take_unix(f, str_sub(rest, 5, rest.len), e);
	const char *scheme = str_starts(rest, STR("https://")) ? "https://" : "http://";
	bool is_known = !colon || str_starts(rest, str_of(scheme));
	rest = str_of(colon ? colon + 3 : address);
	rest = str_sub(rest, 0, str_index(rest, '/'));
	/* Checked before any message shows the address. */
	if (str_index(rest, '@') < rest.len)
		return err_set(e, E_INVALID, "address of %.*s: no user or password goes into it",
			STR_ARG(host_of(rest)));
	if (!is_known)
		return err_set(
			e, E_INVALID, "address \"%s\": only http:// and https:// are known", shown);
	if (!names_host(rest))
		return err_set(e, E_INVALID,
			"address \"%s\" names no host, or its port is no number", shown);
	if (rest.len + strlen(scheme) >= sizeof(f->base))
		return err_set(e, E_LIMIT, "address \"%.60s…\" is too long", shown);
	snprintf(f->base, sizeof(f->base), "%s%.*s", scheme, STR_ARG(rest));
	f->is_local = is_this_host(host_of(rest));
	return OK;
}

/* ---- life ---- */

enum status fetch_new(const struct fetch_config *c, struct fetch **out, struct err *e)
{
	struct fetch *f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(e, E_NOMEM, "fetch");
	f->config = *c;
	f->answer_max = FETCH_ANSWER_MAX;
	f->wake_fd = -1;
	enum status s = c->address ? take_address(f, c->address, e) : OK;
	if (s == OK)
		s = curl_load(&f->curl, e);
	if (s == OK) {
		f->easy = f->curl->easy_init();
		f->multi = f->curl->multi_init();
		if (!f->easy || !f->multi)
			s = err_set(e, E_NOMEM, "fetch");
	}
	if (s != OK) {
		fetch_free(f);
		return s;
	}
	*out = f;
	return OK;
}

static void stop(struct fetch *f)
{
	if (f->under_way)
		(void)f->curl->multi_remove_handle(f->multi, f->easy);
	f->under_way = false;
	if (f->lines)
		f->curl->slist_free_all(f->lines);
	f->lines = NULL;
	f->next = NULL;
	buf_deinit(&f->body);
}

static void drop_header(struct fetch *f, size_t i)
{
	explicit_bzero(f->headers[i].line, strlen(f->headers[i].line));
	free(f->headers[i].name);
	free(f->headers[i].line);
	f->headers[i] = f->headers[--f->header_count];
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	stop(f);
	if (f->easy)
		f->curl->easy_cleanup(f->easy);
	if (f->multi)
		(void)f->curl->multi_cleanup(f->multi);
	while (f->header_count)
		drop_header(f, 0);
	free(f);
}

void fetch_trust(struct fetch *f, const char *ca_file, bool anybody)
{
	f->config.ca_file = ca_file;
	f->config.trust_anybody = anybody;
}

void fetch_sign(struct fetch *f, const struct fetch_signature *signature)
{
	f->signature = signature;
}

void fetch_limit(struct fetch *f, size_t answer_bytes_max)
{
	f->answer_max = MIN(answer_bytes_max, FETCH_ANSWER_MAX);
}

void fetch_interrupt(struct fetch *f, int wake_fd, int64_t patience_ns)
{
	f->wake_fd = wake_fd;
	f->patience_ns = patience_ns;
}

const char *fetch_content_type(const struct fetch *f)
{
	return f->content_type;
}

/* ---- headers ---- */

static bool name_ok(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return false;
	return name[0] != 0;
}

static bool value_ok(const char *value)
{
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7F)
			return false;
	return true;
}

enum status fetch_header(struct fetch *f, const char *name, const char *value, struct err *e)
{
	for (size_t i = 0; i < f->header_count; i++)
		if (strcasecmp(f->headers[i].name, name) == 0)
			drop_header(f, i--);
	if (!value)
		return OK;
	if (!name_ok(name) || !value_ok(value))
		return err_set(e, E_INVALID, "\"%s\" is no header", name);
	if (f->header_count == FETCH_HEADERS_MAX)
		return err_set(e, E_LIMIT, "more than %d headers", FETCH_HEADERS_MAX);
	size_t size = strlen(name) + strlen(value) + 3;
	struct kept_header h = { strdup(name), malloc(size) };
	if (!h.name || !h.line) {
		free(h.name);
		free(h.line);
		return err_set(e, E_NOMEM, "header");
	}
	/* libcurl sends an empty header for "name;". */
	snprintf(h.line, size, value[0] ? "%s: %s" : "%s;", name, value);
	f->headers[f->header_count++] = h;
	return OK;
}

/* ---- what libcurl calls ---- */

static size_t on_body(char *bytes, size_t one, size_t len, void *ctx)
{
	struct fetch *f = ctx;
	(void)one;
	if (f->streams && f->body.len && f->body.len + len > FETCH_PIECE_MAX) {
		f->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	buf_put(&f->body, bytes, len);
	f->too_long = f->body.failed && !f->body.no_memory;
	return f->body.failed ? 0 : len;
}

static size_t on_head(char *bytes, size_t one, size_t len, void *ctx)
{
	struct fetch *f = ctx;
	long code = 0;
	(void)one;
	f->head_bytes += len;
	f->head_too_long = f->head_bytes > FETCH_HEAD_BYTES_MAX;
	if (f->head_too_long)
		return 0;
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &code);
	if (len && (bytes[0] == '\r' || bytes[0] == '\n') && code >= 200)
		f->head_is_whole = true;
	return len;
}

static size_t on_pieces(char *to, size_t one, size_t max, void *ctx)
{
	struct fetch *f = ctx;
	(void)one;
	while (!f->piece.len && !f->pieces_end) {
		f->piece_status = f->next(f->next_ctx, &f->piece, &f->pieces_end, &f->piece_err);
		if (f->piece_status != OK)
			return CURL_READFUNC_ABORT;
	}
	if (f->pieces_end)
		return 0;
	size_t n = MIN(max, f->piece.len);
	memcpy(to, f->piece.p, n);
	f->piece = str_sub(f->piece, n, f->piece.len);
	return n;
}

/* Makes sockets with O_CLOEXEC; libcurl's own would be inherited by started programs. */
static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	(void)ctx;
	(void)purpose;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* ---- setting a call up ---- */

#define SET(f, option, value) ((void)(f)->curl->easy_setopt((f)->easy, CURLOPT_##option, value))

/* Sets an option to a PEM text or the content of a file; nothing if there is neither. */
static enum status set_pem(
	struct fetch *f, CURLoption option, const char *text, const char *path, struct err *e)
{
	CLEANUP(buf_deinit) struct buf pem;
	struct err why = { 0 };
	buf_init(&pem, PEM_BYTES_MAX);
	if (text) {
		struct curl_blob given = { (void *)(uintptr_t)text, strlen(text), CURL_BLOB_COPY };
		return f->curl->easy_setopt(f->easy, option, &given) == CURLE_OK
			       ? OK
			       : err_set(e, E_NOMEM, "certificate");
	}
	if (!path)
		return OK;
	enum status s = os_read_own(path, &pem, NULL, &why);
	if (s != OK) /* the user can mend the file */
		return err_set(e, E_UNAVAILABLE, "%s", err_text(&why, s));
	struct curl_blob blob = { pem.data, pem.len, CURL_BLOB_COPY };
	bool ok = pem.len && f->curl->easy_setopt(f->easy, option, &blob) == CURLE_OK;
	explicit_bzero(pem.data, pem.len);
	return ok ? OK : err_set(e, E_UNAVAILABLE, "%s is empty", path);
}

static enum status set_tls(struct fetch *f, const char *url, struct err *e)
{
	const struct fetch_config *c = &f->config;
	/* A redirect may lead to https. */
	bool may_need_it = c->follow_redirects || str_starts(str_of(url), STR("https://"));
	const char *ca_file = c->ca_file    ? c->ca_file
			      : may_need_it ? getenv("SSL_CERT_FILE")
					    : NULL;
	enum status s = OK;
	SET(f, SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(f, SSL_VERIFYPEER, c->trust_anybody ? 0L : 1L);
	SET(f, SSL_VERIFYHOST, c->trust_anybody ? 0L : 2L);
	if ((c->ca || (ca_file && ca_file[0])) && !c->trust_anybody) {
		SET(f, CAPATH, NULL);
		s = set_pem(f, CURLOPT_CAINFO_BLOB, c->ca, ca_file, e);
	}
	if (s == OK)
		s = set_pem(f, CURLOPT_SSLCERT_BLOB, c->cert, c->cert_file, e);
	if (s == OK)
		s = set_pem(f, CURLOPT_SSLKEY_BLOB, c->key, c->key_file, e);
	return s;
}

/* drive() limits the time. */
static void set_limits(struct fetch *f)
{
	SET(f, NOSIGNAL, 1L);
	SET(f, QUICK_EXIT, 1L); /* do not wait for a resolver that hangs */
	SET(f, PROTOCOLS_STR, "http,https");
	SET(f, REDIR_PROTOCOLS_STR, "http,https");
	SET(f, FOLLOWLOCATION, f->config.follow_redirects ? 1L : 0L);
	SET(f, MAXREDIRS, (long)FETCH_REDIRECTS_MAX);
	SET(f, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(f, CONNECTTIMEOUT, 3600L); /* not libcurl's 5 minutes */
	if (!f->streams)
		SET(f, MAXFILESIZE_LARGE, (curl_off_t)f->answer_max);
}

static void set_way(struct fetch *f, const char *url)
{
	bool local = f->base[0] ? f->is_local : is_this_host(host_of(str_of(url)));
	SET(f, URL, url);
	SET(f, PATH_AS_IS, 1L);
	if (f->socket_path[0])
		SET(f, UNIX_SOCKET_PATH, f->socket_path);
	if (f->config.proxy_url)
		SET(f, PROXY, f->config.proxy_url);
	else if (local)
		SET(f, PROXY, "");
	if (f->config.no_proxy)
		SET(f, NOPROXY, f->config.no_proxy);
}

static void set_callbacks(struct fetch *f)
{
	SET(f, WRITEFUNCTION, on_body);
	SET(f, WRITEDATA, f);
	SET(f, HEADERFUNCTION, on_head);
	SET(f, HEADERDATA, f);
	SET(f, OPENSOCKETFUNCTION, on_socket);
	SET(f, ERRORBUFFER, f->why);
}

static bool add_line(struct fetch *f, const char *line)
{
	struct curl_slist *longer = f->curl->slist_append(f->lines, line);
	if (longer)
		f->lines = longer;
	return longer;
}

static enum status set_headers(struct fetch *f, const char *content_type, struct err *e)
{
	char line[256];
	/* Do not wait for "100 Continue". (With a signature, libcurl 7.88 would sign this line, but
	 * not send it.) */
	bool ok = f->signature || add_line(f, "Expect:");
	if (content_type) {
		snprintf(line, sizeof(line), "Content-Type: %s", content_type);
		ok = ok && add_line(f, line);
	}
	for (size_t i = 0; ok && i < f->header_count; i++)
		ok = add_line(f, f->headers[i].line);
	SET(f, USERAGENT, "firn/" FIRN_VERSION);
	SET(f, HTTPHEADER, f->lines);
	return ok ? OK : err_set(e, E_NOMEM, "headers");
}

static enum status set_signature(struct fetch *f, struct err *e)
{
	const struct fetch_signature *g = f->signature;
	if (!g)
		return OK;
	bool ok = f->curl->easy_setopt(f->easy, CURLOPT_AWS_SIGV4, g->scope) == CURLE_OK &&
		  f->curl->easy_setopt(f->easy, CURLOPT_USERNAME, g->key_id) == CURLE_OK &&
		  f->curl->easy_setopt(f->easy, CURLOPT_PASSWORD, g->secret) == CURLE_OK;
	return ok ? OK : err_set(e, E_UNSUPPORTED, "this libcurl does not sign for Amazon");
}

/* Sets the options common to all calls. */
static enum status prepare(
	struct fetch *f, bool streams, const char *target, const char *content_type, struct err *e)
{
	char url[FETCH_URL_MAX];
	stop(f);
	f->curl->easy_reset(f->easy);
	f->streams = streams;
	f->stream_ended = f->paused = f->head_is_whole = f->too_long = f->head_too_long =
		f->pieces_end = false;
	f->piece_status = f->stream_status = OK;
	f->piece_err = (struct err){ 0 };
	f->piece = STR("");
	f->head_bytes = 0;
	f->why[0] = f->content_type[0] = 0;
	buf_init(&f->body, streams ? FETCH_PIECE_MAX + CURL_MAX_WRITE_SIZE : f->answer_max);
	if (!value_ok(target) || strchr(target, ' '))
		return err_set(e, E_INVALID, "malformed request target");
	int len = snprintf(url, sizeof(url), "%s%s", f->base, target);
	if (len < 0 || (size_t)len >= sizeof(url))
		return err_set(e, E_LIMIT, "a URL of more than %zu bytes", FETCH_URL_MAX);
	set_way(f, url);
	set_limits(f);
	set_callbacks(f);
	enum status s = set_headers(f, content_type, e);
	if (s == OK)
		s = set_signature(f, e);
	return s == OK ? set_tls(f, url, e) : s;
}

/* ---- running it ---- */

static int64_t deadline_of(int64_t timeout_ns)
{
	int64_t at;
	return timeout_ns <= 0 || __builtin_add_overflow(clock_monotonic_ns(), timeout_ns, &at)
		       ? INT64_MAX
		       : at;
}

/* The server's name for messages. */
static const char *server_of(struct fetch *f, char out[300])
{
	char *url = NULL;
	if (f->name[0])
		return f->name;
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_EFFECTIVE_URL, &url);
	struct str host = host_of(str_of(url ? url : ""));
	snprintf(out, 300, "%.*s", STR_ARG(str_sub(host, 0, 255)));
	return out;
}

static enum status status_of(const struct fetch *f, CURLcode code)
{
	if (f->too_long || f->head_too_long)
		return E_LIMIT;
	switch (code) {
	case CURLE_OK:
		return OK;
	case CURLE_FILESIZE_EXCEEDED:
	case CURLE_TOO_MANY_REDIRECTS:
		return E_LIMIT;
	case CURLE_OUT_OF_MEMORY:
		return E_NOMEM;
	case CURLE_OPERATION_TIMEDOUT:
		return E_TIMEOUT;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_HTTP2:
		return E_INVALID;
	default:
		return E_UNAVAILABLE;
	}
}

/* The same message as in net/tls.c; OpenSSL takes the first bytes of plain HTTP for a version of
 * TLS. */
static const char *why_not(struct fetch *f, CURLcode code)
{
	if (code == CURLE_SSL_CONNECT_ERROR && strstr(f->why, "wrong version number"))
		return "TLS: the other side does not speak it";
	/* libcurl's message goes on with the whole address, which may have a password. */
	if (strncmp(f->why, "Unsupported proxy", 17) == 0)
		return "libcurl cannot use the address of the proxy";
	/* Without " after 3 ms": a caller that logs a repeated failure once compares the text. */
	char *after = code == CURLE_COULDNT_CONNECT ? strstr(f->why, " after ") : NULL;
	const char *rest = after ? strchr(after, ':') : NULL;
	if (rest)
		memmove(after, rest, strlen(rest) + 1);
	return f->why[0] ? f->why : f->curl->easy_strerror(code);
}

static enum status judge(struct fetch *f, CURLcode code, struct err *e)
{
	char server[300];
	if (f->piece_status != OK)
		return err_set(e, f->piece_status, "%s", f->piece_err.text);
	if (f->body.no_memory)
		return err_set(e, E_NOMEM, "answer");
	/* libcurl returns this for a header line of more than 100 KiB. */
	f->head_too_long |= code == CURLE_OUT_OF_MEMORY && !f->head_is_whole;
	enum status s = status_of(f, code);
	if (s == OK)
		return OK;
	if (f->too_long || code == CURLE_FILESIZE_EXCEEDED)
		return err_set(e, s, "%s: the answer is longer than %zu bytes",
			server_of(f, server), f->answer_max);
	if (f->head_too_long)
		return err_set(e, s, "%s: the answer's headers are longer than %zu bytes",
			server_of(f, server), FETCH_HEAD_BYTES_MAX);
	return err_set(e, s, "%s: %s", server_of(f, server), why_not(f, code));
}

/* A number that changes whenever bytes were received or sent. */
static uint64_t progress(struct fetch *f)
{
	curl_off_t up = 0, down = 0, connected = 0, tls = 0;
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_SIZE_UPLOAD_T, &up);
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_CONNECT_TIME_T, &connected);
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_APPCONNECT_TIME_T, &tls);
	return (uint64_t)up + (uint64_t)down + f->head_bytes + (connected > 0) + (tls > 0);
}

static bool is_over(struct fetch *f, CURLcode *out)
{
	CURLMsg *m;
	int left;
	while ((m = f->curl->multi_info_read(f->multi, &left))) {
		if (m->msg == CURLMSG_DONE) {
			*out = m->data.result;
			return true;
		}
	}
	return false;
}

static enum status wait_a_little(struct fetch *f, int wake_fd, int64_t left_ns, struct err *e)
{
	struct curl_waitfd wake = { .fd = wake_fd, .events = CURL_WAIT_POLLIN };
	int64_t ms = MIN(left_ns / NS_PER_MS + 1, (int64_t)LOOK_MS);
	CURLMcode code = f->curl->multi_poll(
		f->multi, wake_fd >= 0 ? &wake : NULL, wake_fd >= 0, (int)ms, NULL);
	if (code != CURLM_OK)
		return err_set(e, E_IO, "%s", f->curl->multi_strerror(code));
	return wake.revents ? err_set(e, E_CANCELED, "woken") : OK;
}

enum until { UNTIL_END, UNTIL_HEAD, UNTIL_BYTES };

static bool is_enough(const struct fetch *f, enum until until)
{
	return (until == UNTIL_HEAD && f->head_is_whole) || (until == UNTIL_BYTES && f->body.len);
}

/* Runs the transfer until `until`. *out_end: the answer is complete. */
static enum status drive(struct fetch *f, enum until until, int wake_fd, int64_t patience_ns,
	int64_t deadline_ns, bool *out_end, struct err *e)
{
	uint64_t before = progress(f);
	int64_t patient_ns = patience_ns ? clock_monotonic_ns() + patience_ns : INT64_MAX;
	*out_end = false;
	for (;;) {
		int running;
		CURLcode result;
		CURLMcode code = f->curl->multi_perform(f->multi, &running);
		if (code != CURLM_OK)
			return err_set(e, E_IO, "%s", f->curl->multi_strerror(code));
		if (is_over(f, &result)) {
			*out_end = true;
			return judge(f, result, e);
		}
		if (is_enough(f, until))
			return OK;
		int64_t now = clock_monotonic_ns();
		if (patience_ns && progress(f) != before) {
			before = progress(f);
			patient_ns = now + patience_ns;
		}
		int64_t left = MIN(deadline_ns, patient_ns) - now;
		if (left <= 0) {
			char server[300];
			return err_set(e, E_TIMEOUT, "%s: no answer in time", server_of(f, server));
		}
		enum status s = wait_a_little(f, wake_fd, left, e);
		if (s != OK)
			return s;
	}
}

static enum status start(struct fetch *f, struct err *e)
{
	CURLMcode code = f->curl->multi_add_handle(f->multi, f->easy);
	if (code != CURLM_OK)
		return err_set(e, E_NOMEM, "%s", f->curl->multi_strerror(code));
	f->under_way = true;
	return OK;
}

static void take_head(struct fetch *f, int *out_http_status)
{
	long code = 0;
	char *type = NULL;
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &code);
	(void)f->curl->easy_getinfo(f->easy, CURLINFO_CONTENT_TYPE, &type);
	snprintf(f->content_type, sizeof(f->content_type), "%s", type ? type : "");
	*out_http_status = (int)code;
}

/* ---- the calls ---- */

static enum status run(struct fetch *f, enum status prepared, int64_t timeout_ns,
	int *out_http_status, struct buf *out, struct err *e)
{
	bool end;
	enum status s = prepared == OK ? start(f, e) : prepared;
	if (s == OK)
		s = drive(
			f, UNTIL_END, f->wake_fd, f->patience_ns, deadline_of(timeout_ns), &end, e);
	if (s == OK) {
		buf_str(out, buf_view(&f->body));
		s = buf_status(out);
	}
	if (s == OK)
		take_head(f, out_http_status);
	stop(f);
	return s;
}

enum status fetch_get(struct fetch *f, const char *target, int64_t timeout_ns, int *out_http_status,
	struct buf *out, struct err *e)
{
	return run(f, prepare(f, false, target, NULL, e), timeout_ns, out_http_status, out, e);
}

enum status fetch_post(struct fetch *f, const char *target, const char *content_type,
	struct str body, int64_t timeout_ns, int *out_http_status, struct buf *out, struct err *e)
{
	const char *type = content_type ? content_type : "application/octet-stream";
	enum status s = prepare(f, false, target, type, e);
	SET(f, POST, 1L);
	SET(f, POSTFIELDS, body.len ? body.p : "");
	SET(f, POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	return run(f, s, timeout_ns, out_http_status, out, e);
}

enum status fetch_put(struct fetch *f, const char *target, uint64_t bytes, fetch_piece_fn *next,
	void *ctx, int64_t timeout_ns, int *out_http_status, struct buf *out, struct err *e)
{
	enum status s = prepare(f, false, target, NULL, e);
	f->next = next;
	f->next_ctx = ctx;
	SET(f, UPLOAD, 1L);
	SET(f, INFILESIZE_LARGE, (curl_off_t)bytes);
	SET(f, READFUNCTION, on_pieces);
	SET(f, READDATA, f);
	/* A kept connection may be gone, and the pieces cannot be sent again. */
	SET(f, FRESH_CONNECT, 1L);
	SET(f, FORBID_REUSE, 1L);
	return run(f, s, timeout_ns, out_http_status, out, e);
}

/* Keeps a stream's failure, which is returned after the bytes that came before it. */
static void keep_failure(struct fetch *f, enum status s, const struct err *why)
{
	if (s == OK)
		return;
	f->stream_ended = true;
	f->stream_status = s;
	f->stream_err = *why;
}

enum status fetch_begin(struct fetch *f, const char *target, int64_t timeout_ns,
	int *out_http_status, struct err *e)
{
	struct err why = { 0 };
	enum status s = prepare(f, true, target, NULL, e);
	if (s == OK)
		s = start(f, e);
	if (s != OK)
		return s;
	s = drive(f, UNTIL_HEAD, f->wake_fd, f->patience_ns, deadline_of(timeout_ns),
		&f->stream_ended, &why);
	if (s != OK && !f->head_is_whole) {
		stop(f);
		return err_set(e, s, "%s", why.text);
	}
	keep_failure(f, s, &why);
	take_head(f, out_http_status);
	return OK;
}

/* Gives the waiting bytes to the caller, and continues the transfer. */
static enum status hand_over(struct fetch *f, struct buf *out)
{
	buf_str(out, buf_view(&f->body));
	buf_clear(&f->body);
	if (f->paused) {
		f->paused = false;
		(void)f->curl->easy_pause(f->easy, CURLPAUSE_CONT);
	}
	return buf_status(out);
}

enum status fetch_more(struct fetch *f, int wake_fd, int64_t timeout_ns, struct buf *out,
	bool *out_end, struct err *e)
{
	*out_end = false;
	if (!f->under_way)
		return err_set(e, E_UNAVAILABLE, "no answer is under way");
	enum status s = OK;
	struct err why = { 0 };
	if (!f->body.len && !f->stream_ended)
		s = drive(f, UNTIL_BYTES, wake_fd, 0, deadline_of(timeout_ns), &f->stream_ended,
			&why);
	if (s == E_TIMEOUT || s == E_CANCELED)
		return err_set(e, s, "%s", why.text);
	keep_failure(f, s, &why);
	s = f->body.len ? hand_over(f, out)
			: err_set(e, f->stream_status, "%s", f->stream_err.text);
	*out_end = s == OK && f->stream_ended && !f->body.len && f->stream_status == OK;
	if (s != OK || *out_end)
		stop(f);
	return s;
}
