/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a query request of a request of querier.v1. The selector is parsed twice: unchanged, and
 * again with its regular expressions anchored and __name__ renamed, since firn's own parser takes
 * that for the whole type. Matchers of types are then removed from it, and determine the types that
 * are queried.
 */
#include "server/pyroscope/querier.h"
#include "server/request/request.h"

#include "base/clock.h"

#include <math.h>

#define SELECTOR_TEXT_MAX ((size_t)SELECTOR_BYTES_MAX + 4096)
/* Replaces __name__ while firn's own parser reads the selector. */
#define NAME_LABEL "__type_name__"

struct query_request querier_request(struct server_call *c, struct str selector)
{
	return (struct query_request){ .tenant = c->tenant,
		.selector = selector,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.counts = true,
		.deadline_ns = c->deadline_ns,
		.cancel = server_client_gone,
		.cancel_ctx = (void *)(uintptr_t)c->r };
}

void querier_set_range(struct query_request *q, int64_t start_ms, int64_t end_ms)
{
	int64_t most = INT64_MAX / NS_PER_MS - 1;
	if (start_ms == 0 && end_ms == 0)
		return;
	q->from_ns = MIN(MAX(start_ms, 0), most) * NS_PER_MS;
	q->to_ns = (MIN(MAX(end_ms, 0), most) + 1) * NS_PER_MS;
}

/* ---- selectors ---- */

void querier_filter_deinit(struct querier_filter *f)
{
	selector_deinit(&f->parsed);
}

struct str querier_type_part(const struct samples_type *t, struct str name, struct server_call *c)
{
	const struct {
		const char *name;
		struct str part;
	} parts[] = { { "__name__", t->name }, { NAME_LABEL, t->name },
		{ "__type__", t->sample_type }, { "__unit__", t->sample_unit },
		{ "__period_type__", t->period_type }, { "__period_unit__", t->period_unit } };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (str_eq(name, str_of(parts[i].name)))
			return parts[i].part;
	char *id = arena_printf(&c->a, "%.*s:%.*s:%.*s:%.*s:%.*s", STR_ARG(t->name),
		STR_ARG(t->sample_type), STR_ARG(t->sample_unit), STR_ARG(t->period_type),
		STR_ARG(t->period_unit));
	return id ? str_of(id) : STR("");
}

const char *const querier_type_labels[QUERIER_TYPE_LABELS] = { "__name__", "__period_type__",
	"__period_unit__", "__profile_type__", "__type__", "__unit__" };

bool querier_is_type_label(struct str name)
{
	for (size_t i = 0; i < QUERIER_TYPE_LABELS; i++)
		if (str_eq(name, str_of(querier_type_labels[i])))
			return true;
	return str_eq(name, STR(NAME_LABEL));
}

static enum status copy_text(struct server_call *c, struct buf *text, struct str *out)
{
	enum status s = buf_status(text);
	char *copy = s == OK ? arena_copy(&c->a, text->data, text->len) : NULL;
	if (!copy)
		return err_set(
			c->e, s == OK ? arena_status(&c->a) : E_INVALID, "a selector is too long");
	*out = str_make(copy, text->len);
	return OK;
}

/* firn's name of a label. */
struct str querier_plain_name(struct server_call *c, struct str name)
{
	if (str_eq(name, STR("__service_name__")))
		return STR("service_name");
	char *copy = arena_copy(&c->a, name.p, name.len);
	for (size_t i = 0; copy && i < name.len; i++)
		if (copy[i] == '.' || copy[i] == '-' || copy[i] == '/')
			copy[i] = '_';
	return copy ? str_make(copy, name.len) : STR("");
}

/* The same selector with regular expressions that match whole values. */
static enum status anchor(struct server_call *c, struct selector *s, struct str *out)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, SELECTOR_TEXT_MAX);
	for (uint32_t i = 0; i < s->matcher_count; i++) {
		struct selector_matcher *m = &s->matchers[i];
		m->name = querier_plain_name(c, m->name);
		if (m->op != SELECTOR_RE && m->op != SELECTOR_NRE)
			continue;
		char *value = arena_printf(&c->a, "^(?:%.*s)$", STR_ARG(m->value));
		if (!value)
			return server_call_no_memory(c);
		m->value = str_of(value);
	}
	selector_write(&text, s);
	return copy_text(c, &text, out);
}

/* In firn's selectors __name__ is the whole type; here it is the first part of it. */
static enum status rename_names(struct server_call *c, struct str text, struct str *out)
{
	const struct str name = STR("__name__");
	CLEANUP(buf_deinit) struct buf b;
	char quote = 0;
	buf_init(&b, SELECTOR_TEXT_MAX);
	for (size_t i = 0; i < text.len; i++) {
		char ch = text.p[i];
		bool escaped = quote && quote != '`' && ch == '\\' && i + 1 < text.len;
		if (!quote && str_starts(str_sub(text, i, text.len), name)) {
			buf_cstr(&b, NAME_LABEL);
			i += name.len - 1;
			continue;
		}
		buf_u8(&b, (uint8_t)ch);
		if (escaped)
			buf_u8(&b, (uint8_t)text.p[++i]);
		else if (quote ? ch == quote : ch == '"' || ch == '\'' || ch == '`')
			quote = quote ? 0 : ch;
	}
	return copy_text(c, &b, out);
}

