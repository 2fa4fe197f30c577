/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's files: stacks with weights, or functions that open and close. Each profile of the
 * file becomes folded stacks, "main;f 50", which stacks.c reads. Times become nanoseconds. Source:
 * speedscope's file-format-spec; the type for each unit: grafana/pyroscope
 * pkg/og/convert/speedscope.
 */
#include "pyroscope/speedscope.h"
#include "conf/conf.h"
#include "pyroscope/labels.h"
#include "pyroscope/stacks.h"

#include <math.h>

/* Bytes of the file's tree, which takes about a hundred bytes for each number. */
#define TREE_BYTES_MAX ((size_t)128 << 20)
#define DEPTH_MAX 4096 /* of open functions */
#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static const struct {
	const char *name;
	double ns; /* 0: no time */
} units[] = { { "none", 0 }, { "bytes", 0 }, { "nanoseconds", 1 }, { "microseconds", 1e3 },
	{ "milliseconds", 1e6 }, { "seconds", 1e9 } };

struct file {
	const struct speedscope *in;
	struct str *frames;
	uint32_t frame_count;
	struct buf text; /* folded stacks of all profiles, so that the limit is one for the file */
	double factor;
	struct err *e;
};

static const struct conf_node *member(const struct conf_node *n, const char *key)
{
	const struct conf_node *found = n ? conf_find(n, key) : NULL;
	return found && found->kind == CONF_LIST ? found : NULL;
}

static struct str text_at(const struct conf_node *n, const char *key)
{
	const struct conf_node *found = n ? conf_find(n, key) : NULL;
	return found && found->kind == CONF_TEXT ? found->text : STR("");
}

static double number_of(const struct conf_node *n)
{
	double v = NAN;
	return n->kind == CONF_TEXT && str_parse_double(n->text, &v) ? v : NAN;
}

static enum status put_frame(struct file *f, const struct conf_node *n, bool first)
{
	uint64_t at;
	if (n->kind != CONF_TEXT || !str_parse_u64(n->text, 10, &at) || at >= f->frame_count)
		return err_set(f->e, E_INVALID, "a frame that is not there");
	if (!first)
		buf_u8(&f->text, ';');
	struct str name = f->frames[at].len ? f->frames[at] : STR("[unknown]");
	if (f->text.failed || name.len > f->text.max - f->text.len)
		return err_set(f->e, E_LIMIT, "more than %zu bytes of stacks", f->text.max);
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];
		buf_u8(&f->text, (uint8_t)(c == ';' ? ':' : c == '\n' || c == '\r' ? ' ' : c));
	}
	return OK;
}

/* Writes the weight after the frames of a stack. */
static enum status put_weight(struct file *f, double weight)
{
	double value = weight * f->factor;
	if (!(value >= 0 && value < 0x1p62))
		return err_set(f->e, E_INVALID, "a weight that is no number from 0 on");
	buf_printf(&f->text, " %lld\n", llround(value));
	return OK;
}

static enum status read_sampled(struct file *f, const struct conf_node *profile)
{
	const struct conf_node *samples = member(profile, "samples");
	const struct conf_node *weights = member(profile, "weights");
	enum status s = OK;
	if (!samples || !weights || samples->count != weights->count)
		return err_set(f->e, E_INVALID, "as many weights as samples are wanted");
	for (uint32_t i = 0; s == OK && i < samples->count; i++) {
		const struct conf_node *stack = samples->v[i].value;
		if (stack->kind != CONF_LIST)
			return err_set(f->e, E_INVALID, "samples[%u] is no list", i);
		for (uint32_t k = 0; s == OK && k < stack->count; k++)
			s = put_frame(f, stack->v[k].value, k == 0);
		if (s == OK && stack->count)
			s = put_weight(f, number_of(weights->v[i].value));
	}
	return s;
}

/* Adds the time since the last event to the stack of open functions. */
static enum status put_open(
	struct file *f, const struct conf_node *const *open, uint32_t depth, double time)
{
	enum status s = OK;
	if (depth == 0 || time == 0)
		return OK;
	for (uint32_t i = 0; s == OK && i < depth; i++)
		s = put_frame(f, open[i], i == 0);
	return s == OK ? put_weight(f, time) : s;
}

static enum status read_evented(struct file *f, const struct conf_node *profile)
{
	const struct conf_node *events = member(profile, "events"), *open[DEPTH_MAX];
	double last = NAN;
	uint32_t depth = 0;
	enum status s = OK;
	if (!events)
		return err_set(f->e, E_INVALID, "events are wanted");
	for (uint32_t i = 0; s == OK && i < events->count; i++) {
		const struct conf_node *event = events->v[i].value;
		const struct conf_node *frame = conf_find(event, "frame");
		const struct conf_node *at = conf_find(event, "at");
		struct str kind = text_at(event, "type");
		double now = at ? number_of(at) : NAN;
		if (!frame || isnan(now) || now < last)
			return err_set(f->e, E_INVALID, "events[%u]: no frame, or no time", i);
		s = put_open(f, open, depth, isnan(last) ? 0 : now - last);
		last = now;
		if (s == OK && str_eq(kind, STR("O")) && depth < DEPTH_MAX)
			open[depth++] = frame;
		else if (s == OK && str_eq(kind, STR("C")) && depth &&
			 str_eq(open[depth - 1]->text, frame->text))
			depth--;
		else if (s == OK)
			s = err_set(f->e, E_INVALID,
				"events[%u]: opens too many, or closes "
				"another than the last",
				i);
	}
	return s;
}

