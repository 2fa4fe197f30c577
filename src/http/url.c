/* SPDX-License-Identifier: Apache-2.0 */
/* Source: RFC 3986; the query as application/x-www-form-urlencoded (WHATWG URL, section 5). */
#include "http/http.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes into `out` (room for raw.len bytes); false on a bad escape. */
static bool decode(struct str raw, bool form, char *out, size_t *out_len)
{
	size_t n = 0;
	for (size_t i = 0; i < raw.len; i++) {
		char c = raw.p[i];
		if (c == '%') {
			if (raw.len - i < 3)
				return false;
			int high = hex_value(raw.p[i + 1]), low = hex_value(raw.p[i + 2]);
			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (form && c == '+') {
			c = ' ';
		}
		out[n++] = c;
	}
	*out_len = n;
	return true;
}

static bool segments_ok(struct str path)
{
	struct str rest = path, part;
	while (str_split(&rest, '/', &part))
		if (str_eq(part, STR(".")) || str_eq(part, STR("..")))
			return false;
	return true;
}

enum status http_target_parse(
	struct str target, char *out, struct str *out_path, struct str *out_query, struct err *e)
{
	size_t cut = str_index(target, '?');
	size_t len = 0;
	if (!decode(str_sub(target, 0, cut), false, out, &len))
		return err_set(e, E_INVALID, "bad %%-escape in the path");
	struct str path = str_make(out, len);
	if (len == 0 || path.p[0] != '/')
		return err_set(e, E_INVALID, "the path does not begin with /");
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)path.p[i] < 0x20 || path.p[i] == 0x7F)
			return err_set(e, E_INVALID, "control byte in the path");
	if (!segments_ok(path))
		return err_set(e, E_INVALID, "the path has . or .. in it");
	*out_path = path;
	*out_query = cut < target.len ? str_sub(target, cut + 1, target.len) : STR("");
	return OK;
}

bool http_query_find(struct str query, const char *key, size_t n, struct arena *a, struct str *out)
{
	struct str part, want = str_of(key);
	while (str_split(&query, '&', &part)) {
		size_t eq = str_index(part, '=');
		struct str name = str_sub(part, 0, eq);
		struct str value = eq < part.len ? str_sub(part, eq + 1, part.len) : STR("");
		char *text = ARENA_ARRAY(a, char, part.len + 1);
		size_t len;
		if (!text || !decode(name, true, text, &len))
			continue;
		if (!str_eq(str_make(text, len), want) || n-- > 0)
			continue;
		if (!decode(value, true, text, &len))
			return false;
		text[len] = 0;
		*out = str_make(text, len);
		return true;
	}
	return false;
}

static enum status bad_escape(struct str part, struct err *e)
{
	size_t eq = str_index(part, '=');
	return err_set(e, E_INVALID, "the parameter %.*s has a bad %%-escape: \"%.*s\"",
		STR_ARG(str_sub(part, 0, MIN(eq, (size_t)60))),
		STR_ARG(str_sub(part, MIN(eq + 1, part.len), 60)));
}

enum status http_query_next(struct str *query, struct arena *a, struct str *out_key,
	struct str *out_value, struct err *e)
{
	struct str part;
	if (!str_split(query, '&', &part))
		part = STR("");
	size_t eq = str_index(part, '='), key_len = 0, value_len = 0;
	char *key = ARENA_ARRAY(a, char, part.len + 2);
	if (!key)
		return err_set(e, arena_status(a), "parameters");
	if (!decode(str_sub(part, 0, eq), true, key, &key_len))
		return bad_escape(part, e);
	char *value = key + key_len + 1;
	if (eq < part.len && !decode(str_sub(part, eq + 1, part.len), true, value, &value_len))
		return bad_escape(part, e);
	*out_key = str_make(key, key_len);
	*out_value = str_make(value, value_len);
	return OK;
}

enum status http_query_check(struct str query, struct err *e)
{
	struct str part;
	while (str_split(&query, '&', &part))
		for (size_t i = 0; i < part.len; i++)
			if (part.p[i] == '%' && (part.len - i < 3 || hex_value(part.p[i + 1]) < 0 ||
							hex_value(part.p[i + 2]) < 0))
				return bad_escape(part, e);
	return OK;
}

/* ";q=0", ";q=0.0", … anywhere behind the token */
static bool weight_is_zero(struct str parameters)
{
	struct str part;
	while (str_split(&parameters, ';', &part)) {
		part = str_trim(part);
		double q;
		if (part.len >= 2 && (part.p[0] | 0x20) == 'q' && part.p[1] == '=' &&
			str_parse_double(str_sub(part, 2, part.len), &q) && q <= 0)
			return true;
	}
	return false;
}

bool http_list_has(struct str list, const char *token)
{
	struct str part;
	while (str_split(&list, ',', &part)) {
		size_t semicolon = str_index(part, ';');
		if (!str_eq_nocase(str_trim(str_sub(part, 0, semicolon)), str_of(token)))
			continue;
		return semicolon == part.len ||
		       !weight_is_zero(str_sub(part, semicolon + 1, part.len));
	}
	return false;
}

/* clang-format off */
static const struct { int http_status; const char *text; } reasons[] = {
	{ 200, "OK" },                     { 202, "Accepted" },
	{ 204, "No Content" },             { 301, "Moved Permanently" },
	{ 302, "Found" },                  { 303, "See Other" },
	{ 304, "Not Modified" },           { 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },     { 400, "Bad Request" },
	{ 401, "Unauthorized" },           { 403, "Forbidden" },
	{ 404, "Not Found" },              { 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },         { 408, "Request Timeout" },
	{ 409, "Conflict" },               { 411, "Length Required" },
	{ 412, "Precondition Failed" },    { 413, "Content Too Large" },
	{ 414, "URI Too Long" },           { 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },  { 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },  { 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 499, "Client Closed Request" },  { 500, "Internal Server Error" },
	{ 501, "Not Implemented" },        { 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },    { 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};
/* clang-format on */

const char *http_status_text(int http_status)
{
	for (size_t i = 0; i < ARRAY_COUNT(reasons); i++)
		if (reasons[i].http_status == http_status)
			return reasons[i].text;
	return "";
}
