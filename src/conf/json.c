/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the text. A list or map is collected in a vector while it is open and copied to the
 * arena when it ends, as in conf.c. The recursion is as deep as the document, which has a limit.
 * Members that are left out are parsed too, but make no nodes.
 */
#include "conf/conf.h"

#include <stdlib.h>

#include "base/vec.h"

struct json {
	struct str in;
	size_t at;
	const char *const *without;
	struct arena *arena;
	struct err *e;
	uint32_t depth;
	bool skips; /* within a member that is left out */
};

static enum status value(struct json *j, const struct conf_node **out);

static enum status wrong(struct json *j, const char *what)
{
	return err_set(j->e, E_INVALID, "not JSON at byte %zu: %s", j->at, what);
}

static enum status no_room(struct json *j)
{
	enum status s = arena_status(j->arena);
	return err_set(j->e, s, s == E_LIMIT ? "more values than fit" : "no memory for JSON");
}

static int peek(struct json *j)
{
	while (j->at < j->in.len && strchr(" \t\r\n", j->in.p[j->at]) && j->in.p[j->at])
		j->at++;
	return j->at < j->in.len ? (unsigned char)j->in.p[j->at] : -1;
}

static struct conf_node *node(struct json *j, enum conf_kind kind)
{
	struct conf_node *n = ARENA_NEW(j->arena, struct conf_node);
	if (n)
		*n = (struct conf_node){
			.kind = kind, .line = 1, .column = (uint32_t)j->at + 1, .weight = 1
		};
	return n;
}

/* ---- texts ---- */

static bool hex4(struct json *j, uint32_t *out)
{
	uint64_t v;
	if (j->in.len - j->at < 4 || !str_parse_u64(str_sub(j->in, j->at, 4), 16, &v))
		return false;
	j->at += 4;
	*out = (uint32_t)v;
	return true;
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xC0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3F));
		return 2;
	}
	size_t n = c < 0x10000 ? 3 : 4;
	to[0] = (char)(n == 3 ? 0xE0 | c >> 12 : 0xF0 | c >> 18);
	for (size_t i = 1; i < n; i++)
		to[i] = (char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3F));
	return n;
}

/* Decodes an escape, after its backslash: to at most four bytes, from up to twelve. */
static enum status escape(struct json *j, char *to, size_t *io_len)
{
	static const char from[] = "\"\\/bfnrt", what[] = "\"\\/\b\f\n\r\t";
	uint32_t c, low;
	char letter = j->at < j->in.len ? j->in.p[j->at++] : 0;
	const char *simple = letter ? strchr(from, letter) : NULL;
	if (simple) {
		to[(*io_len)++] = what[simple - from];
		return OK;
	}
	if (letter != 'u' || !hex4(j, &c))
		return wrong(j, "an escape that is none");
	if (c >= 0xD800 && c < 0xDC00) {
		bool pair = j->in.len - j->at >= 2 && j->in.p[j->at] == '\\' &&
			    j->in.p[j->at + 1] == 'u';
		size_t back = j->at;
		j->at += pair ? 2 : 0;
		if (pair && hex4(j, &low) && low >= 0xDC00 && low < 0xE000) {
			c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
		} else {
			j->at = back;
			c = 0xFFFD;
		}
	} else if (c >= 0xDC00 && c < 0xE000) {
		c = 0xFFFD;
	}
	if (!c)
		return wrong(j, "a NUL in a text");
	*io_len += put_utf8(to + *io_len, c);
	return OK;
}

static enum status text(struct json *j, struct str *out)
{
	size_t begin = ++j->at, end = begin, len = 0;
	while (end < j->in.len && j->in.p[end] != '"')
		end += j->in.p[end] == '\\' ? 2 : 1;
	if (end >= j->in.len)
		return wrong(j, "a text without an end");
	char *to = arena_alloc(j->arena, end - begin + 1, 1);
	if (!to)
		return no_room(j);
	while (j->at < end) {
		char c = j->in.p[j->at++];
		if ((unsigned char)c < 0x20)
			return wrong(j, "a control character in a text");
		enum status s = OK;
		if (c == '\\')
			s = escape(j, to, &len);
		else
			to[len++] = c;
		if (s != OK)
			return s;
	}
	j->at = end + 1;
	to[len] = 0;
	if (!str_is_utf8(str_make(to, len)))
		return wrong(j, "a text that is not UTF-8");
	*out = str_make(to, len);
	return OK;
}

/* ---- values ---- */

