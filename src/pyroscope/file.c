/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a single file, whose format its first bytes give, and makes its flame graph. Text and the
 * JSON of a flame graph are read here, other formats as POST /ingest reads them. Source of the
 * JSON: what flamebearer.c writes; of the names of types: grafana/pyroscope
 * pkg/og/structs/flamebearer/convert.
 *
 * In the JSON a bar has its distance from the end of the bar before it on its level, so bars of a
 * level are in order from left to right; its caller is the bar above its left end.
 */
#include "base/arena.h"
#include "codec/codec.h"
#include "conf/conf.h"
#include "pyroscope/pyroscope.h"
#include "pyroscope/wrap.h"
#include "stacktext/stacktext.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TREE_BYTES_MAX ((size_t)128 << 20)
/* The application's name that /ingest requires; it is not shown. */
#define FILE_APP STR("file")

/* ---- the JSON of a flame graph ---- */

struct bar {
	int64_t x, end;
	uint32_t caller; /* bars */
	uint32_t name;
};
struct graph {
	const struct conf_node *names, *levels;
	struct profile *out;
	struct err *e;
	struct profile_sample sample; /* all but stack and value */
	uint32_t *locations;          /* by name; 0: not made yet */
	VEC(struct bar) bars;
	VEC(uint32_t) stack;
	uint64_t spelled; /* bytes of the stacks so far */
};

static const struct conf_node *list_at(const struct conf_node *root, const char *path)
{
	const struct conf_node *found = conf_node_at(root, path);
	return found && found->kind == CONF_LIST ? found : NULL;
}

static enum status wrong_bar(struct graph *g, size_t level, size_t bar)
{
	return err_set(
		g->e, E_INVALID, "flamebearer.levels[%zu]: bar %zu is malformed", level, bar);
}

static enum status location_of(struct graph *g, uint32_t name, uint32_t *out)
{
	struct profile_function f = { 0 };
	struct profile_location l = { 0 };
	struct profile_line line = { 0 };
	enum status s = OK;
	if (g->locations[name] == 0) {
		s = profile_add_string(g->out, g->names->v[name].value->text, &f.name);
		if (s == OK)
			s = profile_add_function(g->out, &f, &line.function);
		if (s == OK)
			s = profile_add_location(g->out, &l, &line, 1, &g->locations[name]);
	}
	*out = g->locations[name];
	return s;
}

/* Adds the bar's own value, with the stack of the bars above it, without the root. */
static enum status add_self(struct graph *g, uint32_t bar, int64_t self)
{
	VEC_CLEAR(&g->stack);
	g->sample.value = self;
	do {
		uint32_t location;
		enum status s = location_of(g, g->bars.v[bar].name, &location);
		if (s != OK)
			return err_set(g->e, s, "frames: %s", status_text(s));
		if (!VEC_PUSH(&g->stack, location))
			return err_set(g->e, E_NOMEM, "stacks");
		bar = g->bars.v[bar].caller;
	} while (bar != 0);
	g->spelled += g->stack.len * sizeof(uint32_t);
	if (g->spelled > PYROSCOPE_SPELLED_MAX)
		return err_set(g->e, E_LIMIT, "more than %llu bytes of stacks",
			(unsigned long long)PYROSCOPE_SPELLED_MAX);
	enum status s =
		profile_add_stack(g->out, g->stack.v, (uint32_t)g->stack.len, &g->sample.stack);
	if (s == OK)
		s = profile_add_sample(g->out, &g->sample);
	return s == OK ? OK : err_set(g->e, s, "stacks: %s", status_text(s));
}

/* Reads a bar: (distance, total, self, name). */
static bool read_bar(const struct graph *g, const struct conf_node *level, size_t at, int64_t v[4])
{
	for (size_t i = 0; i < 4; i++) {
		const struct conf_node *n = level->v[4 * at + i].value;
		if (n->kind != CONF_TEXT || !str_parse_i64(n->text, &v[i]))
			return false;
	}
	return v[0] >= 0 && v[1] >= 0 && v[2] >= 0 && v[2] <= v[1] && v[3] >= 0 &&
	       v[3] < g->names->count && g->names->v[v[3]].value->kind == CONF_TEXT;
}

