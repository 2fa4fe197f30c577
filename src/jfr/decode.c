/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes samples of events, chunk by chunk: first the settings (the event by which async-profiler
 * sampled), then the events. The stack, function or thread name of a constant is made once and kept
 * with it. Equal samples of a chunk become one with the sum of their values.
 */
#include "jfr/internal.h"

#include <stdio.h>

enum event {
	EVENT_UNKNOWN, /* not looked up yet */
	EVENT_OTHER,
	EVENT_SETTING,
	EVENT_EXECUTION,
	EVENT_WALL,
	EVENT_TLAB,
	EVENT_OUTSIDE,
	EVENT_ALLOCATION,
	EVENT_MALLOC,
	EVENT_LIVE,
	EVENT_MONITOR,
	EVENT_PARK
};

static const struct {
	const char *name;
	enum event event;
} events[] = {
	{ "jdk.ActiveSetting", EVENT_SETTING },
	{ "jdk.ExecutionSample", EVENT_EXECUTION },
	{ "profiler.WallClockSample", EVENT_WALL },
	{ "jdk.ObjectAllocationInNewTLAB", EVENT_TLAB },
	{ "jdk.ObjectAllocationOutsideTLAB", EVENT_OUTSIDE },
	{ "jdk.ObjectAllocationSample", EVENT_ALLOCATION },
	{ "profiler.Malloc", EVENT_MALLOC },
	{ "profiler.LiveObject", EVENT_LIVE },
	{ "jdk.JavaMonitorEnter", EVENT_MONITOR },
	{ "jdk.ThreadPark", EVENT_PARK },
};

enum type {
	TYPE_CPU,
	TYPE_WALL,
	TYPE_TLAB_OBJECTS,
	TYPE_TLAB_BYTES,
	TYPE_OUTSIDE_OBJECTS,
	TYPE_OUTSIDE_BYTES,
	TYPE_SAMPLE_OBJECTS,
	TYPE_SAMPLE_BYTES,
	TYPE_MALLOC_OBJECTS,
	TYPE_MALLOC_BYTES,
	TYPE_LIVE,
	TYPE_MUTEX_COUNT,
	TYPE_MUTEX_DELAY,
	TYPE_BLOCK_COUNT,
	TYPE_BLOCK_DELAY,
	TYPE_COUNT
};

static const struct {
	const char *parts[5];
} types[TYPE_COUNT] = {
	[TYPE_CPU] = { { "process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds" } },
	[TYPE_WALL] = { { "wall", "wall", "nanoseconds", "wall", "nanoseconds" } },
	[TYPE_TLAB_OBJECTS] = { { "memory", "alloc_in_new_tlab_objects", "count", "space",
		"bytes" } },
	[TYPE_TLAB_BYTES] = { { "memory", "alloc_in_new_tlab_bytes", "bytes", "space", "bytes" } },
	[TYPE_OUTSIDE_OBJECTS] = { { "memory", "alloc_outside_tlab_objects", "count", "space",
		"bytes" } },
	[TYPE_OUTSIDE_BYTES] = { { "memory", "alloc_outside_tlab_bytes", "bytes", "space",
		"bytes" } },
	[TYPE_SAMPLE_OBJECTS] = { { "memory", "alloc_sample_objects", "count", "space", "bytes" } },
	[TYPE_SAMPLE_BYTES] = { { "memory", "alloc_sample_bytes", "bytes", "space", "bytes" } },
	[TYPE_MALLOC_OBJECTS] = { { "memory", "malloc_objects", "count", "", "" } },
	[TYPE_MALLOC_BYTES] = { { "memory", "malloc_bytes", "bytes", "", "" } },
	[TYPE_LIVE] = { { "memory", "live", "count", "objects", "count" } },
	[TYPE_MUTEX_COUNT] = { { "mutex", "contentions", "count", "mutex", "count" } },
	[TYPE_MUTEX_DELAY] = { { "mutex", "delay", "nanoseconds", "mutex", "count" } },
	[TYPE_BLOCK_COUNT] = { { "block", "contentions", "count", "block", "count" } },
	[TYPE_BLOCK_DELAY] = { { "block", "delay", "nanoseconds", "block", "count" } },
};

