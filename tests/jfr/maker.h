/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maker: chunks of JFR, written as the JDK and async-profiler write them, with what a test wants
 * wrong in them.
 */
#pragma once

#include "base/buf.h"
#include "jfr/jfr.h"

#include <string.h>

#define MAKER_TEXTS_MAX 128
#define MAKER_START INT64_C(1700000000000000000)

/* Ids of classes. */
enum {
	ID_LONG = 20,
	ID_INT,
	ID_BOOLEAN,
	ID_STRING,
	ID_FLOAT,
	ID_THREAD,
	ID_STACK,
	ID_FRAME,
	ID_METHOD,
	ID_CLASS,
	ID_SYMBOL,
	ID_STATE,
	ID_KIND,
	ID_SETTING,
	ID_EXECUTION,
	ID_WALL,
	ID_TLAB,
	ID_OUTSIDE,
	ID_ALLOCATION,
	ID_MALLOC,
	ID_LIVE,
	ID_MONITOR,
	ID_PARK,
	ID_DOUBLE,
	ID_STRANGE, /* an event that nobody knows, with every kind of field */
};

struct maker_field {
	const char *name;
	int class;
	bool constant, list;
};
struct maker_class {
	int id;
	const char *name;
	struct maker_field fields[10];
};

#define EVENT(thread, size)                                                  \
	{                                                                    \
		{ "startTime", ID_LONG }, { thread, ID_THREAD, true },       \
			{ "stackTrace", ID_STACK, true }, { size, ID_LONG }, \
			{ "duration", ID_LONG },                             \
		{                                                            \
			"contextId", ID_LONG                                 \
		}                                                            \
	}
static const struct maker_class maker_classes[] = {
	{ ID_LONG, "long", { 0 } },
	{ ID_INT, "int", { 0 } },
	{ ID_BOOLEAN, "boolean", { 0 } },
	{ ID_STRING, "java.lang.String", { 0 } },
	{ ID_FLOAT, "float", { 0 } },
	{ ID_DOUBLE, "double", { 0 } },
	{ ID_THREAD, "java.lang.Thread",
		{ { "osName", ID_STRING }, { "osThreadId", ID_LONG }, { "javaName", ID_STRING } } },
	{ ID_STACK, "jdk.types.StackTrace",
		{ { "truncated", ID_BOOLEAN }, { "frames", ID_FRAME, false, true } } },
	{ ID_FRAME, "jdk.types.StackFrame",
		{ { "method", ID_METHOD, true }, { "lineNumber", ID_INT },
			{ "bytecodeIndex", ID_INT }, { "type", ID_KIND, true } } },
	{ ID_METHOD, "jdk.types.Method",
		{ { "type", ID_CLASS, true }, { "name", ID_SYMBOL, true } } },
	{ ID_CLASS, "java.lang.Class", { { "name", ID_SYMBOL, true } } },
	{ ID_SYMBOL, "jdk.types.Symbol", { { "string", ID_STRING } } },
	{ ID_STATE, "jdk.types.ThreadState", { { "name", ID_STRING } } },
	{ ID_KIND, "jdk.types.FrameType", { { "description", ID_STRING } } },
	{ ID_SETTING, "jdk.ActiveSetting", { { "name", ID_STRING }, { "value", ID_STRING } } },
	{ ID_EXECUTION, "jdk.ExecutionSample",
		{ { "startTime", ID_LONG }, { "sampledThread", ID_THREAD, true },
			{ "stackTrace", ID_STACK, true }, { "state", ID_STATE, true },
			{ "contextId", ID_LONG }, { "spanId", ID_LONG },
			{ "spanName", ID_LONG } } },
	{ ID_WALL, "profiler.WallClockSample",
		{ { "startTime", ID_LONG }, { "sampledThread", ID_THREAD, true },
			{ "stackTrace", ID_STACK, true }, { "state", ID_STATE, true },
			{ "samples", ID_INT }, { "traceIdHi", ID_LONG },
			{ "traceIdLo", ID_LONG } } },
	{ ID_TLAB, "jdk.ObjectAllocationInNewTLAB", EVENT("eventThread", "tlabSize") },
	{ ID_OUTSIDE, "jdk.ObjectAllocationOutsideTLAB", EVENT("eventThread", "allocationSize") },
	{ ID_ALLOCATION, "jdk.ObjectAllocationSample", EVENT("eventThread", "weight") },
	{ ID_MALLOC, "profiler.Malloc", EVENT("eventThread", "size") },
	{ ID_LIVE, "profiler.LiveObject", EVENT("eventThread", "allocationSize") },
	{ ID_MONITOR, "jdk.JavaMonitorEnter", EVENT("eventThread", "address") },
	{ ID_PARK, "jdk.ThreadPark", EVENT("eventThread", "address") },
	{ ID_STRANGE, "a.Strange",
		{ { "f", ID_FLOAT }, { "d", ID_DOUBLE }, { "texts", ID_STRING, false, true },
			{ "thread", ID_THREAD }, { "keys", ID_CLASS, true, true } } },
};