/* Chooses the type and the factor of values. With several profiles, and with bytes, the unit
 * determines the type, else the application's name. */
static enum status choose_type(
	struct file *f, struct str unit, bool several, struct arena *a, struct text_body *b)
{
	struct str app = f->in->app;
	size_t u = 0;
	while (u < ARRAY_COUNT(units) && !str_eq(unit, str_of(units[u].name)))
		u++;
	if (u == ARRAY_COUNT(units))
		return err_set(f->e, E_INVALID, "unit \"%.*s\"", STR_ARG(str_sub(unit, 0, 32)));
	enum status s = text_type_of(&app, &b->type, f->e);
	if (s == OK && u > 0 && (several || (u == 1 && b->type.by_period))) {
		char *name = arena_printf(a, "app.%s", units[u].name);
		app = str_of(name ? name : "app");
		s = text_type_of(&app, &b->type, f->e);
	}
	f->factor = 1;
	if (b->type.by_period)
		f->factor = units[u].ns > 0 ? units[u].ns : 1e9 / f->in->rate;
	b->type.by_period = false;
	return s;
}

static enum status read_profile(struct file *f, const struct conf_node *profile, bool several,
	struct arena *a, struct profile *out)
{
	struct series_labels labels = *f->in->labels;
	struct str kind = text_at(profile, "type"), service = f->in->app;
	struct text_body b = { .format = TEXT_GROUPS,
		.rate = f->in->rate,
		.time_ns = f->in->time_ns,
		.duration_ns = f->in->duration_ns };
	struct text_type own;
	size_t begun = f->text.len;
	enum status s = choose_type(f, text_at(profile, "unit"), several, a, &b);
	if (s == OK)
		s = text_type_of(&service, &own, f->e); /* removes the suffix of the type */
	if (s == OK)
		s = labels_add(&labels, out, STR("profile_name"), text_at(profile, "name"), f->e);
	if (s == OK)
		s = labels_intern(&labels, out, service, &b.resource, f->e);
	if (s == OK && str_eq(kind, STR("sampled")))
		s = read_sampled(f, profile);
	else if (s == OK && str_eq(kind, STR("evented")))
		s = read_evented(f, profile);
	else if (s == OK)
		s = err_set(f->e, E_INVALID, "type \"%.*s\"", STR_ARG(str_sub(kind, 0, 32)));
	if (s == OK && buf_status(&f->text) != OK)
		s = err_set(f->e, E_LIMIT, "more than %zu bytes of stacks", f->text.max);
	b.bytes = str_sub(buf_view(&f->text), begun, f->text.len);
	return s == OK ? text_decode(&b, out, f->e) : s;
}

/* Whether the profiles differ in name or unit; otherwise they are parts of one. */
static bool are_several(const struct conf_node *profiles)
{
	static const char *const keys[] = { "name", "type", "unit", "startValue" };
	for (uint32_t i = 1; i < profiles->count; i++)
		for (size_t k = 0; k < ARRAY_COUNT(keys); k++)
			if (!str_eq(text_at(profiles->v[i].value, keys[k]),
				    text_at(profiles->v[0].value, keys[k])))
				return true;
	return false;
}

static enum status read_frames(struct file *f, const struct conf_node *root, struct arena *a)
{
	const struct conf_node *frames = conf_node_at(root, "shared.frames");
	if (!frames || frames->kind != CONF_LIST)
		return err_set(f->e, E_INVALID, "no frames");
	f->frames = ARENA_ARRAY(a, struct str, MAX(frames->count, 1u));
	if (!f->frames)
		return err_set(f->e, arena_status(a), "%u frames", frames->count);
	f->frame_count = frames->count;
	for (uint32_t i = 0; i < frames->count; i++)
		f->frames[i] = text_at(frames->v[i].value, "name");
	return OK;
}

enum status speedscope_decode(const struct speedscope *in, struct profile *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct file f = { .in = in, .e = e };
	arena_init(&a, TREE_BYTES_MAX);
	buf_init(&f.text, PYROSCOPE_SPELLED_MAX);
	enum status s = conf_json_parse(in->bytes, NULL, &a, &root, e);
	const struct conf_node *profiles = s == OK ? member(root, "profiles") : NULL;
	if (s == OK && (!profiles || !str_eq(text_at(root, "$schema"), STR(SCHEMA))))
		s = err_set(e, E_INVALID, "$schema is another, or there are no profiles");
	if (s == OK)
		s = read_frames(&f, root, &a);
	bool several = s == OK && are_several(profiles);
	for (uint32_t i = 0; s == OK && i < profiles->count; i++) {
		s = read_profile(&f, profiles->v[i].value, several, &a, out);
		if (s != OK)
			err_prefix(e, s, "profiles[%u]", i);
	}
	buf_deinit(&f.text);
	return s == OK ? OK : err_prefix(e, s, "speedscope");
}