#define EVENT_NAME_MAX 32

/* The numbers of a frame and its location. Most frames occurred shortly before. */
enum frame_slot { FRAME_METHOD, FRAME_LINE, FRAME_TYPE, FRAME_SLOTS };
struct frame {
	uint64_t n[FRAME_SLOTS];
	uint32_t class;
	uint32_t location; /* locations[] + 1; 0: none */
};
#define FRAMES_KEPT 1024u /* a power of two */

struct decoder {
	const struct jfr_options *options;
	struct profile *out;
	struct err *e;
	struct jfr_chunk *c;
	uint32_t heads[TYPE_COUNT]; /* heads of this chunk; 0: none yet */
	char event[EVENT_NAME_MAX]; /* the event by which async-profiler sampled; "": unknown */
	uint32_t event_name, event_value, thread_name; /* strings */
	struct map samples;                            /* of this chunk */
	VEC(uint32_t) frames;
	struct frame *kept; /* of this chunk: FRAMES_KEPT slots, by hash */
};

static enum status added(struct decoder *d, enum status s, const char *what)
{
	return s == OK || d->e->text[0] ? s : err_set(d->e, s, "%s: %s", what, status_text(s));
}

/* ---- constants: each made once ---- */

/* What a constant was made into: in a malicious file one constant may be used as two kinds. */
enum made { MADE_FUNCTION = 1, MADE_STACK, MADE_THREAD, MADE_CLASS, MADE_STATE, MADE_KIND };

/* The constant of a value; NULL: it has none. */
static struct jfr_constant *constant_of(struct decoder *d, const struct jfr_value *key)
{
	return key->kind == JFR_NUMBER && key->is_constant
		       ? jfr_constant_find(d->c, key->class, key->number)
		       : NULL;
}

static void keep_made(struct jfr_constant *k, enum made as, uint32_t made)
{
	k->made = made;
	k->made_as = (uint8_t)as;
}

/* A field of text of a constant, or "". */
static enum status constant_text(
	struct decoder *d, const struct jfr_value *key, const char *const *names, struct str *out)
{
	struct jfr_value v[JFR_VALUES_MAX];
	struct jfr_constant *k = constant_of(d, key);
	*out = key->kind == JFR_TEXT ? key->text : STR("");
	if (!k)
		return OK;
	if (d->c->classes.v[key->class].kind == JFR_STRING)
		return jfr_constant_text(d->c, k, out);
	enum status s = jfr_constant_read(d->c, k, names, v);
	for (size_t i = 0; s == OK && names[i]; i++)
		if (v[i].kind == JFR_TEXT && v[i].text.len && !out->len)
			*out = v[i].text;
	return s;
}

static const char *const symbol_fields[] = { "string", "name", "description", NULL };

/* "java/lang/Thread" */
static enum status class_name(struct decoder *d, const struct jfr_value *key, struct str *out)
{
	static const char *const fields[] = { "name", NULL };
	struct jfr_value v[JFR_VALUES_MAX];
	*out = STR("");
	struct jfr_constant *k = constant_of(d, key);
	if (!k)
		return OK;
	if (k->made_as == MADE_CLASS) {
		*out = profile_str(d->out, k->made);
		return jfr_spend(d->c, out->len); /* it is copied */
	}
	uint32_t string;
	enum status s = jfr_constant_read(d->c, k, fields, v);
	if (s == OK)
		s = constant_text(d, &v[0], symbol_fields, out);
	if (s == OK)
		s = jfr_stable_name(d->c, out);
	if (s == OK)
		s = profile_add_string(d->out, *out, &string);
	if (s == OK)
		keep_made(k, MADE_CLASS, string);
	return s;
}

