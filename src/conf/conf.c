/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the tree from libyaml's events, with the open lists and maps on a stack. A list or map is
 * collected in a vector while it is open, and copied to the arena when it ends. libyaml's documents
 * are not used, since their time grows with the square of the depth (50 kB of '[' take ten
 * seconds).
 *
 * An alias is another pointer to a node. `weight` bounds the number of nodes that a reader would
 * visit.
 */
#include "conf/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/nearest.h"
#include "base/units.h"
#include "base/vec.h"

struct level {
	struct conf_node *node;
	VEC(struct conf_entry) entries;
	struct conf_entry next; /* for a map: the key that has come */
	bool has_key;
};

struct anchor {
	struct str name;
	const struct conf_node *node;
};

struct parsing {
	struct arena *arena;
	struct err *e;
	struct level levels[CONF_DEPTH_MAX];
	uint32_t depth;
	uint32_t nodes;
	VEC(struct anchor) anchors;
	const struct conf_node *root;
	bool has_root;
};

static enum status wrong_at(
	struct err *e, uint32_t line, uint32_t column, enum status s, const char *text)
{
	return err_set(e, s, "line %u, column %u: %s", line, column, text);
}

static enum status add_key(struct parsing *p, struct level *l, const struct conf_node *n)
{
	if (n->kind != CONF_TEXT)
		return wrong_at(p->e, n->line, n->column, E_INVALID, "a key must be a text");
	l->next = (struct conf_entry){ n->text, n->line, n->column, NULL };
	l->has_key = true;
	return OK;
}

static int by_key(const void *a, const void *b)
{
	const struct conf_entry *x = *(const struct conf_entry *const *)a;
	const struct conf_entry *y = *(const struct conf_entry *const *)b;
	int order = str_cmp(x->key, y->key);
	return order ? order : (x > y) - (x < y);
}

/* Refuses keys that occur twice. They are sorted for that, since a map in a user's file may have
 * many. */
static enum status check_keys(const struct conf_node *map, struct err *e)
{
	enum status s = OK;
	const struct conf_entry **v = calloc(map->count, sizeof(const struct conf_entry *));
	if (!v)
		return err_set(e, E_NOMEM, "YAML");
	for (uint32_t i = 0; i < map->count; i++)
		v[i] = &map->v[i];
	qsort(v, map->count, sizeof(const struct conf_entry *), by_key);
	for (uint32_t i = 1; s == OK && i < map->count; i++)
		if (str_eq(v[i]->key, v[i - 1]->key))
			s = err_set(e, E_INVALID, "line %u, column %u: \"%.*s\" is there twice",
				v[i]->line, v[i]->column, STR_ARG(v[i]->key));
	free(v);
	return s;
}

/* Adds a complete node to the innermost open list or map, or makes it the root. */
static enum status place(struct parsing *p, const struct conf_node *n)
{
	if (p->depth == 0) {
		if (p->has_root)
			return wrong_at(p->e, n->line, n->column, E_INVALID,
				"a second document begins: one is read");
		p->root = n;
		p->has_root = true;
		return OK;
	}
	struct level *l = &p->levels[p->depth - 1];
	bool map = l->node->kind == CONF_MAP;
	if (map && !l->has_key)
		return add_key(p, l, n);
	struct conf_entry x = map ? l->next : (struct conf_entry){ STR(""), n->line, n->column, n };
	x.value = n;
	l->has_key = false;
	if (l->node->weight + n->weight > CONF_NODES_MAX)
		return wrong_at(p->e, n->line, n->column, E_LIMIT, "too many values");
	l->node->weight += n->weight;
	l->node->height = MAX(l->node->height, n->height + 1);
	if (!VEC_PUSH(&l->entries, x))
		return err_set(p->e, E_NOMEM, "YAML");
	return OK;
}