/* Reads a level; `above` is the first bar of the level above. */
static enum status read_level(struct graph *g, size_t number, uint32_t above)
{
	const struct conf_node *level = g->levels->v[number].value;
	uint32_t first = (uint32_t)g->bars.len, caller = above;
	int64_t end = 0;
	bool fits = number ? level->count == 0 || above < first : level->count == 4;
	if (level->kind != CONF_LIST || level->count % 4 || !fits)
		return err_set(g->e, E_INVALID, "flamebearer.levels[%zu]: no list of bars", number);
	for (size_t i = 0; i < level->count / 4; i++) {
		int64_t v[4];
		if (!read_bar(g, level, i, v))
			return wrong_bar(g, number, i);
		struct bar b = { .name = (uint32_t)v[3] };
		if (__builtin_add_overflow(end, v[0], &b.x) ||
			__builtin_add_overflow(b.x, v[1], &b.end))
			return wrong_bar(g, number, i);
		while (number && caller + 1 < first && g->bars.v[caller].end <= b.x)
			caller++;
		b.caller = caller;
		if (number && (b.x < g->bars.v[caller].x || b.end > g->bars.v[caller].end))
			return wrong_bar(g, number, i);
		end = b.end;
		if (!VEC_PUSH(&g->bars, b))
			return err_set(g->e, E_NOMEM, "bars");
		enum status s = v[2] ? add_self(g, first + (uint32_t)i, v[2]) : OK;
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status add_head(struct graph *g, const struct conf_node *root, int64_t now_ns)
{
	struct profile_type t = { .delta = true };
	struct profile_head h = { .time_ns = now_ns };
	struct str name = conf_text_at(root, "metadata.name");
	struct str unit = conf_text_at(root, "metadata.units");
	enum status s = profile_add_type_part(g->out, FILE_APP, &t.name);
	if (s == OK)
		s = profile_add_type_part(g->out, name.len ? name : STR("samples"), &t.sample_type);
	if (s == OK)
		s = profile_add_type_part(g->out, unit, &t.sample_unit);
	if (s == OK)
		s = profile_add_type(g->out, &t, &h.type);
	if (s == OK)
		s = profile_add_head(g->out, &h, &g->sample.head);
	g->sample.time_ns = now_ns;
	return s == OK ? OK : err_set(g->e, s, "metadata: %s", status_text(s));
}

static enum status read_graph(struct graph *g, const struct conf_node *root, int64_t now_ns)
{
	struct str format = conf_text_at(root, "metadata.format");
	g->names = list_at(root, "flamebearer.names");
	g->levels = list_at(root, "flamebearer.levels");
	if (!g->names || !g->levels)
		return err_set(g->e, E_INVALID, "flamebearer: names and levels are wanted");
	if (format.len && !str_eq(format, STR("single")))
		return err_set(g->e, E_INVALID, "metadata.format: only a single graph is read");
	if (g->levels->count > PYROSCOPE_FRAMES_MAX)
		return err_set(g->e, E_LIMIT, "more than %u levels", PYROSCOPE_FRAMES_MAX);
	g->locations = calloc(MAX(g->names->count, 1u), sizeof(*g->locations));
	if (!g->locations)
		return err_set(g->e, E_NOMEM, "names");
	enum status s = add_head(g, root, now_ns);
	for (size_t i = 0, above = 0; s == OK && i < g->levels->count; i++) {
		size_t begun = g->bars.len;
		s = read_level(g, i, (uint32_t)above);
		above = begun;
	}
	return s;
}

static enum status read_json(struct str text, int64_t now_ns, struct profile *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct graph g = { .out = out, .e = e };
	size_t samples = out->samples.len;
	arena_init(&a, TREE_BYTES_MAX);
	enum status s = conf_json_parse(text, NULL, &a, &root, e);
	if (s == OK)
		s = read_graph(&g, root, now_ns);
	if (s != OK)
		out->samples.len = samples;
	free(g.locations);
	VEC_FREE(&g.bars);
	VEC_FREE(&g.stack);
	return s;
}

/* ---- any file ---- */

static enum status read_as(
	const char *format, struct str bytes, int64_t now_ns, struct profile *out, struct err *e)
{
	struct pyroscope_ingest q = { .name = FILE_APP, .format = str_of(format) };
	return pyroscope_ingest_decode(&q, bytes, now_ns, out, e);
}

enum status pyroscope_file_decode(
	struct str bytes, int64_t now_ns, struct profile *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf plain;
	struct stacktext_stats stats;
	buf_init(&plain, MIN(MAX(PYROSCOPE_EXPANSION_MAX * bytes.len, PYROSCOPE_EXPANDED_MIN),
				 PYROSCOPE_BYTES_MAX));
	if (codec_is_gzip(bytes.p, bytes.len)) {
		enum status s = codec_gunzip(bytes.p, bytes.len, &plain, e);
		if (s != OK)
			return s;
		bytes = buf_view(&plain);
	}
	struct str text = str_trim(bytes);
	if (str_starts(bytes, str_make("FLR", 4)))
		return read_as("jfr", bytes, now_ns, out, e);
	if (text.len && text.p[0] == '{')
		return memmem(text.p, text.len, "\"$schema\"", 9)
			       ? read_as("speedscope", text, now_ns, out, e)
			       : read_json(text, now_ns, out, e);
	enum stacktext_format f = stacktext_guess(bytes);
	if (f != STACKTEXT_NONE)
		return stacktext_decode(bytes, f, now_ns, out, &stats, e);
	return read_as("pprof", bytes, now_ns, out, e);
}

/* ---- its flame graph ---- */

/* Whether a head has the type: a decoder may have renamed a type, and the table still has the old
 * one. */
static bool is_used(const struct profile *p, size_t type)
{
	for (size_t i = 0; i < p->heads.len; i++)
		if (p->heads.v[i].type == type)
			return true;
	return false;
}

static bool is_alone(const struct profile *p, size_t type)
{
	for (size_t i = 1; i < p->types.len; i++)
		if (i != type && p->types.v[i].sample_type == p->types.v[type].sample_type &&
			is_used(p, i))
			return false;
	return true;
}

enum status pyroscope_file_types(const struct profile *p, struct arena *a,
	struct pyroscope_file_type **out, size_t *out_count, struct err *e)
{
	size_t count = 0;
	struct pyroscope_file_type *v = ARENA_ARRAY(a, struct pyroscope_file_type, p->types.len);
	if (!v)
		return err_set(e, arena_status(a), "types of the file");
	for (size_t i = 1; i < p->types.len; i++) {
		const struct profile_type *t = &p->types.v[i];
		struct str name = profile_str(p, t->sample_type);
		if (!is_used(p, i))
			continue;
		if (!is_alone(p, i)) {
			const char *both = arena_printf(
				a, "%.*s:%.*s", STR_ARG(profile_str(p, t->name)), STR_ARG(name));
			if (!both)
				return err_set(e, arena_status(a), "types of the file");
			name = str_of(both);
		}
		v[count++] = (struct pyroscope_file_type){
			.name = name, .unit = profile_str(p, t->sample_unit), .type = (uint32_t)i
		};
	}
	*out = v;
	*out_count = count;
	return OK;
}

/* The name of a location's line as a text of `p`; without symbols it is the address. */
static enum status name_of(
	struct profile *p, const struct profile_location *l, uint32_t line, uint32_t *out)
{
	char hex[24];
	if (l->line_count) {
		uint32_t function = p->lines.v[l->line_first + line].function;
		*out = p->functions.v[function].name;
		return OK;
	}
	int len = snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)l->address);
	return profile_add_string(p, str_make(hex, (size_t)len), out);
}