static enum status word(struct json *j, const struct conf_node **out)
{
	size_t begin = j->at;
	double number;
	while (j->at < j->in.len && !strchr(" \t\r\n,]}:\"[{", j->in.p[j->at]))
		j->at++;
	struct str w = str_sub(j->in, begin, j->at - begin);
	bool null = str_eq(w, STR("null"));
	bool known = null || str_eq(w, STR("true")) || str_eq(w, STR("false"));
	if (!known && (!w.len || !strchr("-0123456789", w.p[0]) || !str_parse_double(w, &number)))
		return wrong(j, "no value");
	struct conf_node *n = node(j, CONF_TEXT);
	char *copy = arena_copy(j->arena, w.p, null ? 0 : w.len);
	if (!n || !copy)
		return no_room(j);
	n->text = str_make(copy, null ? 0 : w.len);
	*out = n;
	return OK;
}

static bool is_left_out(const struct json *j, struct str key)
{
	for (const char *const *w = j->without; w && *w; w++)
		if (str_eq(key, str_of(*w)))
			return true;
	return false;
}

/* Parses a member of a list, or of a map with its key. */
static enum status member(struct json *j, bool map, struct conf_entry *out, bool *out_keep)
{
	enum status s = OK;
	struct arena *kept = j->arena, scrap = { 0 };
	bool outer = j->skips;
	if (map) {
		if (peek(j) != '"')
			return wrong(j, "a key is expected");
		s = text(j, &out->key);
		if (s == OK && peek(j) != ':')
			return wrong(j, "a ':' is expected");
		j->at++;
		if (s == OK && !outer && is_left_out(j, out->key)) {
			arena_init(&scrap, CONF_ARENA_BYTES);
			j->arena = &scrap;
			j->skips = true;
		}
	}
	out->line = 1;
	out->column = (uint32_t)j->at + 1;
	if (s == OK)
		s = value(j, &out->value);
	*out_keep = j->skips == outer;
	j->arena = kept;
	j->skips = outer;
	arena_deinit(&scrap);
	return s;
}

static enum status level(struct json *j, bool map, const struct conf_node **out)
{
	VEC(struct conf_entry) v = { 0 };
	struct conf_node *n = node(j, map ? CONF_MAP : CONF_LIST);
	enum status s = n ? OK : no_room(j);
	char end = map ? '}' : ']';
	j->at++;
	if (s == OK && ++j->depth > CONF_JSON_DEPTH_MAX)
		s = err_set(j->e, E_LIMIT, "JSON nested deeper than %d", CONF_JSON_DEPTH_MAX);
	for (bool first = true; s == OK && (peek(j) != end || !first); first = false) {
		struct conf_entry x = { 0 };
		bool keep = true;
		s = member(j, map, &x, &keep);
		if (s == OK && keep && !VEC_PUSH(&v, x))
			s = err_set(j->e, E_NOMEM, "JSON");
		if (s == OK && peek(j) == end)
			break;
		if (s == OK && peek(j) != ',')
			s = wrong(j, "a ',' or an end is expected");
		j->at++;
	}
	j->at += s == OK;
	j->depth--;
	if (s == OK && v.len) {
		n->v = ARENA_ARRAY(j->arena, struct conf_entry, v.len);
		s = n->v ? OK : no_room(j);
	}
	if (s == OK) {
		n->count = (uint32_t)v.len;
		if (v.len)
			memcpy(n->v, v.v, v.len * sizeof(*v.v));
		for (size_t i = 0; i < v.len; i++) {
			n->weight += v.v[i].value->weight;
			n->height = MAX(n->height, v.v[i].value->height + 1);
		}
		*out = n;
	}
	VEC_FREE(&v);
	return s;
}

static enum status value(struct json *j, const struct conf_node **out)
{
	int c = peek(j);
	if (c == '{' || c == '[')
		return level(j, c == '{', out);
	if (c != '"')
		return word(j, out);
	struct conf_node *n = node(j, CONF_TEXT);
	if (!n)
		return no_room(j);
	n->quoted = true;
	*out = n;
	return text(j, &n->text);
}

enum status conf_json_parse(struct str json, const char *const *without, struct arena *a,
	const struct conf_node **out, struct err *e)
{
	struct json j = { .in = json, .without = without, .arena = a, .e = e };
	const struct conf_node *root = NULL;
	if (json.len > CONF_JSON_BYTES_MAX)
		return err_set(e, E_LIMIT, "longer than %zu bytes", CONF_JSON_BYTES_MAX);
	enum status s = value(&j, &root);
	if (s == OK && peek(&j) != -1)
		s = wrong(&j, "something follows the value");
	if (s == OK)
		*out = root;
	return s;
}

const struct conf_node *conf_node_at(const struct conf_node *n, const char *path)
{
	struct str rest = str_of(path), key;
	while (n && str_split(&rest, '.', &key)) {
		const struct conf_node *next = NULL;
		for (uint32_t i = 0; n->kind == CONF_MAP && !next && i < n->count; i++)
			if (str_eq(n->v[i].key, key))
				next = n->v[i].value;
		n = next;
	}
	return n;
}

struct str conf_text_at(const struct conf_node *n, const char *path)
{
	n = conf_node_at(n, path);
	return n && n->kind == CONF_TEXT ? n->text : STR("");
}
