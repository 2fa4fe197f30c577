/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as text, four ways. "groups" (folded): a line has frames from the root on, separated by
 * ';', and a count after the last blank. "lines": a line is a stack with count 1. "trie": nodes in
 * preorder, each (length, name, value, number of children); the names from the root on,
 * concatenated, are a stack in the form of a line. "tree": likewise, but each node's name is a
 * frame, and the root has none. Numbers are varints. Source: grafana/pyroscope pkg/og/storage/tree,
 * pkg/og/structs/transporttrie.
 */
#include "pyroscope/stacks.h"
#include "base/reader.h"
#include "pyroscope/labels.h"

/* Open nodes: a path cannot be longer than the limits of a stack's frames and bytes. */
#define DEPTH_MAX PYROSCOPE_FRAMES_MAX
#define PATH_BYTES_MAX ((size_t)1 << 20)

struct decoder {
	struct profile *out;
	struct err *e;
	struct profile_sample sample; /* all but stack and value */
	int64_t factor;
	uint64_t spelled;     /* bytes of the stacks so far */
	VEC(uint32_t) frames; /* of the current stack, from the root on */
	VEC(uint32_t) reversed;
	struct buf path; /* for a trie: names from the root on */
	size_t whole;    /* bytes of `path` that are complete frames: up to its last ';' */
};

struct node {
	uint64_t children;          /* children that are still to come */
	size_t frames, path, whole; /* above it */
};
struct nodes {
	VEC(struct node) v;
};

static enum status too_much(struct decoder *d, const char *what, uint64_t limit)
{
	return err_set(d->e, E_LIMIT, "%s: more than %llu", what, (unsigned long long)limit);
}

static enum status add_frame(struct decoder *d, struct str name)
{
	struct profile_function f = { 0 };
	struct profile_location l = { 0 };
	struct profile_line line = { 0 };
	uint32_t location;
	if (d->frames.len == PYROSCOPE_FRAMES_MAX)
		return too_much(d, "frames of a stack", PYROSCOPE_FRAMES_MAX);
	enum status s = profile_add_string(d->out, name.len ? name : STR("[unknown]"), &f.name);
	if (s == OK)
		s = profile_add_function(d->out, &f, &line.function);
	if (s == OK)
		s = profile_add_location(d->out, &l, &line, 1, &location);
	if (s == OK && !VEC_PUSH(&d->frames, location))
		s = E_NOMEM;
	return s == OK ? OK : err_set(d->e, s, "frames: %s", status_text(s));
}

/* Adds a sample of the collected frames. */
static enum status add_sample(struct decoder *d, int64_t count)
{
	size_t n = d->frames.len;
	if (count == 0) {
		d->out->zero_samples++;
		return OK;
	}
	if (__builtin_mul_overflow(count, d->factor, &d->sample.value))
		return err_set(d->e, E_INVALID, "a count of %lld", (long long)count);
	VEC_CLEAR(&d->reversed);
	for (size_t i = n; i-- > 0;)
		if (!VEC_PUSH(&d->reversed, d->frames.v[i]))
			return err_set(d->e, E_NOMEM, "stacks");
	d->spelled += n * sizeof(uint32_t);
	if (d->spelled > PYROSCOPE_SPELLED_MAX)
		return too_much(d, "bytes of stacks", PYROSCOPE_SPELLED_MAX);
	enum status s = profile_add_stack(d->out, d->reversed.v, (uint32_t)n, &d->sample.stack);
	if (s == OK)
		s = profile_add_sample(d->out, &d->sample);
	return s == OK ? OK : err_set(d->e, s, "stacks: %s", status_text(s));
}

/* "main;f;g" */
static enum status add_stack(struct decoder *d, struct str stack, int64_t count)
{
	struct str frame;
	enum status s = OK;
	VEC_CLEAR(&d->frames);
	d->spelled += stack.len;
	if (d->spelled > PYROSCOPE_SPELLED_MAX)
		return too_much(d, "bytes of stacks", PYROSCOPE_SPELLED_MAX);
	while (s == OK && str_split(&stack, ';', &frame))
		if (frame.len)
			s = add_frame(d, frame);
	return s == OK && d->frames.len ? add_sample(d, count) : s;
}

/* ---- lines ---- */

/* Removes " 12" from the end. */
static bool take_count(struct str *line, int64_t *out)
{
	size_t blank = str_rindex(*line, ' ');
	if (blank == line->len || !str_parse_i64(str_sub(*line, blank + 1, line->len), out))
		return false;
	line->len = blank;
	return true;
}