struct chain {
	uint32_t *parent, *name;
	int64_t *self;
	uint32_t count;
};

static uint32_t frames_of(const struct profile *p, const struct profile_stack *stack)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < stack->count; i++)
		n += MAX(p->locations.v[p->stack_locations.v[stack->first + i]].line_count, 1u);
	return n;
}

/* Writes a stack from the root on: the last location first, and the outermost call of each
 * first. */
static enum status put_stack(
	struct profile *p, const struct profile_stack *stack, int64_t value, struct chain *c)
{
	uint32_t parent = 0;
	for (uint32_t i = stack->count; i-- > 0;) {
		const struct profile_location *l =
			&p->locations.v[p->stack_locations.v[stack->first + i]];
		for (uint32_t line = MAX(l->line_count, 1u); line-- > 0;) {
			enum status s = name_of(p, l, line, &c->name[c->count]);
			if (s != OK)
				return s;
			c->parent[c->count] = parent;
			c->self[c->count] = 0;
			parent = c->count++;
		}
	}
	c->self[parent] = wrap_add(c->self[parent], value);
	return OK;
}

enum status pyroscope_file_side(struct profile *p, uint32_t type, struct arena *a,
	struct pyroscope_side *out, struct err *e)
{
	uint64_t nodes = 1;
	int64_t *sums = ARENA_ARRAY(a, int64_t, p->stacks.len);
	for (size_t i = 0; sums && i < p->samples.len; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		if (p->heads.v[x->head].type == type)
			sums[x->stack] = wrap_add(sums[x->stack], x->value);
	}
	for (size_t i = 0; sums && i < p->stacks.len; i++)
		nodes += sums[i] ? frames_of(p, &p->stacks.v[i]) : 0;
	if (nodes > UINT32_MAX)
		return err_set(e, E_LIMIT, "too many frames");
	struct chain c = { ARENA_ARRAY(a, uint32_t, nodes), ARENA_ARRAY(a, uint32_t, nodes),
		ARENA_ARRAY(a, int64_t, nodes), 1 };
	enum status s = sums && c.parent && c.name && c.self ? OK : arena_status(a);
	for (size_t i = 0; s == OK && i < p->stacks.len; i++)
		if (sums[i])
			s = put_stack(p, &p->stacks.v[i], sums[i], &c);
	if (s != OK)
		return err_set(e, s, "the file's flame graph: %s", status_text(s));
	*out = (struct pyroscope_side){ c.count, c.parent, c.name, p->strings.v, c.self };
	return OK;
}