/* Index in functions[] for a method. */
static enum status make_function(struct decoder *d, const struct jfr_value *key, uint32_t *out)
{
	static const char *const fields[] = { "type", "name", NULL };
	struct profile_function f = { 0 };
	struct jfr_value v[JFR_VALUES_MAX];
	struct str class = STR(""), name = STR("");
	struct jfr_constant *k = constant_of(d, key);
	enum status s = OK;
	if (k && k->made_as == MADE_FUNCTION) {
		*out = k->made;
		return OK;
	}
	if (k) {
		s = jfr_constant_read(d->c, k, fields, v);
		if (s == OK)
			s = class_name(d, &v[0], &class);
		if (s == OK)
			s = constant_text(d, &v[1], symbol_fields, &name);
	}
	CLEANUP(buf_deinit) struct buf whole;
	buf_init(&whole, 6 * JFR_TEXT_MAX + 16);
	buf_str(&whole, class);
	buf_cstr(&whole, class.len && name.len ? "." : "");
	buf_str(&whole, name);
	if (whole.len == 0)
		buf_cstr(&whole, "[unknown]");
	if (s == OK)
		s = buf_status(&whole);
	if (s == OK)
		s = profile_add_string(d->out, buf_view(&whole), &f.name);
	if (s == OK)
		s = profile_add_function(d->out, &f, out);
	if (s == OK && k)
		keep_made(k, MADE_FUNCTION, *out);
	return added(d, s, "functions");
}

/* Calls `of` once for the text of a constant. */
static enum status make_number(struct decoder *d, const struct jfr_value *key, enum made as,
	const char *const *names, uint32_t (*of)(struct str), uint32_t *out)
{
	struct str text;
	struct jfr_constant *k = constant_of(d, key);
	if (k && k->made_as == as) {
		*out = k->made;
		return OK;
	}
	enum status s = constant_text(d, key, names, &text);
	if (s != OK)
		return s;
	*out = of(text);
	if (k)
		keep_made(k, as, *out);
	return OK;
}

static uint32_t kind_of(struct str text)
{
	bool native = str_eq(text, STR("Native")) || str_eq(text, STR("C++"));
	return native ? FRAME_NATIVE : str_eq(text, STR("Kernel")) ? FRAME_KERNEL : FRAME_JVM;
}

static enum status make_location(struct decoder *d, const struct jfr_value *v, uint32_t *out)
{
	struct profile_location l = { 0 };
	struct profile_line line = { 0 };
	uint32_t kind = FRAME_JVM;
	enum status s = make_function(d, &v[FRAME_METHOD], &line.function);
	if (s == OK)
		s = make_number(d, &v[FRAME_TYPE], MADE_KIND, symbol_fields, kind_of, &kind);
	l.kind = (uint8_t)kind;
	/* For native frames the line is an address or 0. */
	if (l.kind == FRAME_JVM && v[FRAME_LINE].number <= INT32_MAX)
		line.line = (uint32_t)v[FRAME_LINE].number;
	return s == OK ? profile_add_location(d->out, &l, &line, 1, out) : s;
}

static enum status add_frame(struct decoder *d, struct reader *r, uint32_t class)
{
	static const char *const fields[] = { "method", "lineNumber", "type", NULL };
	struct jfr_value v[JFR_VALUES_MAX];
	struct reader begin = *r;
	struct frame f = { .class = class };
	if (!jfr_read_numbers(d->c, r, class, fields, f.n)) {
		enum status s = jfr_read(d->c, r, class, fields, v);
		if (s == OK)
			s = jfr_skip_rest(d->c, r, class);
		if (s != OK)
			return s;
		for (size_t i = 0; i < ARRAY_COUNT(f.n); i++)
			f.n[i] = v[i].number;
	}
	uint64_t hash = hash_u64(f.n[FRAME_METHOD] ^ f.n[FRAME_LINE] << 40 ^ f.n[FRAME_TYPE] << 32);
	struct frame *kept = &d->kept[hash & (FRAMES_KEPT - 1)];
	if (kept->location == 0 || kept->class != class || memcmp(kept->n, f.n, sizeof(f.n)) != 0) {
		enum status s = jfr_read(d->c, &begin, class, fields, v);
		if (s == OK)
			s = make_location(d, v, &f.location);
		if (s != OK)
			return added(d, s, "frames");
		f.location++;
		*kept = f;
	}
	return VEC_PUSH(&d->frames, kept->location - 1) ? OK : added(d, E_NOMEM, "frames");
}

