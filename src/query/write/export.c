/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flame graphs as files of other tools. Both lay a merged profile out as if it had been one run: a
 * call begins where its previous sibling ends, and its own time lies at its end.
 *
 * speedscope: an "evented" profile (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts).
 * Firefox: the processed profile format, version 46 (firefox-devtools/profiler,
 * docs-developer/CHANGELOG-formats.md; newer pages upgrade it), a sample for each call that has a
 * value besides its children's, its weight in milliseconds, bytes, or counts.
 */
#include "query/plan/plan.h"
#include "query/write/formats.h"
#include "query/write/json.h"

#include <stdlib.h>

/* Nodes with the same name, file and binary have the same frame. */
struct frames {
	const struct query_flame *f;
	uint32_t *of;   /* by node */
	uint32_t *node; /* by frame: the first node of it */
	uint32_t count;
	struct map index;
};

static bool frame_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct frames *s = ctx;
	uint32_t a = s->node[value], b = *(const uint32_t *)key;
	return s->f->name[a] == s->f->name[b] && s->f->file[a] == s->f->file[b] &&
	       s->f->binary[a] == s->f->binary[b];
}

static enum status make_frames(
	struct frames *s, const struct query_flame *f, struct arena *a, struct err *e)
{
	*s = (struct frames){ .f = f };
	s->of = ARENA_ARRAY(a, uint32_t, f->count);
	s->node = ARENA_ARRAY(a, uint32_t, f->count);
	if (!s->of || !s->node)
		return err_set(e, arena_status(a), "flame graph of %u nodes", f->count);
	for (uint32_t i = 1; i < f->count; i++) {
		uint64_t hash = hash_u64(
			((uint64_t)f->name[i] << 32 | f->file[i]) ^ (uint64_t)f->binary[i] << 20);
		uint32_t id = map_find(&s->index, hash, frame_equal, s, &i);
		if (id == MAP_NONE) {
			id = s->count++;
			s->node[id] = i;
			if (!map_insert(&s->index, hash, id)) {
				map_deinit(&s->index);
				return err_set(e, E_NOMEM, "%u frames", id);
			}
		}
		s->of[i] = id;
	}
	map_deinit(&s->index);
	return OK;
}

static void comma(struct buf *b)
{
	uint8_t last = b->len ? b->data[b->len - 1] : '[';
	if (!b->failed && last != '[' && last != '{')
		buf_u8(b, ',');
}

/* ---- speedscope ---- */

static const char *speedscope_unit(struct str unit)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds",
		"seconds", "bytes" };
	for (size_t i = 0; i < ARRAY_COUNT(known); i++)
		if (str_eq(unit, str_of(known[i])))
			return known[i];
	return "none";
}

static void put_event(struct buf *b, char type, uint32_t frame, int64_t at)
{
	comma(b);
	buf_printf(b, "{\"type\":\"%c\",\"frame\":%u,\"at\":", type, frame);
	query_json_i64(b, at);
	buf_u8(b, '}');
}

/* Nodes are in depth-first order: a call closes before the next that is not below it. */
static enum status put_events(struct buf *b, const struct query_flame *f, const struct frames *s,
	struct arena *a, int64_t *out_end, struct err *e)
{
	int64_t *end = ARENA_ARRAY(a, int64_t, f->count);    /* where the call ends */
	int64_t *cursor = ARENA_ARRAY(a, int64_t, f->count); /* where its next child begins */
	if (!end || !cursor)
		return err_set(e, arena_status(a), "flame graph of %u nodes", f->count);
	uint32_t open = 0;
	for (uint32_t i = 1; i < f->count; i++) {
		if (f->total[i] <= 0) /* would have no width */
			continue;
		for (; open != f->parent[i]; open = f->parent[open])
			put_event(b, 'C', s->of[open], end[open]);
		cursor[i] = cursor[open];
		end[i] = query_add(cursor[open], f->total[i]);
		cursor[open] = end[i];
		put_event(b, 'O', s->of[i], cursor[i]);
		open = i;
	}
	for (; open != 0; open = f->parent[open])
		put_event(b, 'C', s->of[open], end[open]);
	*out_end = cursor[0];
	return OK;
}

