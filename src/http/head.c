/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head is collected up to its blank line and then parsed once. Every line must end in CRLF.
 * This is checked while lines are searched for, so that the result does not depend on how the bytes
 * were cut into reads. Source: RFC 9112 sections 2 to 6; tests/http/test_head.c lists what is
 * refused beyond these.
 */
#include "http/head.h"

#define METHOD_BYTES_MAX 32
#define LENGTH_DIGITS_MAX 18

/* clang-format off */
static const bool token_byte[256] = {
	['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1,
	['-'] = 1, ['.'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1, ['~'] = 1,
	['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};
/* uri-host and port, RFC 3986 3.2.2 and 3.2.3; without user information */
static const bool host_byte[256] = {
	['!'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['('] = 1, [')'] = 1, ['*'] = 1,
	['+'] = 1, [','] = 1, ['-'] = 1, ['.'] = 1, [':'] = 1, [';'] = 1, ['='] = 1, ['['] = 1,
	[']'] = 1, ['_'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};
/* clang-format on */

static bool value_byte(uint8_t c)
{
	return c >= 0x20 ? c != 0x7F : c == '\t';
}

bool http_value_ok(struct str value)
{
	for (size_t i = 0; i < value.len; i++)
		if (!value_byte((uint8_t)value.p[i]))
			return false;
	return true;
}

size_t http_head_find_end(const uint8_t *p, size_t len, size_t *scanned, int *out_refuse)
{
	size_t limit = MIN(len, (size_t)HTTP_HEAD_BYTES_MAX);
	size_t at = *scanned;
	*out_refuse = 0;
	while (at < limit) {
		const uint8_t *lf = memchr(p + at, '\n', limit - at);
		if (!lf)
			break;
		size_t i = (size_t)(lf - p);
		if (i == 0 || p[i - 1] != '\r') {
			*out_refuse = 400;
			return 0;
		}
		if (i == 1 || p[i - 2] == '\n')
			return i + 1;
		at = i + 1;
	}
	*scanned = limit;
	if (len >= HTTP_HEAD_BYTES_MAX)
		*out_refuse = 431;
	return 0;
}

/* A parser's position in a head. The head ends with CRLFCRLF, so the next byte may be read until
 * the last CR is consumed. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	const char **why;
};

static int refuse(struct cursor *c, int http_status, const char *why)
{
	*c->why = why;
	return http_status;
}

static bool take(struct cursor *c, struct str text)
{
	if ((size_t)(c->end - c->at) < text.len || memcmp(c->at, text.p, text.len) != 0)
		return false;
	c->at += text.len;
	return true;
}

static struct str take_while(struct cursor *c, const bool table[256])
{
	const uint8_t *begin = c->at;
	while (c->at < c->end && table[*c->at])
		c->at++;
	return str_make(begin, (size_t)(c->at - begin));
}

static bool host_ok(struct str host)
{
	for (size_t i = 0; i < host.len; i++)
		if (!host_byte[(uint8_t)host.p[i]])
			return false;
	return true;
}

/* Splits "http://host/path" into its authority and "/path". */
static bool cut_absolute(struct str target, struct http_head *out)
{
	struct str rest = target;
	if (target.len > 7 && str_eq_nocase(str_sub(target, 0, 7), STR("http://")))
		rest = str_sub(target, 7, target.len);
	else if (target.len > 8 && str_eq_nocase(str_sub(target, 0, 8), STR("https://")))
		rest = str_sub(target, 8, target.len);
	else
		return false;
	size_t slash = str_index(rest, '/');
	if (slash == 0 || memchr(rest.p, '?', slash))
		return false;
	out->authority = str_sub(rest, 0, slash);
	out->target = slash < rest.len ? str_sub(rest, slash, rest.len) : STR("/");
	return host_ok(out->authority);
}

static bool target_byte(uint8_t c)
{
	return c > 0x20 && c < 0x7F && c != '#';
}

static int parse_request_line(struct cursor *c, struct http_head *out)
{
	out->method = take_while(c, token_byte);
	if (out->method.len == 0 || out->method.len > METHOD_BYTES_MAX || !take(c, STR(" ")))
		return refuse(c, 400, "malformed method");
	const uint8_t *begin = c->at;
	while (c->at < c->end && target_byte(*c->at))
		c->at++;
	out->target = str_make(begin, (size_t)(c->at - begin));
	if (out->target.len == 0 || !take(c, STR(" ")))
		return refuse(c, 400, "malformed request target");
	if (out->target.p[0] != '/' && !str_eq(out->target, STR("*")) &&
		!cut_absolute(out->target, out))
		return refuse(c, 400, "request target is neither a path nor an http URL");
	if (!take(c, STR("HTTP/")))
		return refuse(c, 400, "malformed request line");
	if (take(c, STR("1.1\r\n")))
		out->minor = 1;
	else if (!take(c, STR("1.0\r\n")))
		return refuse(c, 505, "only HTTP/1.0 and HTTP/1.1 are spoken in this form");
	return 0;
}

static int parse_header(struct cursor *c, struct http_head *out)
{
	if (out->header_count == HTTP_HEADERS_MAX)
		return refuse(c, 431, "too many headers");
	struct http_header *h = &out->headers[out->header_count++];
	h->name = take_while(c, token_byte);
	/* An empty name: obs-fold or a control byte. No colon directly behind it: a space. */
	if (h->name.len == 0 || !take(c, STR(":")))
		return refuse(c, 400, "malformed header name");
	const uint8_t *begin = c->at;
	while (value_byte(*c->at))
		c->at++;
	h->value = str_make(begin, (size_t)(c->at - begin));
	while (h->value.len && (h->value.p[0] == ' ' || h->value.p[0] == '\t'))
		h->value = str_sub(h->value, 1, h->value.len);
	while (h->value.len && strchr(" \t", h->value.p[h->value.len - 1]))
		h->value.len--;
	if (!take(c, STR("\r\n")))
		return refuse(c, 400, "control byte in a header value");
	return 0;
}

static int parse_length(struct cursor *c, struct str value, struct http_head *out)
{
	if (out->content_length >= 0)
		return refuse(c, 400, "Content-Length given twice");
	if (value.len == 0 || value.len > LENGTH_DIGITS_MAX)
		return refuse(c, 400, "malformed Content-Length");
	int64_t n = 0;
	for (size_t i = 0; i < value.len; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return refuse(c, 400, "malformed Content-Length");
		n = n * 10 + (value.p[i] - '0');
	}
	out->content_length = n;
	return 0;
}

struct framing {
	uint32_t hosts;
	uint32_t codings;
	bool close;
	bool keep;
};

/* Notes the headers that say where the message ends and whether another follows. */
static int note_header(
	struct cursor *c, const struct http_header *h, struct framing *f, struct http_head *out)
{
	if (str_eq_nocase(h->name, STR("host"))) {
		if (!host_ok(h->value))
			return refuse(c, 400, "malformed Host");
		if (out->authority.len == 0)
			out->authority = h->value;
		f->hosts++;
	} else if (str_eq_nocase(h->name, STR("content-length"))) {
		return parse_length(c, h->value, out);
	} else if (str_eq_nocase(h->name, STR("transfer-encoding"))) {
		if (f->codings++)
			return refuse(c, 400, "Transfer-Encoding given twice");
		if (!str_eq_nocase(h->value, STR("chunked")))
			return refuse(c, 501, "the only transfer coding is chunked");
		out->chunked = true;
	} else if (str_eq_nocase(h->name, STR("connection"))) {
		f->close |= http_list_has(h->value, "close");
		f->keep |= http_list_has(h->value, "keep-alive");
	} else if (str_eq_nocase(h->name, STR("expect"))) {
		if (!str_eq_nocase(h->value, STR("100-continue")))
			return refuse(c, 417, "the only expectation is 100-continue");
		out->expect_continue = out->minor > 0;
	}
	return 0;
}

static int parse_headers(struct cursor *c, struct framing *f, struct http_head *out)
{
	out->content_length = -1;
	while (*c->at != '\r') {
		int refused = parse_header(c, out);
		if (!refused)
			refused = note_header(c, &out->headers[out->header_count - 1], f, out);
		if (refused)
			return refused;
	}
	if (!take(c, STR("\r\n")) || c->at != c->end)
		return refuse(c, 400, "control byte between headers");
	if (out->chunked && (out->content_length >= 0 || out->minor == 0))
		return refuse(c, 400, "Transfer-Encoding with Content-Length or in HTTP/1.0");
	out->keep_alive = !f->close && (out->minor > 0 || f->keep);
	return 0;
}

int http_head_parse_request(const uint8_t *p, size_t len, struct http_head *out, const char **why)
{
	struct cursor c = { p, p + len, why };
	struct framing f = { 0 };
	out->method = out->target = out->authority = str_make(NULL, 0);
	out->minor = 0;
	out->header_count = 0;
	out->chunked = out->keep_alive = out->expect_continue = false;
	int refused = parse_request_line(&c, out);
	if (!refused)
		refused = parse_headers(&c, &f, out);
	if (refused)
		return refused;
	if (f.hosts > 1 || (out->minor > 0 && f.hosts == 0))
		return refuse(&c, 400, "exactly one Host header is required");
	return 0;
}