/* Index in stacks[] for a stack trace. */
static enum status make_stack(struct decoder *d, const struct jfr_value *key, uint32_t *out)
{
	static const char *const fields[] = { "frames", NULL };
	struct jfr_value v[JFR_VALUES_MAX];
	struct jfr_constant *k = constant_of(d, key);
	*out = 0;
	if (!k)
		return OK;
	if (k->made_as == MADE_STACK) {
		*out = k->made;
		return OK;
	}
	enum status s = jfr_constant_read(d->c, k, fields, v);
	if (s != OK)
		return s;
	if (v[0].kind == JFR_LIST && (v[0].number > JFR_FRAMES_MAX || v[0].is_constant))
		return err_set(
			d->e, E_LIMIT, "a stack of %llu frames", (unsigned long long)v[0].number);
	VEC_CLEAR(&d->frames);
	uint64_t count = v[0].kind == JFR_LIST ? v[0].number : 0;
	struct reader r = jfr_at(d->c, count ? v[0].at : 0);
	for (uint64_t i = 0; s == OK && i < count; i++)
		s = add_frame(d, &r, v[0].class);
	if (s == OK)
		s = profile_add_stack(d->out, d->frames.v, (uint32_t)d->frames.len, out);
	if (s == OK)
		keep_made(k, MADE_STACK, *out);
	return added(d, s, "stacks");
}

/* Index in strings[] of a thread's name, 0 for none. */
static enum status make_thread(struct decoder *d, const struct jfr_value *key, uint32_t *out)
{
	static const char *const fields[] = { "javaName", "osName", NULL };
	struct str text;
	struct jfr_constant *k = constant_of(d, key);
	*out = 0;
	if (!k)
		return OK;
	if (k->made_as == MADE_THREAD) {
		*out = k->made;
		return OK;
	}
	enum status s = constant_text(d, key, fields, &text);
	if (s == OK)
		s = profile_add_string(d->out, text, out);
	if (s == OK)
		keep_made(k, MADE_THREAD, *out);
	return added(d, s, "threads");
}

/* ---- samples ---- */

static enum status make_head(struct decoder *d, enum type type)
{
	struct profile_type t = { .delta = type != TYPE_LIVE };
	struct profile_head h = { .time_ns = d->options->time_ns,
		.duration_ns = d->options->duration_ns };
	uint32_t *const to[] = { &t.name, &t.sample_type, &t.sample_unit, &t.period_type,
		&t.period_unit };
	enum status s = OK;
	if (h.time_ns == 0) {
		h.time_ns = d->c->start_ns;
		h.duration_ns = d->c->duration_ns;
	}
	if (type == TYPE_CPU || type == TYPE_WALL)
		h.period = d->options->period_ns;
	for (size_t i = 0; s == OK && i < ARRAY_COUNT(to); i++)
		s = profile_add_string(d->out, str_of(types[type].parts[i]), to[i]);
	if (s == OK)
		s = profile_add_type(d->out, &t, &h.type);
	if (s == OK)
		s = profile_add_head(d->out, &h, &d->heads[type]);
	return added(d, s, "types");
}

struct sample_key {
	uint32_t head, stack, own;
};

static bool sample_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile_sample *s = &((const struct profile *)ctx)->samples.v[value];
	const struct sample_key *k = key;
	return s->head == k->head && s->stack == k->stack && s->own == k->own;
}

static enum status add_value(
	struct decoder *d, enum type type, uint32_t stack, uint32_t own, uint64_t value)
{
	enum status s = d->heads[type] ? OK : make_head(d, type);
	if (s != OK)
		return s;
	struct sample_key k = { d->heads[type], stack, own };
	uint64_t hash = hash_u64(((uint64_t)stack << 32 | own) ^ (uint64_t)k.head << 24);
	uint32_t at = map_find(&d->samples, hash, sample_equal, d->out, &k);
	int64_t add = (int64_t)MIN(value, (uint64_t)INT64_MAX);
	if (at != MAP_NONE) {
		int64_t *sum = &d->out->samples.v[at].value;
		*sum = *sum > INT64_MAX - add ? INT64_MAX : *sum + add;
		return OK;
	}
	if (add == 0) {
		d->out->zero_samples++;
		return OK;
	}
	struct profile_sample x = { .value = add,
		.time_ns = d->out->heads.v[k.head].time_ns,
		.head = k.head,
		.stack = stack,
		.resource = d->options->resource,
		.own = own };
	s = profile_add_sample(d->out, &x);
	if (s == OK && !map_insert(&d->samples, hash, (uint32_t)d->out->samples.len - 1))
		s = E_NOMEM;
	return added(d, s, "samples");
}