enum status querier_filter_read(struct server_call *c, struct str text, struct querier_filter *out)
{
	struct selector first = { 0 };
	*out = (struct querier_filter){ 0 };
	text = str_trim(text);
	enum status s = rename_names(c, text.len ? text : STR("{}"), &text);
	if (s == OK)
		s = selector_parse(text, &c->a, &first, c->e);
	if (s == OK)
		s = anchor(c, &first, &text);
	selector_deinit(&first);
	if (s == OK)
		s = selector_parse(text, &c->a, &out->parsed, c->e);
	if (s != OK)
		return s;
	for (uint32_t i = 0; i < out->parsed.matcher_count; i++) {
		const struct selector_matcher *m = &out->parsed.matchers[i];
		if (querier_is_type_label(m->name))
			out->types[out->type_count++] = *m;
		else
			out->labels[out->label_count++] = *m;
	}
	return OK;
}

bool querier_type_fits(
	struct server_call *c, const struct querier_filter *f, const struct samples_type *t)
{
	for (uint32_t i = 0; i < f->type_count; i++)
		if (!selector_matches(&f->types[i], querier_type_part(t, f->types[i].name, c)))
			return false;
	return true;
}

/* The text of a selector: labels of a filter, a type (NULL: any), and more matchers. */
enum status querier_filter_text(struct server_call *c, const struct querier_filter *f,
	const struct samples_type *t, const struct selector_matcher *more, uint32_t more_count,
	struct str *out)
{
	struct selector_matcher all[2 * SELECTOR_MATCHERS_MAX];
	struct selector s = { .has_type = t != NULL, .matchers = all };
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, SELECTOR_TEXT_MAX);
	for (uint32_t i = 0; i < f->label_count; i++)
		all[s.matcher_count++] = f->labels[i];
	for (uint32_t i = 0; i < more_count; i++)
		all[s.matcher_count++] = more[i];
	if (t) {
		s.delta = t->delta;
		const struct str parts[] = { t->name, t->sample_type, t->sample_unit,
			t->period_type, t->period_unit };
		memcpy(s.type, parts, sizeof(parts));
	}
	selector_write(&text, &s);
	return copy_text(c, &text, out);
}

enum status querier_types_list(
	struct server_call *c, int64_t start_ms, int64_t end_ms, struct querier_types *out)
{
	struct query_request q = querier_request(c, STR("{}"));
	querier_set_range(&q, start_ms, end_ms);
	return query_list_types(c->engine, &q, &c->a, &out->v, &out->count, c->e);
}

/* All but the first word. */
static struct str id_rest(struct str id)
{
	return str_sub(id, str_index(id, ':'), id.len);
}

/* Finds a type by its id, "process_cpu:cpu:nanoseconds:cpu:nanoseconds"; NULL: there is none. A
 * type of OTLP has the name of its scope here and of its sample type in Pyroscope, so "cpu:cpu:…"
 * also finds the type "…:cpu:…" if there is only one. Names of SDKs and scrapes
 * ("process_cpu:cpu:…") are not of a scope: these must be equal. */
static const struct samples_type *find_type(
	struct server_call *c, const struct querier_types *types, struct str id)
{
	const struct samples_type *found = NULL, *other = NULL;
	bool of_otlp = str_eq(querier_type_word(id, 0), querier_type_word(id, 1)), several = false;
	for (size_t i = 0; i < types->count; i++) {
		const struct samples_type *t = &types->v[i];
		struct str have = querier_type_part(t, STR("__profile_type__"), c);
		if (str_eq(have, id) && (!found || t->delta))
			found = t;
		if (!of_otlp || pyroscope_is_profile_name(t->name) ||
			!str_eq(id_rest(have), id_rest(id)))
			continue;
		several |= other && !str_eq(other->name, t->name);
		if (!other || t->delta)
			other = t;
	}
	return found || several ? found : other;
}

struct str querier_type_word(struct str id, int n)
{
	struct str part = STR("");
	for (int i = 0; i <= n; i++)
		if (!str_split(&id, ':', &part))
			return STR("");
	return part;
}

struct str querier_type_unit(struct str id)
{
	return querier_type_word(id, 2);
}

/* ---- one selection ---- */

/* Adds a matcher like span_id=~"^(?:a|b)$". */
static enum status one_of(struct server_call *c, const char *label,
	const struct pyroscope_list *list, struct selector_matcher *out, uint32_t *count)
{
	const struct str hexadecimal = STR("0123456789abcdefABCDEF-");
	CLEANUP(buf_deinit) struct buf text = { 0 };
	if (list->count == 0)
		return OK;
	buf_init(&text, SELECTOR_TEXT_MAX);
	buf_cstr(&text, "^(?:");
	for (uint32_t i = 0; i < list->count; i++) {
		for (size_t k = 0; k < list->v[i].len; k++)
			if (str_index(hexadecimal, list->v[i].p[k]) == hexadecimal.len)
				return err_set(c->e, E_INVALID, "%s: not hexadecimal", label);
		buf_cstr(&text, i ? "|" : "");
		buf_str(&text, list->v[i]);
	}
	buf_cstr(&text, ")$");
	out[*count] = (struct selector_matcher){ .name = str_of(label), .op = SELECTOR_RE };
	return copy_text(c, &text, &out[(*count)++].value);
}