/* Skips lines without a count; if no line has one, the text is of another format. */
static enum status read_lines(struct decoder *d, struct str rest, bool counted)
{
	uint64_t good = 0, bad = 0, first_bad = 0;
	struct str line;
	enum status s = OK;
	for (uint64_t n = 1; s == OK && str_split(&rest, '\n', &line); n++) {
		int64_t count = 1;
		if (line.len && line.p[line.len - 1] == '\r')
			line.len--;
		if (line.len == 0)
			continue;
		if (counted && !take_count(&line, &count)) {
			first_bad = first_bad ? first_bad : n;
			bad++;
			continue;
		}
		good++;
		s = add_stack(d, line, count);
	}
	d->out->bad_lines += bad;
	if (s == OK && bad && !good)
		return err_set(d->e, E_INVALID, "line %llu: it does not end with a count",
			(unsigned long long)first_bad);
	return s;
}

/* ---- trie and tree ---- */

static enum status torn(struct decoder *d, const struct reader *r)
{
	return err_set(d->e, E_INVALID, "a node is malformed at byte %zu", reader_offset(r));
}

/* Appends a trie's name to those above it; the text before each ';' becomes a frame. */
static enum status extend_path(struct decoder *d, struct str name)
{
	size_t at = d->path.len;
	if (at + name.len > PATH_BYTES_MAX)
		return too_much(d, "bytes of a stack", PATH_BYTES_MAX);
	buf_str(&d->path, name);
	enum status s = buf_status(&d->path);
	if (s != OK)
		return err_set(d->e, s, "stacks");
	for (; s == OK && at < d->path.len; at++) {
		if (d->path.data[at] != ';')
			continue;
		if (at > d->whole)
			s = add_frame(d, str_sub(buf_view(&d->path), d->whole, at));
		d->whole = at + 1;
	}
	return s;
}

/* Adds a sample of a trie's path, whose last frame may be the begin of a longer name below. */
static enum status add_path(struct decoder *d, int64_t count)
{
	size_t frames = d->frames.len;
	enum status s = OK;
	d->spelled += d->path.len - d->whole;
	if (d->path.len > d->whole)
		s = add_frame(d, str_sub(buf_view(&d->path), d->whole, d->path.len));
	if (s == OK && d->frames.len)
		s = add_sample(d, count);
	d->frames.len = frames;
	return s;
}

/* Appends the node's name to those above it, and adds its value. */
static enum status take_node(
	struct decoder *d, bool tree, struct str name, uint64_t value, bool is_root)
{
	enum status s = OK;
	if (value > INT64_MAX)
		return err_set(d->e, E_INVALID, "a value beyond 2^63");
	if (!tree) {
		s = extend_path(d, name);
		return s == OK && value ? add_path(d, (int64_t)value) : s;
	}
	if (name.len || !is_root)
		s = add_frame(d, name);
	return s == OK && value && d->frames.len ? add_sample(d, (int64_t)value) : s;
}

/* Goes back to the end of the node's parent. */
static void leave(struct decoder *d, const struct node *n)
{
	d->frames.len = n->frames;
	d->path.len = n->path;
	d->whole = n->whole;
}

static enum status walk(struct decoder *d, struct nodes *open, struct str bytes, bool tree)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	do {
		struct str name = reader_str(&r, reader_varint(&r));
		uint64_t value = reader_varint(&r), children = reader_varint(&r);
		struct node node = { children, d->frames.len, d->path.len, d->whole };
		/* Each child takes at least three bytes. */
		if (r.failed || children > reader_left(&r) / 3)
			return torn(d, &r);
		if (open->v.len == DEPTH_MAX)
			return too_much(d, "nodes in nodes", DEPTH_MAX);
		enum status s = take_node(d, tree, name, value, open->v.len == 0);
		if (s != OK)
			return s;
		if (!VEC_PUSH(&open->v, node))
			return err_set(d->e, E_NOMEM, "nodes");
		while (open->v.len && open->v.v[open->v.len - 1].children == 0) {
			leave(d, &open->v.v[open->v.len - 1]);
			open->v.len--;
		}
		if (open->v.len)
			open->v.v[open->v.len - 1].children--;
	} while (open->v.len);
	return r.at == r.end ? OK : torn(d, &r);
}

static enum status read_nodes(struct decoder *d, struct str bytes, bool tree)
{
	struct nodes open = { 0 };
	enum status s = bytes.len ? walk(d, &open, bytes, tree) : OK;
	VEC_FREE(&open.v);
	return s;
}

/* ---- types ---- */

struct suffix {
	const char *suffix;
	struct text_type type;
};
#define CPU(n, t)                                                            \
	{                                                                    \
		n, t, "nanoseconds", "cpu", "nanoseconds", .by_period = true \
	}
#define MEMORY(t, u)                   \
	{                              \
		"memory", t, u, "", "" \
	}
#define GAUGE(n, t, u)                         \
	{                                      \
		n, t, u, "", "", .gauge = true \
	}
#define LOCK(n, t, u)           \
	{                       \
		n, t, u, "", "" \
	}