static enum status make(struct parsing *p, const yaml_event_t *event, enum conf_kind kind,
	const yaml_char_t *anchor, struct conf_node **out)
{
	struct conf_node *n = ARENA_NEW(p->arena, struct conf_node);
	if (!n)
		return err_set(p->e, arena_status(p->arena), "YAML");
	*n = (struct conf_node){ .kind = kind,
		.line = (uint32_t)event->start_mark.line + 1,
		.column = (uint32_t)event->start_mark.column + 1,
		.weight = 1 };
	if (++p->nodes > CONF_NODES_MAX)
		return wrong_at(p->e, n->line, n->column, E_LIMIT, "too many values");
	*out = n;
	if (!anchor)
		return OK;
	if (p->anchors.len == CONF_ANCHORS_MAX)
		return wrong_at(p->e, n->line, n->column, E_LIMIT, "too many anchors");
	size_t len = strlen((const char *)anchor);
	char *name = arena_copy(p->arena, anchor, len);
	if (!name || !VEC_PUSH(&p->anchors, ((struct anchor){ str_make(name, len), n })))
		return err_set(p->e, E_NOMEM, "YAML");
	return OK;
}

static enum status take_text(struct parsing *p, const yaml_event_t *event)
{
	struct conf_node *n;
	enum status s = make(p, event, CONF_TEXT, event->data.scalar.anchor, &n);
	if (s != OK)
		return s;
	size_t len = event->data.scalar.length;
	char *copy = arena_alloc(p->arena, len + 1, 1);
	if (!copy)
		return err_set(p->e, arena_status(p->arena), "YAML");
	memcpy(copy, event->data.scalar.value, len);
	copy[len] = 0;
	if (memchr(copy, 0, len))
		return wrong_at(p->e, n->line, n->column, E_INVALID, "a NUL byte in a text");
	n->text = str_make(copy, len);
	n->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (!n->quoted && (str_eq(n->text, STR("~")) || str_eq(n->text, STR("null"))))
		n->text = STR("");
	return place(p, n);
}

static enum status open_level(struct parsing *p, const yaml_event_t *event, enum conf_kind kind)
{
	struct conf_node *n;
	enum status s = make(p, event, kind,
		kind == CONF_MAP ? event->data.mapping_start.anchor
				 : event->data.sequence_start.anchor,
		&n);
	if (s != OK)
		return s;
	if (p->depth == CONF_DEPTH_MAX)
		return err_set(p->e, E_LIMIT, "line %u, column %u: nested deeper than %d", n->line,
			n->column, CONF_DEPTH_MAX);
	p->levels[p->depth++] = (struct level){ .node = n };
	return OK;
}

static enum status close_level(struct parsing *p)
{
	struct level *l = &p->levels[--p->depth];
	struct conf_node *n = l->node;
	size_t bytes = l->entries.len * sizeof(*n->v);
	enum status s = OK;
	n->count = (uint32_t)l->entries.len;
	n->v = bytes ? arena_alloc(p->arena, bytes, _Alignof(struct conf_entry)) : NULL;
	if (s == OK && bytes && !n->v)
		s = err_set(p->e, arena_status(p->arena), "YAML");
	if (s == OK && bytes)
		memcpy(n->v, l->entries.v, bytes);
	VEC_FREE(&l->entries);
	if (s == OK && n->kind == CONF_MAP && n->count > 1)
		s = check_keys(n, p->e);
	return s == OK ? place(p, n) : s;
}

static enum status take_alias(struct parsing *p, const yaml_event_t *event)
{
	struct str name = str_of((const char *)event->data.alias.anchor);
	for (size_t i = p->anchors.len; i > 0; i--) {
		const struct conf_node *n = p->anchors.v[i - 1].node;
		if (!str_eq(p->anchors.v[i - 1].name, name))
			continue;
		for (uint32_t k = 0; k < p->depth; k++)
			if (p->levels[k].node == n)
				return wrong_at(p->e, n->line, n->column, E_INVALID,
					"an alias inside of what it stands for");
		if (p->depth + n->height > CONF_DEPTH_MAX)
			return wrong_at(p->e, n->line, n->column, E_LIMIT,
				"nested too deep by its aliases");
		return place(p, n);
	}
	return err_set(p->e, E_INVALID, "line %u, column %u: there is no anchor \"%.*s\"",
		(unsigned)event->start_mark.line + 1, (unsigned)event->start_mark.column + 1,
		STR_ARG(name));
}