static void put_speedscope_frame(struct buf *b, const struct query_flame *f, uint32_t node)
{
	struct str file = f->strings[f->file[node]], binary = f->strings[f->binary[node]];
	comma(b);
	buf_u8(b, '{');
	query_json_pair_str(b, "name", f->strings[f->name[node]]);
	if (file.len || binary.len)
		query_json_pair_str(b, "file", file.len ? file : binary);
	if (file.len && f->line[node])
		query_json_pair_i64(b, "line", f->line[node]);
	buf_u8(b, '}');
}

enum status query_export_speedscope(
	const struct query_flame *f, struct str name, struct arena *a, struct buf *b, struct err *e)
{
	struct frames s;
	int64_t end = 0;
	enum status st = make_frames(&s, f, a, e);
	if (st != OK)
		return st;
	buf_cstr(b, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		    "\"exporter\":\"firn\"");
	query_json_pair_str(b, "name", name);
	buf_cstr(b, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < s.count; i++)
		put_speedscope_frame(b, f, s.node[i]);
	buf_cstr(b, "]},\"profiles\":[{\"type\":\"evented\"");
	query_json_pair_str(b, "name", name);
	query_json_pair_str(b, "unit", str_of(speedscope_unit(f->unit)));
	buf_cstr(b, ",\"startValue\":0,\"events\":[");
	st = put_events(b, f, &s, a, &end, e);
	buf_u8(b, ']');
	query_json_pair_i64(b, "endValue", end);
	buf_cstr(b, "}]}");
	return st;
}

/* ---- Firefox ---- */

/* The categories that frames are coloured by. */
static const struct category {
	const char *name;
	const char *color;
} categories[] = { { "Native", "blue" }, { "Kernel", "orange" }, { "Runtime", "yellow" },
	{ "Other", "grey" } };

static uint32_t category_of(uint8_t kind)
{
	if (kind == FRAME_KERNEL)
		return 1;
	if (kind == FRAME_NATIVE || kind == FRAME_GO || kind == FRAME_RUST)
		return 0;
	return kind == FRAME_UNKNOWN || kind == FRAME_MARKER ? 3 : 2;
}

static void begin_column(struct buf *b, const char *name)
{
	query_json_key(b, name);
	buf_u8(b, '[');
}

static void put_number(struct buf *b, int64_t v)
{
	comma(b);
	query_json_i64(b, v);
}

/* A column of `count` equal values. */
static void put_same(struct buf *b, const char *name, const char *value, uint32_t count)
{
	begin_column(b, name);
	for (uint32_t i = 0; i < count; i++) {
		comma(b);
		buf_cstr(b, value);
	}
	buf_u8(b, ']');
}

static void put_counting(struct buf *b, const char *name, uint32_t count)
{
	begin_column(b, name);
	for (uint32_t i = 0; i < count; i++)
		put_number(b, i);
	buf_u8(b, ']');
}