static const struct suffix suffixes[] = {
	{ "cpu", CPU("process_cpu", "cpu") },
	{ "itimer", CPU("process_cpu", "cpu") },
	{ "wall", CPU("wall", "wall") },
	{ "seconds", CPU("wall", "wall") },
	{ "milliseconds", CPU("wall", "wall") },
	{ "microseconds", CPU("wall", "wall") },
	{ "nanoseconds", CPU("wall", "wall") },
	{ "alloc_objects", MEMORY("alloc_objects", "count") },
	{ "alloc_space", MEMORY("alloc_space", "bytes") },
	{ "inuse_objects", GAUGE("memory", "inuse_objects", "count") },
	{ "inuse_space", GAUGE("memory", "inuse_space", "bytes") },
	{ "bytes", MEMORY("samples", "bytes") },
	{ "live", GAUGE("memory", "live", "count") },
	{ "alloc_in_new_tlab_objects", MEMORY("alloc_in_new_tlab_objects", "count") },
	{ "alloc_in_new_tlab_bytes", MEMORY("alloc_in_new_tlab_bytes", "bytes") },
	{ "alloc_outside_tlab_objects", MEMORY("alloc_outside_tlab_objects", "count") },
	{ "alloc_outside_tlab_bytes", MEMORY("alloc_outside_tlab_bytes", "bytes") },
	{ "goroutines", GAUGE("goroutine", "goroutines", "count") },
	{ "mutex_count", LOCK("mutex", "contentions", "count") },
	{ "mutex_duration", LOCK("mutex", "delay", "nanoseconds") },
	{ "block_count", LOCK("block", "contentions", "count") },
	{ "block_duration", LOCK("block", "delay", "nanoseconds") },
	{ "lock_count", LOCK("block", "contentions", "count") },
	{ "lock_duration", LOCK("block", "delay", "nanoseconds") },
	{ "exceptions", { "exceptions", "samples", "count", "", "" } },
};

enum status text_type_of(struct str *io_app, struct text_type *out, struct err *e)
{
	size_t dot = str_rindex(*io_app, '.');
	struct str suffix = str_sub(*io_app, dot + (dot < io_app->len), io_app->len);
	if (dot == io_app->len)
		suffix = STR("cpu");
	for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++)
		if (str_eq(suffix, str_of(suffixes[i].suffix))) {
			*out = suffixes[i].type;
			io_app->len = dot;
			return OK;
		}
	return err_set(e, E_INVALID, "unknown profile type: %.*s", STR_ARG(str_sub(suffix, 0, 64)));
}

enum status pyroscope_name_query(struct str name, struct buf *out, struct err *e)
{
	struct str app, labels;
	struct text_type t;
	if (!name_split(name, &app, &labels))
		return err_set(e, E_INVALID, "name: it has to be app{key=\"value\",…}");
	enum status s = text_type_of(&app, &t, e);
	if (s != OK)
		return s;
	buf_printf(out, "%s:%s:%s:%s:%s{service_name=", t.name, t.sample_type, t.unit,
		t.period_type, t.period_unit);
	buf_json_str(out, app);
	buf_u8(out, ',');
	buf_str(out, labels);
	buf_u8(out, '}');
	return buf_status(out);
}

/* ---- the body ---- */

static enum status add_head(struct decoder *d, const struct text_body *b)
{
	struct profile_type t = { .delta = !b->type.gauge };
	struct profile_head h = { .time_ns = b->time_ns, .duration_ns = b->duration_ns };
	const char *const texts[] = { b->type.name, b->type.sample_type, b->type.unit,
		b->type.period_type, b->type.period_unit };
	uint32_t *const to[] = { &t.name, &t.sample_type, &t.sample_unit, &t.period_type,
		&t.period_unit };
	enum status s = OK;
	for (size_t i = 0; s == OK && i < ARRAY_COUNT(to); i++)
		s = profile_add_string(d->out, str_of(texts[i]), to[i]);
	d->factor = 1;
	if (b->type.by_period)
		d->factor = h.period = 1000000000 / b->rate;
	if (s == OK)
		s = profile_add_type(d->out, &t, &h.type);
	if (s == OK)
		s = profile_add_head(d->out, &h, &d->sample.head);
	d->sample.time_ns = h.time_ns;
	d->sample.resource = b->resource;
	return s == OK ? OK : err_set(d->e, s, "types: %s", status_text(s));
}

enum status text_decode(const struct text_body *b, struct profile *out, struct err *e)
{
	struct decoder d = { .out = out, .e = e };
	buf_init(&d.path, PATH_BYTES_MAX);
	enum status s = add_head(&d, b);
	if (s == OK && b->format >= TEXT_TRIE)
		s = read_nodes(&d, b->bytes, b->format == TEXT_TREE);
	else if (s == OK)
		s = read_lines(&d, b->bytes, b->format == TEXT_GROUPS);
	VEC_FREE(&d.frames);
	VEC_FREE(&d.reversed);
	buf_deinit(&d.path);
	return s;
}