enum slot {
	SLOT_STACK,
	SLOT_THREAD,
	SLOT_SIZE,
	SLOT_DURATION,
	SLOT_STATE,
	SLOT_SAMPLES,
	SLOT_CONTEXT,
	SLOT_SPAN,
	SLOT_SPAN_NAME,
	SLOT_TRACE_HIGH,
	SLOT_TRACE_LOW,
	SLOT_COUNT
};
static_assert(SLOT_COUNT < JFR_VALUES_MAX, "values");

/* By event, as their fields for threads and sizes have different names. */
#define FIELDS(thread, size)                                                                       \
	{                                                                                          \
		"stackTrace", thread, size, "duration", "state", "samples", "contextId", "spanId", \
			"spanName", "traceIdHi", "traceIdLo", NULL                                 \
	}
static const char *const execution_fields[] = FIELDS("sampledThread", "weight");
static const char *const tlab_fields[] = FIELDS("eventThread", "tlabSize");
static const char *const outside_fields[] = FIELDS("eventThread", "allocationSize");
static const char *const weight_fields[] = FIELDS("eventThread", "weight");
static const char *const malloc_fields[] = FIELDS("eventThread", "size");

/* Makes trace_id=… from its two halves. */
static enum status make_trace(
	struct decoder *d, const struct jfr_value *v, struct profile_label *out)
{
	char text[33];
	snprintf(text, sizeof(text), "%016llx%016llx",
		(unsigned long long)v[SLOT_TRACE_HIGH].number,
		(unsigned long long)v[SLOT_TRACE_LOW].number);
	enum status s = profile_add_string(d->out, STR("trace_id"), &out->name);
	return s == OK ? profile_add_string(d->out, str_of(text), &out->value) : s;
}

static enum status make_all_labels(struct decoder *d, const struct jfr_value *v, uint32_t *out)
{
	struct profile_label labels[JFR_CONTEXT_LABELS_MAX + 3];
	uint32_t count = 0, more = 0, thread;
	uint64_t context = v[SLOT_CONTEXT].number, span = v[SLOT_SPAN].number;
	enum status s = make_thread(d, &v[SLOT_THREAD], &thread);
	if (thread)
		labels[count++] = (struct profile_label){ d->thread_name, thread };
	if (d->event_value)
		labels[count++] = (struct profile_label){ d->event_name, d->event_value };
	if (s == OK && (v[SLOT_TRACE_HIGH].number || v[SLOT_TRACE_LOW].number))
		s = make_trace(d, v, &labels[count++]);
	if (s == OK && d->options->context && (context || span))
		s = d->options->context(d->options->ctx, context, span, v[SLOT_SPAN_NAME].number,
			d->out, labels + count, JFR_CONTEXT_LABELS_MAX, &more);
	if (s == OK)
		s = profile_add_labels(d->out, labels, count + more, out);
	return added(d, s, "labels");
}

/* Makes the sample's labels; those of a thread without a context are made once. */
static enum status make_labels(struct decoder *d, const struct jfr_value *v, uint32_t *out)
{
	bool is_bare = !(v[SLOT_CONTEXT].number | v[SLOT_SPAN].number | v[SLOT_TRACE_HIGH].number |
			 v[SLOT_TRACE_LOW].number);
	struct jfr_constant *k = is_bare ? constant_of(d, &v[SLOT_THREAD]) : NULL;
	if (k && k->labels) {
		*out = k->labels - 1;
		return OK;
	}
	enum status s = make_all_labels(d, v, out);
	if (s == OK && k)
		k->labels = *out + 1;
	return s;
}

enum state { STATE_OTHER, STATE_SLEEPING, STATE_RUNNABLE };

static uint32_t state_of(struct str state)
{
	return str_eq(state, STR("STATE_SLEEPING"))   ? STATE_SLEEPING
	       : str_eq(state, STR("STATE_RUNNABLE")) ? STATE_RUNNABLE
						      : STATE_OTHER;
}