static void put_meta(struct buf *b, struct str name)
{
	buf_cstr(b, "\"meta\":{\"interval\":1,\"startTime\":0,\"processType\":0,\"product\":");
	buf_json_str(b, name);
	buf_cstr(b, ",\"stackwalk\":1,\"debug\":false,\"version\":24,"
		    "\"preprocessedProfileVersion\":46,\"symbolicated\":true,"
		    "\"usesOnlyOneStackType\":true,\"doesNotUseFrameImplementation\":true,"
		    "\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],\"extensions\":"
		    "{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},\"categories\":[");
	for (size_t i = 0; i < ARRAY_COUNT(categories); i++) {
		comma(b);
		buf_printf(b, "{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			categories[i].name, categories[i].color);
	}
	buf_cstr(b, "]}");
}

/* A function and a frame for each of `frames`; resources are the binaries. */
static void put_frame_tables(struct buf *b, const struct frames *s)
{
	const struct query_flame *f = s->f;
	query_json_key(b, "frameTable");
	buf_cstr(b, "{\"length\":");
	query_json_i64(b, s->count);
	put_same(b, "address", "-1", s->count);
	put_same(b, "inlineDepth", "0", s->count);
	begin_column(b, "category");
	for (uint32_t i = 0; i < s->count; i++)
		put_number(b, category_of(f->kind[s->node[i]]));
	buf_u8(b, ']');
	put_same(b, "subcategory", "0", s->count);
	put_counting(b, "func", s->count);
	put_same(b, "nativeSymbol", "null", s->count);
	put_same(b, "innerWindowID", "0", s->count);
	put_same(b, "implementation", "null", s->count);
	begin_column(b, "line");
	for (uint32_t i = 0; i < s->count; i++) {
		comma(b);
		if (f->line[s->node[i]])
			query_json_i64(b, f->line[s->node[i]]);
		else
			buf_cstr(b, "null");
	}
	buf_u8(b, ']');
	put_same(b, "column", "null", s->count);
	put_same(b, "optimizations", "null", s->count);
	buf_u8(b, '}');
}

/* The flame graph's strings[] are the thread's string table; a missing file is null. */
static void put_func_table(struct buf *b, const struct frames *s, const uint32_t *resource)
{
	const struct query_flame *f = s->f;
	query_json_key(b, "funcTable");
	buf_cstr(b, "{\"length\":");
	query_json_i64(b, s->count);
	begin_column(b, "name");
	for (uint32_t i = 0; i < s->count; i++)
		put_number(b, f->name[s->node[i]]);
	buf_u8(b, ']');
	put_same(b, "isJS", "false", s->count);
	put_same(b, "relevantForJS", "false", s->count);
	begin_column(b, "resource");
	for (uint32_t i = 0; i < s->count; i++)
		put_number(b, (int64_t)resource[f->binary[s->node[i]]] - 1);
	buf_u8(b, ']');
	begin_column(b, "fileName");
	for (uint32_t i = 0; i < s->count; i++) {
		comma(b);
		if (f->strings[f->file[s->node[i]]].len)
			query_json_i64(b, f->file[s->node[i]]);
		else
			buf_cstr(b, "null");
	}
	buf_u8(b, ']');
	begin_column(b, "lineNumber");
	for (uint32_t i = 0; i < s->count; i++) {
		comma(b);
		if (f->line[s->node[i]])
			query_json_i64(b, f->line[s->node[i]]);
		else
			buf_cstr(b, "null");
	}
	buf_u8(b, ']');
	put_same(b, "columnNumber", "null", s->count);
	buf_u8(b, '}');
}

#define RESOURCE_LIBRARY "1"

static void put_resource_table(
	struct buf *b, const struct query_flame *f, const uint32_t *resource, uint32_t count)
{
	query_json_key(b, "resourceTable");
	buf_cstr(b, "{\"length\":");
	query_json_i64(b, count);
	begin_column(b, "name");
	for (uint32_t i = 1, next = 1; i < f->count && next <= count; i++)
		if (resource[f->binary[i]] == next) {
			put_number(b, f->binary[i]);
			next++;
		}
	buf_u8(b, ']');
	put_same(b, "lib", "null", count);
	put_same(b, "host", "null", count);
	put_same(b, "type", RESOURCE_LIBRARY, count);
	buf_u8(b, '}');
}

/* Stack i - 1 is node i: parents come first there too. */
static void put_stack_table(struct buf *b, const struct frames *s)
{
	const struct query_flame *f = s->f;
	query_json_key(b, "stackTable");
	buf_cstr(b, "{\"length\":");
	query_json_i64(b, f->count - 1);
	begin_column(b, "frame");
	for (uint32_t i = 1; i < f->count; i++)
		put_number(b, s->of[i]);
	buf_u8(b, ']');
	begin_column(b, "prefix");
	for (uint32_t i = 1; i < f->count; i++) {
		comma(b);
		if (f->parent[i])
			query_json_i64(b, (int64_t)f->parent[i] - 1);
		else
			buf_cstr(b, "null");
	}
	buf_u8(b, ']');
	begin_column(b, "category");
	for (uint32_t i = 1; i < f->count; i++)
		put_number(b, category_of(f->kind[i]));
	buf_u8(b, ']');
	put_same(b, "subcategory", "0", f->count - 1);
	buf_u8(b, '}');
}

/* The factor from a value to the unit of the samples' weights. */
static double weight_scale(struct str unit, const char **out_type)
{
	static const struct {
		const char *unit;
		double ms;
	} times[] = { { "nanoseconds", 1e-6 }, { "microseconds", 1e-3 }, { "milliseconds", 1 },
		{ "seconds", 1e3 } };
	for (size_t i = 0; i < ARRAY_COUNT(times); i++)
		if (str_eq(unit, str_of(times[i].unit))) {
			*out_type = "tracing-ms";
			return times[i].ms;
		}
	*out_type = str_eq(unit, STR("bytes")) ? "bytes" : "samples";
	return 1;
}

/* rest[]: a call's own value plus that of the calls below it that are not in the graph. */
static void put_samples(struct buf *b, const struct query_flame *f, const int64_t *rest)
{
	const char *type = "samples";
	double scale = weight_scale(f->unit, &type), time = 0;
	uint32_t count = 0;
	query_json_key(b, "samples");
	buf_u8(b, '{');
	begin_column(b, "stack");
	for (uint32_t i = 1; i < f->count; i++)
		if (rest[i] != 0) {
			put_number(b, (int64_t)i - 1);
			count++;
		}
	buf_u8(b, ']');
	begin_column(b, "time");
	for (uint32_t i = 1; i < f->count; i++)
		if (rest[i] != 0) {
			comma(b);
			buf_json_double(b, time);
			time += (double)query_abs(rest[i]) * scale;
		}
	buf_u8(b, ']');
	begin_column(b, "weight");
	for (uint32_t i = 1; i < f->count; i++)
		if (rest[i] != 0) {
			comma(b);
			buf_json_double(b, (double)rest[i] * scale);
		}
	buf_u8(b, ']');
	query_json_pair_str(b, "weightType", str_of(type));
	query_json_pair_i64(b, "length", count);
	buf_u8(b, '}');
}

static void put_thread(struct buf *b, const struct frames *s, struct str name,
	const uint32_t *resource, uint32_t resources, const int64_t *rest)
{
	buf_cstr(b, "{\"processType\":\"default\",\"processStartupTime\":0,"
		    "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
		    "\"pausedRanges\":[],\"isMainThread\":true,\"pid\":\"0\",\"tid\":0");
	query_json_pair_str(b, "name", name);
	query_json_pair_str(b, "processName", name);
	put_samples(b, s->f, rest);
	buf_cstr(b, ",\"markers\":{\"length\":0,\"category\":[],\"data\":[],\"endTime\":[],"
		    "\"name\":[],\"phase\":[],\"startTime\":[]}");
	put_stack_table(b, s);
	put_frame_tables(b, s);
	put_func_table(b, s, resource);
	put_resource_table(b, s->f, resource, resources);
	buf_cstr(b, ",\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],"
		    "\"libIndex\":[],\"name\":[]}");
	begin_column(b, "stringArray");
	for (uint32_t i = 0; i < s->f->string_count; i++) {
		comma(b);
		buf_json_str(b, s->f->strings[i]);
	}
	buf_cstr(b, "]}");
}

enum status query_export_firefox(
	const struct query_flame *f, struct str name, struct arena *a, struct buf *b, struct err *e)
{
	struct frames s;
	uint32_t resources = 0;
	enum status st = make_frames(&s, f, a, e);
	if (st != OK)
		return st;
	uint32_t *resource = ARENA_ARRAY(a, uint32_t, f->string_count); /* + 1; 0: none */
	int64_t *rest = ARENA_ARRAY(a, int64_t, f->count);
	if (!resource || !rest)
		return err_set(e, arena_status(a), "%u texts", f->string_count);
	for (uint32_t i = f->count; i-- > 0;) {
		rest[i] = query_add(rest[i], f->total[i]);
		rest[f->parent[i]] = query_sub(rest[f->parent[i]], f->total[i]);
	}
	for (uint32_t i = 1; i < f->count; i++)
		if (f->strings[f->binary[i]].len && resource[f->binary[i]] == 0)
			resource[f->binary[i]] = ++resources;
	buf_u8(b, '{');
	put_meta(b, name);
	buf_cstr(b, ",\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[],"
		    "\"threads\":[");
	put_thread(b, &s, name, resource, resources, rest);
	buf_cstr(b, "]}");
	return OK;
}
