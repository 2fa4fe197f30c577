/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX 4096

static enum log_level level_most = LOG_INFO;
static enum log_format line_format = LOG_LOGFMT;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

void log_configure(enum log_level most, enum log_format format)
{
	level_most = most;
	line_format = format;
}

bool log_parse_level(struct str s, enum log_level *out)
{
	for (unsigned i = 0; i < ARRAY_COUNT(level_names); i++) {
		if (!str_eq(s, str_of(level_names[i])))
			continue;
		*out = (enum log_level)i;
		return true;
	}
	return false;
}

bool log_parse_format(struct str s, enum log_format *out)
{
	if (!str_eq(s, STR("logfmt")) && !str_eq(s, STR("json")))
		return false;
	*out = str_eq(s, STR("json")) ? LOG_JSON : LOG_LOGFMT;
	return true;
}

const char *log_quote(struct str s, char *out, size_t out_size)
{
	assert(out_size >= 3);
	size_t n = 0;
	out[n++] = '"';
	for (size_t i = 0; i < s.len && n + 6 < out_size; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c == '"' || c == '\\')
			out[n++] = '\\';
		if (c < 0x20 || c == 0x7F)
			n += (size_t)snprintf(out + n, out_size - n, "\\x%02x", c);
		else
			out[n++] = (char)c;
	}
	out[n++] = '"';
	out[n] = 0;
	return out;
}

static void timestamp(char *out, size_t size)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	struct tm tm;
	gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, size - n, ".%03ldZ", now.tv_nsec / 1000000);
}

/* Writes key=value key="quoted value" … as members of JSON. */
static void json_fields(struct buf *b, struct str fields)
{
	size_t i = 0;
	while (i < fields.len) {
		struct str rest = str_sub(fields, i, fields.len);
		size_t eq = str_index(rest, '=');
		if (eq == rest.len)
			return;
		size_t end = eq + 1;
		bool quoted = end < rest.len && rest.p[end] == '"';
		bool inside = quoted;
		for (end += quoted; end < rest.len && (inside || rest.p[end] != ' '); end++) {
			if (inside && rest.p[end] == '\\')
				end++;
			else if (inside && rest.p[end] == '"')
				inside = false;
		}
		end = MIN(end, rest.len);
		buf_cstr(b, ",");
		buf_json_str(b, str_sub(rest, 0, eq));
		buf_cstr(b, ":");
		struct str value = str_sub(rest, eq + 1, end - eq - 1);
		if (quoted && value.len >= 2)
			value = str_sub(value, 1, value.len - 2);
		buf_json_str(b, value);
		i += end + 1;
	}
}

void log_line(enum log_level level, const char *msg, const char *fields, ...)
{
	if (level > level_most)
		return;
	char text[LOG_LINE_MAX - 512];
	va_list ap;
	va_start(ap, fields);
	int n = vsnprintf(text, sizeof(text), fields, ap);
	va_end(ap);
	if (n < 0)
		return;
	struct str body = str_make(text, MIN((size_t)n, sizeof(text) - 1));
	char when[40];
	timestamp(when, sizeof(when));
	CLEANUP(buf_deinit) struct buf line;
	buf_init(&line, 2 * (size_t)LOG_LINE_MAX);
	if (line_format == LOG_JSON) {
		buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", when,
			level_names[level]);
		buf_json_str(&line, str_of(msg));
		json_fields(&line, body);
		buf_cstr(&line, "}\n");
	} else {
		buf_printf(&line, "time=%s level=%s msg=\"%s\"%s%.*s\n", when, level_names[level],
			msg, body.len ? " " : "", STR_ARG(body));
	}
	if (write(STDERR_FILENO, line.data, line.len) < 0)
		return; /* there is nowhere to report it */
}
