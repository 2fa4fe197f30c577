/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipart/form-data: parts between lines of "--boundary"; each part has header lines, an empty
 * line and its bytes. The last boundary is followed by "--". Source: RFC 2046 section 5.1, RFC
 * 7578.
 */
#include "pyroscope/multipart.h"

#include <string.h>

#define BOUNDARY_MAX 70

/* The value of `; key=value` or `; key="value"` in a header; "": none. */
static struct str parameter(struct str header, struct str key)
{
	struct str rest = str_sub(header, str_index(header, ';') + 1, header.len), piece;
	while (str_split(&rest, ';', &piece)) {
		size_t equals = str_index(piece, '=');
		struct str value = str_trim(str_sub(piece, equals + 1, piece.len));
		if (!str_eq_nocase(str_trim(str_sub(piece, 0, equals)), key))
			continue;
		if (value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"')
			value = str_sub(value, 1, value.len - 2);
		return value;
	}
	return STR("");
}

/* The name in a part's Content-Disposition. */
static struct str part_name(struct str head)
{
	struct str line;
	while (str_split(&head, '\n', &line)) {
		size_t colon = str_index(line, ':');
		if (str_eq_nocase(str_trim(str_sub(line, 0, colon)), STR("content-disposition")))
			return parameter(str_trim(str_sub(line, colon + 1, line.len)), STR("name"));
	}
	return STR("");
}

static const char *find(struct str in, struct str what)
{
	return in.len ? memmem(in.p, in.len, what.p, what.len) : NULL;
}

static struct str behind(struct str s, const char *at, size_t skip)
{
	return str_sub(s, (size_t)(at - s.p) + skip, s.len);
}

/* Reads a part, which begins after its boundary's line; moves *rest to the next boundary. */
static enum status read_part(
	struct str *rest, struct str delimiter, struct part *out, size_t index, struct err *e)
{
	struct str ends = STR("\r\n\r\n");
	const char *blank = find(str_sub(*rest, 0, PYROSCOPE_PART_HEAD_MAX), ends);
	if (!blank)
		return err_set(e, E_INVALID, "part %zu: its head does not end within %d bytes",
			index, PYROSCOPE_PART_HEAD_MAX);
	out->name = part_name(str_sub(*rest, 0, (size_t)(blank - rest->p)));
	/* For an empty body, the line end of the head may also be that of the body. */
	struct str body = behind(*rest, blank, 2);
	const char *end = find(body, delimiter);
	if (!end)
		return err_set(e, E_INVALID, "part %zu: no boundary behind it", index);
	*rest = behind(body, end, delimiter.len);
	body = str_sub(body, 0, (size_t)(end - body.p));
	out->body = str_sub(body, 2, body.len);
	return OK;
}

enum status parts_read(struct str content_type, struct str body, struct parts *out, struct err *e)
{
	char text[BOUNDARY_MAX + 4] = "\r\n--";
	struct str boundary = parameter(content_type, STR("boundary"));
	out->count = 0;
	if (boundary.len == 0 || boundary.len > BOUNDARY_MAX)
		return err_set(e, E_INVALID, "multipart without a boundary of 1 to %d characters",
			BOUNDARY_MAX);
	memcpy(text + 4, boundary.p, boundary.len);
	struct str delimiter = str_make(text, boundary.len + 4);
	struct str first = str_sub(delimiter, 2, delimiter.len);
	const char *at = str_starts(body, first) ? body.p : find(body, delimiter);
	if (!at)
		return err_set(e, E_INVALID, "multipart: the boundary does not occur");
	struct str rest = behind(body, at, at == body.p ? first.len : delimiter.len);
	while (!str_starts(rest, STR("--"))) {
		size_t line = str_index(rest, '\n');
		if (line == rest.len)
			return err_set(e, E_INVALID, "multipart: it ends within a boundary");
		if (out->count == PYROSCOPE_PARTS_MAX)
			return err_set(
				e, E_LIMIT, "multipart: more than %d parts", PYROSCOPE_PARTS_MAX);
		rest = str_sub(rest, line + 1, rest.len);
		enum status s = read_part(&rest, delimiter, &out->v[out->count], out->count, e);
		if (s != OK)
			return s;
		out->count++;
	}
	return OK;
}

const struct part *parts_find(const struct parts *p, const char *name)
{
	for (size_t i = 0; i < p->count; i++)
		if (str_eq(p->v[i].name, str_of(name)))
			return &p->v[i];
	return NULL;
}