/* Checks a type of five words; removes ":delta" at its end. */
static enum status plain_type(struct server_call *c, struct str *io)
{
	const struct str delta = STR(":delta");
	size_t words = 1;
	for (size_t i = 0; i < io->len; i++)
		words += io->p[i] == ':';
	if (words == 6 && str_ends(*io, delta)) {
		io->len -= delta.len;
		words = 5;
	}
	return words == 5 ? OK
			  : err_set(c->e, E_INVALID,
				    "profile type: it has to be name:type:unit:period-type:"
				    "period-unit");
}

/* stack_trace_selector: chooses stacks that begin with its calls, and have its included frames and
 * none of the excluded ones. */
static enum status choose_stacks(
	struct server_call *c, const struct pyroscope_query *in, struct querier_selection *out)
{
	struct pyroscope_calls *calls = &out->calls;
	enum status s = pyroscope_calls_decode(in->calls, &c->a, calls, c->e);
	if (s != OK)
		return s;
	out->chosen = calls->count || calls->frame_count;
	out->q.calls = calls->v;
	out->q.call_count = calls->count;
	out->frames = (struct frame_filter){
		.of_stack = true, .some_frame = true, .conditions = out->conditions
	};
	if (calls->frame_count)
		out->q.frames = &out->frames;
	for (uint32_t i = 0; s == OK && i < calls->frame_count; i++) {
		const struct pyroscope_frame *f = &calls->frames[i];
		enum filter_op is = f->is_regex ? FILTER_MATCHES : FILTER_IS;
		enum filter_op is_not = f->is_regex ? FILTER_NOT_MATCHES : FILTER_IS_NOT;
		struct filter_condition *to = &out->conditions[out->frames.condition_count++];
		*to = (struct filter_condition){
			.field = FILTER_SHOWN, .op = f->excluded ? is_not : is, .text = f->name
		};
		s = filter_condition_compile(to, c->e);
	}
	return s == OK ? OK : err_prefix(c->e, s, "frame_filter");
}

void querier_selection_deinit(struct querier_selection *s)
{
	for (uint32_t i = 0; i < s->frames.condition_count; i++)
		filter_condition_deinit(&s->conditions[i]);
	s->frames.condition_count = 0;
}

enum status querier_select(
	struct server_call *c, const struct pyroscope_query *in, struct querier_selection *out)
{
	CLEANUP(querier_filter_deinit) struct querier_filter f = { 0 };
	struct querier_types types = { 0 };
	struct selector_matcher more[2 + QUERIER_PROFILE_LABELS_MAX];
	uint32_t count = 0, labels = 0;
	struct query_request *q = &out->q;
	*out = (struct querier_selection){ .q = querier_request(c, STR("")) };
	querier_set_range(q, in->start_ms, in->end_ms);
	if (in->profiles.count > 1)
		return err_set(c->e, E_UNSUPPORTED, "profile_id_selector: one at a time");
	struct str type = in->type;
	enum status s = choose_stacks(c, in, out);
	if (s == OK)
		s = plain_type(c, &type);
	if (s == OK)
		s = querier_types_list(c, 0, 0, &types);
	if (s == OK)
		s = querier_filter_read(c, in->selector, &f);
	if (s == OK)
		s = one_of(c, "span_id", &in->spans, more, &count);
	if (s == OK)
		s = one_of(c, "trace_id", &in->traces, more, &count);
	if (s != OK)
		return s;
	const struct samples_type *t = find_type(c, &types, type);
	out->found = t && querier_type_fits(c, &f, t);
	if (out->found)
		s = querier_filter_text(c, &f, t, more, count, &q->selector);
	if (s != OK || !out->found || in->profiles.count == 0)
		return s;
	s = querier_profile_select(c, in->profiles.v[0], q, more + count, &labels, &out->found);
	if (s == OK && out->found)
		s = querier_filter_text(c, &f, t, more, count + labels, &q->selector);
	return s;
}

enum status querier_select_steps(
	struct server_call *c, const struct pyroscope_query *in, struct querier_selection *out)
{
	*out = (struct querier_selection){ 0 };
	if (!(in->step_s >= 0.001 && in->step_s <= 1e9))
		return err_set(c->e, E_INVALID, "step: it has to be a millisecond at least");
	enum status s = querier_select(c, in, out);
	if (s != OK || !out->found)
		return s;
	struct query_request *q = &out->q;
	q->step_ns = llround(in->step_s * 1000) * NS_PER_MS;
	q->from_ns = MAX(q->from_ns, 0) / q->step_ns * q->step_ns;
	return OK;
}
