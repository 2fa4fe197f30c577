/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/status.h"

#include "base/clock.h"
#include "base/str.h"

#include <stdlib.h>

static void put_escaped(struct buf *out, uint8_t c, bool is_utf8)
{
	switch (c) {
	case '&':
		buf_cstr(out, "&amp;");
		break;
	case '<':
		buf_cstr(out, "&lt;");
		break;
	case '>':
		buf_cstr(out, "&gt;");
		break;
	case '"':
		buf_cstr(out, "&quot;");
		break;
	case '\'':
		buf_cstr(out, "&#39;");
		break;
	default:
		buf_u8(out, c < ' ' || c == 0x7f || (c >= 0x80 && !is_utf8) ? '?' : c);
	}
}

void status_escape(struct buf *out, struct str text)
{
	bool is_utf8 = str_is_utf8(text);
	for (size_t i = 0; i < text.len; i++)
		put_escaped(out, (uint8_t)text.p[i], is_utf8);
}

static void cell(struct buf *out, const char *tag, const char *text)
{
	buf_printf(out, "<%s>", tag);
	status_escape(out, str_of(text ? text : ""));
	buf_printf(out, "</%s>", tag);
}

void status_begin(struct buf *out, const char *node)
{
	buf_cstr(out, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
		      "<meta name=\"viewport\" content=\"width=device-width\"><title>firn agent ");
	status_escape(out, str_of(node));
	buf_cstr(out, "</title><style>"
		      ":root{color-scheme:light dark}"
		      "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;"
		      "padding:0 1em}"
		      "h1{font-size:1.4em}h2{font-size:1.1em;margin:2em 0 .3em}p{margin:.3em 0}"
		      "table{border-collapse:collapse;width:100%}"
		      "td,th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;"
		      "border-bottom:1px solid #8884;overflow-wrap:anywhere}"
		      "td:first-child,th:first-child{width:34%}"
		      "</style></head><body><h1>firn agent " FIRN_VERSION " on ");
	status_escape(out, str_of(node));
	buf_cstr(out, "</h1>");
}

void status_section(struct buf *out, const char *title, const char *text)
{
	cell(out, "h2", title);
	if (text && text[0])
		cell(out, "p", text);
}

void status_rows(struct buf *out, const struct status_row *rows, size_t count)
{
	buf_cstr(out, "<table>");
	for (size_t i = 0; i < count; i++) {
		buf_cstr(out, "<tr>");
		cell(out, "td", rows[i].name);
		cell(out, "td", rows[i].value);
		cell(out, "td", rows[i].why);
		buf_cstr(out, "</tr>");
	}
	buf_cstr(out, "</table>");
}

void status_problems(struct buf *out, struct problems *p, enum problem_kind kind, const char *what,
	const char *why, uint32_t rows_max)
{
	struct problem *list = calloc(PROBLEMS_MAX, sizeof(*list));
	uint32_t count = p && list ? problems_list(p, kind, list) : 0;
	int64_t now = clock_monotonic_ns();
	if (count == 0) {
		cell(out, "p", "None.");
		free(list);
		return;
	}
	buf_cstr(out, "<table><tr>");
	cell(out, "th", what);
	cell(out, "th", why);
	buf_cstr(out, "<th>times</th><th>last</th></tr>");
	for (uint32_t i = 0; i < MIN(count, rows_max); i++) {
		buf_cstr(out, "<tr>");
		cell(out, "td", list[i].what);
		cell(out, "td", list[i].why);
		buf_printf(out, "<td>%llu</td><td>%lld s ago</td></tr>",
			(unsigned long long)list[i].count,
			(long long)((now - list[i].last_ns) / NS_PER_SEC));
	}
	buf_cstr(out, "</table>");
	free(list);
}

void status_lines(struct buf *out, const char *title, struct str lines)
{
	struct str line;
	if (lines.len == 0)
		return;
	cell(out, "h2", title);
	while (str_split(&lines, '\n', &line)) {
		if (line.len == 0)
			continue;
		buf_cstr(out, "<p>");
		status_escape(out, line);
		buf_cstr(out, "</p>");
	}
}

void status_foot(struct buf *out)
{
	buf_cstr(out, "<p>All figures: <a href=\"metrics\">metrics</a></p>");
}

void status_end(struct buf *out)
{
	buf_cstr(out, "</body></html>\n");
}