struct maker {
	struct buf out; /* the chunk */
	const char *texts[MAKER_TEXTS_MAX];
	size_t text_count;
	struct buf tree;
	size_t event; /* where the open event begins */
	struct buf body;
};

static inline void maker_packed(struct buf *b, uint64_t v)
{
	for (int i = 0; i < 8 && v >= 0x80; i++, v >>= 7)
		buf_u8(b, (uint8_t)(v | 0x80));
	buf_u8(b, (uint8_t)v);
}

/* An event begins in m->body, and is written with its size. */
static inline struct buf *maker_event(struct maker *m, uint64_t type)
{
	buf_clear(&m->body);
	maker_packed(&m->body, type);
	return &m->body;
}

static inline void maker_event_end(struct maker *m)
{
	/* Four bytes, as both writers pad it. */
	uint32_t size = (uint32_t)m->body.len + 4;
	for (int i = 0; i < 3; i++)
		buf_u8(&m->out, (uint8_t)(size >> 7 * i | 0x80));
	buf_u8(&m->out, (uint8_t)(size >> 21 & 0x7F));
	buf_str(&m->out, buf_view(&m->body));
}

static inline void maker_text(struct buf *b, const char *s)
{
	buf_u8(b, 3);
	maker_packed(b, strlen(s));
	buf_cstr(b, s);
}

static inline void maker_attribute(struct maker *m, const char *s)
{
	size_t i = 0;
	while (i < m->text_count && strcmp(m->texts[i], s) != 0)
		i++;
	if (i == m->text_count && i < MAKER_TEXTS_MAX)
		m->texts[m->text_count++] = s;
	maker_packed(&m->tree, i);
}

static inline void maker_element(struct maker *m, const char *name, const char *const *pairs,
	size_t pair_count, size_t children)
{
	maker_attribute(m, name);
	maker_packed(&m->tree, pair_count);
	for (size_t i = 0; i < 2 * pair_count; i++)
		maker_attribute(m, pairs[i]);
	maker_packed(&m->tree, children);
}

static inline const char *maker_number(int n)
{
	static char texts[128][8];
	snprintf(texts[n], sizeof(texts[n]), "%d", n);
	return texts[n];
}

static inline void maker_metadata(struct maker *m)
{
	maker_element(m, "root", NULL, 0, 2);
	maker_element(m, "metadata", NULL, 0, ARRAY_COUNT(maker_classes));
	for (size_t i = 0; i < ARRAY_COUNT(maker_classes); i++) {
		const struct maker_class *c = &maker_classes[i];
		size_t fields = 0;
		while (fields < ARRAY_COUNT(c->fields) && c->fields[fields].name)
			fields++;
		const char *pairs[] = { "name", c->name, "superType", "x", "id",
			maker_number(c->id) };
		maker_element(m, "class", pairs, 3, fields + 1);
		maker_element(m, "annotation", NULL, 0, 0);
		for (size_t k = 0; k < fields; k++) {
			const struct maker_field *f = &c->fields[k];
			const char *field[8] = { "name", f->name, "class", maker_number(f->class) };
			size_t count = 2;
			if (f->constant) {
				field[2 * count] = "constantPool";
				field[2 * count++ + 1] = "true";
			}
			if (f->list) {
				field[2 * count] = "dimension";
				field[2 * count++ + 1] = "1";
			}
			maker_element(m, "field", field, count, 0);
		}
	}
	maker_element(m, "region", NULL, 0, 0);
	struct buf *b = maker_event(m, 0);
	for (int i = 0; i < 3; i++)
		maker_packed(b, 1);
	maker_packed(b, m->text_count);
	for (size_t i = 0; i < m->text_count; i++)
		maker_text(b, m->texts[i]);
	buf_str(b, buf_view(&m->tree));
	maker_event_end(m);
}

static inline void maker_big(struct buf *b, uint64_t v, int bytes)
{
	while (bytes-- > 0)
		buf_u8(b, (uint8_t)(v >> 8 * bytes));
}

static inline void maker_begin(struct maker *m)
{
	*m = (struct maker){ 0 };
	buf_init(&m->out, 1 << 24);
	buf_init(&m->tree, 1 << 20);
	buf_init(&m->body, 1 << 23);
	buf_put(&m->out, "FLR", 4);
	maker_big(&m->out, 2, 2);
	maker_big(&m->out, 0, 2);
	for (int i = 0; i < 3; i++) /* size, checkpoint, metadata: maker_end() */
		maker_big(&m->out, 0, 8);
	maker_big(&m->out, (uint64_t)MAKER_START, 8);
	maker_big(&m->out, 5000000000, 8);
	maker_big(&m->out, 100, 8);
	maker_big(&m->out, 1000000, 8); /* ticks a second */
	maker_big(&m->out, 1, 4);
}