static enum status read_state(struct decoder *d, const struct jfr_value *v, uint32_t *out)
{
	static const char *const fields[] = { "name", NULL };
	return make_number(d, &v[SLOT_STATE], MADE_STATE, fields, state_of, out);
}

static enum status add_execution(
	struct decoder *d, const struct jfr_value *v, uint32_t stack, uint32_t own)
{
	uint32_t state = STATE_OTHER;
	uint64_t period = (uint64_t)d->options->period_ns;
	enum status s = read_state(d, v, &state);
	if (s == OK && state != STATE_SLEEPING)
		s = add_value(d, TYPE_CPU, stack, own, period);
	if (s == OK && str_eq(str_of(d->event), STR("wall")))
		s = add_value(d, TYPE_WALL, stack, own, period);
	return s;
}

/* Adds a sample of the wall clock. A thread that runs when it is sampled counts as on the CPU. */
static enum status add_wall(
	struct decoder *d, const struct jfr_value *v, uint32_t stack, uint32_t own, uint64_t times)
{
	uint32_t state = STATE_OTHER;
	uint64_t most = (uint64_t)(INT64_MAX / MAX(d->options->period_ns, 1));
	uint64_t value = MIN(times, most) * (uint64_t)d->options->period_ns;
	enum status s = read_state(d, v, &state);
	if (s == OK && state == STATE_RUNNABLE && str_eq(str_of(d->event), STR("wall")))
		s = add_value(d, TYPE_CPU, stack, own, value);
	return s == OK ? add_value(d, TYPE_WALL, stack, own, value) : s;
}