static enum status take(struct parsing *p, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return take_text(p, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(p, event, CONF_LIST);
	case YAML_MAPPING_START_EVENT:
		return open_level(p, event, CONF_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return close_level(p);
	case YAML_ALIAS_EVENT:
		return take_alias(p, event);
	default:
		return OK;
	}
}

static enum status not_yaml(const yaml_parser_t *parser, struct err *e)
{
	const yaml_mark_t *at =
		parser->problem_mark.line ? &parser->problem_mark : &parser->context_mark;
	return wrong_at(e, (uint32_t)at->line + 1, (uint32_t)at->column + 1,
		parser->error == YAML_MEMORY_ERROR ? E_NOMEM : E_INVALID,
		parser->problem ? parser->problem : "not YAML");
}

static enum status parse_events(struct parsing *p, yaml_parser_t *parser)
{
	enum status s = OK;
	for (bool more = true; s == OK && more;) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return not_yaml(parser, p->e);
		more = event.type != YAML_STREAM_END_EVENT;
		s = take(p, &event);
		yaml_event_delete(&event);
	}
	return s;
}

enum status conf_parse(
	struct str yaml, struct arena *a, const struct conf_node **out, struct err *e)
{
	struct parsing p = { .arena = a, .e = e };
	yaml_parser_t parser;
	if (yaml.len > CONF_BYTES_MAX)
		return err_set(e, E_LIMIT, "longer than %zu bytes", CONF_BYTES_MAX);
	if (!yaml_parser_initialize(&parser))
		return err_set(e, E_NOMEM, "YAML");
	yaml_parser_set_input_string(&parser, (const uint8_t *)(yaml.p ? yaml.p : ""), yaml.len);
	enum status s = parse_events(&p, &parser);
	yaml_parser_delete(&parser);
	while (p.depth) {
		p.depth--;
		VEC_FREE(&p.levels[p.depth].entries);
	}
	VEC_FREE(&p.anchors);
	if (s == OK)
		*out = p.root && !conf_is_empty(p.root) ? p.root : NULL;
	return s;
}

const struct conf_node *conf_find(const struct conf_node *n, const char *key)
{
	for (uint32_t i = 0; n && n->kind == CONF_MAP && i < n->count; i++)
		if (str_eq(n->v[i].key, str_of(key)))
			return n->v[i].value;
	return NULL;
}

bool conf_is_empty(const struct conf_node *n)
{
	return n->kind == CONF_TEXT && n->text.len == 0 && !n->quoted;
}

/* ---- errors ---- */

enum status conf_wrong(struct err *e, const struct conf_node *n, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return wrong_at(e, n->line, n->column, E_INVALID, text);
}

enum status conf_unknown(struct err *e, const struct conf_entry *x, const char *const *names)
{
	const char *nearest = nearest_word((const char *)x->key.p, names);
	return err_set(e, E_INVALID, "line %u, column %u: there is no key \"%.*s\" here%s%s%s",
		x->line, x->column, STR_ARG(x->key), nearest ? "; did you mean \"" : "",
		nearest ? nearest : "", nearest ? "\"?" : "");
}

/* ---- values ---- */

enum status conf_text(const struct conf_node *n, const char *what, struct str *out, struct err *e)
{
	if (n->kind != CONF_TEXT)
		return conf_wrong(e, n, "%s must be a text", what);
	*out = n->text;
	return OK;
}

enum status conf_number(const struct conf_node *n, const char *what, uint64_t least, uint64_t most,
	uint64_t *out, struct err *e)
{
	uint64_t v;
	if (n->kind != CONF_TEXT || !str_parse_u64(n->text, 10, &v) || v < least || v > most)
		return conf_wrong(e, n, "%s must be a whole number from %llu to %llu", what,
			(unsigned long long)least, (unsigned long long)most);
	*out = v;
	return OK;
}

enum status conf_bool(const struct conf_node *n, const char *what, bool *out, struct err *e)
{
	bool yes = n->kind == CONF_TEXT && str_eq(n->text, STR("true"));
	if (!yes && (n->kind != CONF_TEXT || !str_eq(n->text, STR("false"))))
		return conf_wrong(e, n, "%s must be true or false", what);
	*out = yes;
	return OK;
}

enum status conf_duration(
	const struct conf_node *n, const char *what, int64_t *out_ns, struct err *e)
{
	struct err why = { 0 };
	if (n->kind != CONF_TEXT || units_parse_duration(n->text, out_ns, &why) != OK)
		return conf_wrong(e, n, "%s: %s", what,
			why.text[0] ? why.text : "it must be a duration such as 10s");
	return OK;
}