static inline void maker_patch(struct buf *b, size_t at, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		b->data[at + (size_t)i] = (uint8_t)(v >> 8 * (7 - i));
}

/* The metadata comes last, as in both. */
static inline struct str maker_end(struct maker *m)
{
	size_t at = m->out.len;
	maker_metadata(m);
	maker_patch(&m->out, 8, m->out.len);
	maker_patch(&m->out, 24, at);
	return buf_view(&m->out);
}

static inline void maker_deinit(struct maker *m)
{
	buf_deinit(&m->out);
	buf_deinit(&m->tree);
	buf_deinit(&m->body);
}

static inline void maker_pool(struct buf *b, uint64_t class, uint64_t count)
{
	maker_packed(b, class);
	maker_packed(b, count);
}

/* Symbols 1 "main", 2 "App", 3 "sin"; methods 1 App.main, 2 native sin; stacks 1 (sin in main, line
 * 7), 2 (main); threads 1 "worker", 2 "os"; states 1 and 2. */
static inline void maker_constants(struct maker *m)
{
	static const char *const symbols[] = { "main", "App", "sin" };
	struct buf *b = maker_event(m, 1);
	for (int i = 0; i < 3; i++)
		maker_packed(b, 0);
	buf_u8(b, 0);
	maker_packed(b, 7);
	maker_pool(b, ID_SYMBOL, 3);
	for (uint64_t i = 0; i < 3; i++) {
		maker_packed(b, i + 1);
		maker_text(b, symbols[i]);
	}
	maker_pool(b, ID_CLASS, 1);
	buf_put(b, "\x01\x02", 2);
	maker_pool(b, ID_METHOD, 2);
	buf_put(b, "\x01\x01\x01\x02\x00\x03", 6);
	maker_pool(b, ID_KIND, 2);
	maker_packed(b, 1);
	maker_text(b, "Interpreted");
	maker_packed(b, 2);
	maker_text(b, "Native");
	maker_pool(b, ID_STACK, 2);
	buf_put(b, "\x01\x00\x02\x02\x00\x00\x02\x01\x07\x00\x01", 11);
	buf_put(b, "\x02\x00\x01\x01\x09\x00\x01", 7);
	maker_pool(b, ID_THREAD, 2);
	maker_packed(b, 1);
	maker_text(b, "os");
	maker_packed(b, 77);
	maker_text(b, "worker");
	maker_packed(b, 2);
	maker_text(b, "os");
	maker_packed(b, 78);
	buf_u8(b, 0);
	maker_pool(b, ID_STATE, 2);
	maker_packed(b, 1);
	maker_text(b, "STATE_RUNNABLE");
	maker_packed(b, 2);
	maker_text(b, "STATE_SLEEPING");
	maker_event_end(m);
}

static inline void maker_setting(struct maker *m, const char *name, const char *value)
{
	struct buf *b = maker_event(m, ID_SETTING);
	maker_text(b, name);
	maker_text(b, value);
	maker_event_end(m);
}

static inline void maker_execution(
	struct maker *m, uint64_t thread, uint64_t stack, uint64_t state, uint64_t context)
{
	struct buf *b = maker_event(m, ID_EXECUTION);
	uint64_t values[] = { 200, thread, stack, state, context, context ? 0xABCDEF : 0, 5 };
	for (size_t i = 0; i < ARRAY_COUNT(values); i++)
		maker_packed(b, values[i]);
	maker_event_end(m);
}

/* An event of the usual form, in stack 2 of thread 2. */
static inline void maker_other(struct maker *m, uint64_t id, uint64_t size, uint64_t duration)
{
	struct buf *b = maker_event(m, id);
	uint64_t values[] = { 200, 2, 2, size, duration, 0 };
	for (size_t i = 0; i < ARRAY_COUNT(values); i++)
		maker_packed(b, values[i]);
	maker_event_end(m);
}

static inline void maker_strange(struct maker *m)
{
	struct buf *b = maker_event(m, ID_STRANGE);
	buf_zero(b, 12);
	/* Texts in each form: none, "", a constant's, UTF-8, chars, Latin-1. */
	buf_put(b, "\x06\x00\x01\x02\x05\x03\x01x\x04\x02\x81\x01y\x05\x01\xE9", 16);
	maker_text(b, "os");
	maker_packed(b, UINT64_MAX);
	buf_u8(b, 1);
	buf_put(b, "\x02\x01\x02", 3);
	maker_event_end(m);
}