static uint64_t ticks_ns(const struct decoder *d, uint64_t ticks)
{
	unsigned __int128 ns = (unsigned __int128)ticks * 1000000000 / d->c->ticks_per_second;
	return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static enum status add_pair(
	struct decoder *d, enum type first, uint64_t value, uint32_t stack, uint32_t own)
{
	enum status s = add_value(d, first, stack, own, 1);
	return s == OK ? add_value(d, first + 1, stack, own, value) : s;
}

static enum status add_event(struct decoder *d, enum event event, struct reader *r, uint32_t class)
{
	static const char *const *const fields[] = {
		[EVENT_EXECUTION] = execution_fields,
		[EVENT_WALL] = execution_fields,
		[EVENT_TLAB] = tlab_fields,
		[EVENT_OUTSIDE] = outside_fields,
		[EVENT_ALLOCATION] = weight_fields,
		[EVENT_MALLOC] = malloc_fields,
		[EVENT_LIVE] = outside_fields,
		[EVENT_MONITOR] = weight_fields,
		[EVENT_PARK] = weight_fields,
	};
	struct jfr_value v[JFR_VALUES_MAX];
	uint32_t stack = 0, own = 0;
	enum status s = jfr_read(d->c, r, class, fields[event], v);
	if (s == OK)
		s = make_stack(d, &v[SLOT_STACK], &stack);
	if (s == OK)
		s = make_labels(d, v, &own);
	if (s != OK)
		return s;
	uint64_t size = v[SLOT_SIZE].number, delay = ticks_ns(d, v[SLOT_DURATION].number);
	uint64_t times = v[SLOT_SAMPLES].kind == JFR_NUMBER ? v[SLOT_SAMPLES].number : 1;
	switch (event) {
	case EVENT_EXECUTION:
		return add_execution(d, v, stack, own);
	case EVENT_WALL:
		return add_wall(d, v, stack, own, times);
	case EVENT_TLAB:
		return add_pair(d, TYPE_TLAB_OBJECTS, size, stack, own);
	case EVENT_OUTSIDE:
		return add_pair(d, TYPE_OUTSIDE_OBJECTS, size, stack, own);
	case EVENT_ALLOCATION:
		return add_pair(d, TYPE_SAMPLE_OBJECTS, size, stack, own);
	case EVENT_MALLOC:
		return add_pair(d, TYPE_MALLOC_OBJECTS, size, stack, own);
	case EVENT_LIVE:
		return add_value(d, TYPE_LIVE, stack, own, 1);
	case EVENT_MONITOR:
		return add_pair(d, TYPE_MUTEX_COUNT, delay, stack, own);
	default:
		return add_pair(d, TYPE_BLOCK_COUNT, delay, stack, own);
	}
}

/* ---- a chunk ---- */

/* async-profiler records the event by which it samples as a setting: event=itimer. */
static enum status read_setting(struct decoder *d, struct reader *r, uint32_t class)
{
	static const char *const names[] = { "name", NULL };
	static const char *const values[] = { "value", NULL };
	struct jfr_value v[JFR_VALUES_MAX];
	struct str text;
	struct reader again = *r;
	enum status s = jfr_read(d->c, r, class, names, v);
	if (s == OK)
		s = constant_text(d, &v[0], symbol_fields, &text);
	if (s != OK || !str_eq(text, STR("event")))
		return s;
	s = jfr_read(d->c, &again, class, values, v);
	if (s == OK)
		s = constant_text(d, &v[0], symbol_fields, &text);
	if (s == OK)
		snprintf(d->event, sizeof(d->event), "%.*s", STR_ARG(text));
	return s;
}

static enum event event_of(struct jfr_class *k)
{
	if (k->event == EVENT_UNKNOWN) {
		k->event = EVENT_OTHER;
		for (size_t i = 0; i < ARRAY_COUNT(events); i++)
			if (str_eq(k->name, str_of(events[i].name)))
				k->event = (int)events[i].event;
	}
	return (enum event)k->event;
}

static bool is_wanted(struct jfr_class *k)
{
	return event_of(k) >= EVENT_SETTING;
}

static enum status each_event(struct decoder *d, bool settings)
{
	enum status s = OK;
	for (size_t i = 0; s == OK && i < d->c->events.len; i++) {
		struct jfr_event event;
		size_t at = d->c->events.v[i];
		s = jfr_event_read(d->c, &at, &event);
		if (s != OK)
			break;
		uint32_t class = jfr_class_find(d->c, event.type);
		enum event what = event_of(&d->c->classes.v[class]);
		if (what == EVENT_SETTING && settings)
			s = read_setting(d, &event.r, class);
		else if (what > EVENT_SETTING && !settings)
			s = add_event(d, what, &event.r, class);
	}
	return s;
}

static enum status read_chunk(struct decoder *d)
{
	memset(d->heads, 0, sizeof(d->heads));
	map_clear(&d->samples);
	memset(d->kept, 0, FRAMES_KEPT * sizeof(*d->kept));
	d->event[0] = 0;
	enum status s = each_event(d, true);
	if (s == OK)
		s = profile_add_string(d->out, str_of(d->event), &d->event_value);
	return s == OK ? each_event(d, false) : s;
}

static enum status read_all(struct decoder *d, struct str bytes)
{
	size_t offset = 0;
	enum status s = profile_add_string(d->out, STR("jfr_event"), &d->event_name);
	if (s == OK)
		s = profile_add_string(d->out, STR("thread_name"), &d->thread_name);
	for (int n = 0; s == OK && (offset < bytes.len || n == 0); n++) {
		struct jfr_chunk chunk;
		size_t length = 0;
		if (n == JFR_CHUNKS_MAX)
			return err_set(d->e, E_LIMIT, "more than %d chunks", JFR_CHUNKS_MAX);
		d->c = &chunk;
		s = jfr_chunk_open(
			&chunk, str_sub(bytes, offset, bytes.len), is_wanted, &length, d->e);
		if (s == OK)
			s = read_chunk(d);
		if (s != OK)
			err_prefix(d->e, s, "jfr: chunk %d", n);
		jfr_chunk_deinit(&chunk);
		offset += length;
	}
	return s;
}

enum status jfr_decode(
	struct str bytes, const struct jfr_options *options, struct profile *out, struct err *e)
{
	struct err none = { 0 };
	struct decoder d = { .options = options, .out = out, .e = e ? e : &none };
	size_t samples = out->samples.len;
	*d.e = (struct err){ 0 };
	d.kept = calloc(FRAMES_KEPT, sizeof(*d.kept));
	enum status s = d.kept ? read_all(&d, bytes) : E_NOMEM;
	if (s != OK) {
		out->samples.len = samples;
		if (!d.e->text[0])
			err_set(d.e, s, "%s", status_text(s));
	}
	map_deinit(&d.samples);
	VEC_FREE(&d.frames);
	free(d.kept);
	return s;
}
