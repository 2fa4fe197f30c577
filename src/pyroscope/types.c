/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of profile types. A pprof file of /ingest has no profile name: Pyroscope derives it from
 * the sample types, or from the names that sample_type_config gives them.
 */
#include "pyroscope/types.h"
#include "pb/pb.h"
#include "pyroscope/multipart.h"

#include <string.h>

#define CONFIG_BYTES_MAX ((size_t)64 << 10)
/* Earlier times are from a clock that was never set, or in microseconds (as sent by old SDKs for
 * Ruby). */
#define TIME_MIN_NS ((int64_t)365 * 24 * 3600 * 1000000000)

/* ---- sample_type_config ---- */

/* {"alloc_objects": {"units": "objects", "aggregation": "sum", "display-name": "…", …}, …} */
static const struct pb_member config_members[] = {
	PB_FIELD("display-name", 1, STRING),
	PB_FIELD("aggregation", 2, STRING),
	PB_FIELD("units", 3, STRING),
	PB_FIELD("sampled", 4, BOOL),
	PB_FIELD("cumulative", 5, BOOL),
};
static const struct pb_desc config_desc = PB_DESC("SampleTypeConfig", config_members);
static const struct pb_member entry_members[] = { PB_FIELD("key", 1, STRING),
	PB_MSG("value", 2, config_desc) };
static const struct pb_desc entry_desc = PB_DESC("SampleTypeConfigs.Entry", entry_members);
static const struct pb_member configs_members[] = { PB_MAP_OF("types", 1, entry_desc) };
static const struct pb_desc configs_desc = PB_DESC("SampleTypeConfigs", configs_members);

static void read_config(struct reader r, struct type_config *out)
{
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES)
			out->display_name = f.bytes;
		else if (f.number == 2 && f.wire == PB_BYTES)
			out->average = str_eq(f.bytes, STR("average"));
	}
}

static void read_entry(struct reader r, struct type_config *out)
{
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES)
			out->type = f.bytes;
		else if (f.number == 2 && f.wire == PB_BYTES)
			read_config(pb_message(&f), out);
	}
}

enum status type_configs_read(struct str json, struct type_configs *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf whole;
	buf_init(&whole, CONFIG_BYTES_MAX);
	buf_init(&out->text, CONFIG_BYTES_MAX);
	out->count = 0;
	buf_cstr(&whole, "{\"types\":");
	buf_str(&whole, json);
	buf_u8(&whole, '}');
	enum status s = buf_status(&whole);
	if (s != OK)
		return err_set(e, s, "sample_type_config: %s", status_text(s));
	s = pb_json_decode(&configs_desc, buf_view(&whole), PB_IGNORE_UNKNOWN, &out->text, e);
	if (s != OK)
		return err_prefix(e, s, "sample_type_config");
	struct reader r = reader_over(out->text.data, out->text.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (out->count == TYPE_CONFIGS_MAX)
			return err_set(e, E_LIMIT, "sample_type_config: more than %d types",
				TYPE_CONFIGS_MAX);
		out->v[out->count] = (struct type_config){ 0 };
		read_entry(pb_message(&f), &out->v[out->count++]);
	}
	return OK;
}

static const struct type_config *find_config(const struct made *m, struct str type)
{
	for (size_t i = 0; m->configs && i < m->configs->count; i++)
		if (str_eq(m->configs->v[i].type, type))
			return &m->configs->v[i];
	return NULL;
}

/* ---- names ---- */

static bool has(struct str s, const char *part)
{
	return s.len && memmem(s.p, s.len, part, strlen(part));
}

bool pyroscope_is_profile_name(struct str name)
{
	static const char *const names[] = { "process_cpu", "wall", "memory", "mutex", "block",
		"goroutine", "goroutines", "threadcreate" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

/* The profile's name by a sample type; NULL: unknown. */
static const char *name_by(struct str type)
{
	if (has(type, "cpu"))
		return "process_cpu";
	if (has(type, "alloc_") || has(type, "inuse_") || str_eq(type, STR("space")) ||
		str_eq(type, STR("objects")))
		return "memory";
	if (has(type, "mutex_"))
		return "mutex";
	if (has(type, "block_"))
		return "block";
	if (has(type, "goroutines"))
		return "goroutines";
	return NULL;
}

static struct str sample_type(const struct profile *p, uint32_t head)
{
	return profile_str(p, p->types.v[p->heads.v[head].type].sample_type);
}

/* The name of the profile, which says what was measured. */
static struct str name_of(const struct profile *p, uint32_t first, const struct made *m)
{
	struct str type = STR("unknown");
	for (uint32_t h = first; h < p->heads.len; h++)
		if (str_eq(sample_type(p, h), STR("wall")))
			return STR("wall");
	for (uint32_t h = first; h < p->heads.len; h++) {
		type = sample_type(p, h);
		const struct type_config *c = find_config(m, type);
		if (c && c->display_name.len)
			type = c->display_name;
		const char *name = name_by(type);
		if (name)
			return str_of(name);
	}
	return type;
}

/* Whether the type is a gauge, for which sums over time have no meaning. */
static bool is_gauge(struct str type)
{
	return str_starts(type, STR("inuse_")) || str_eq(type, STR("goroutine")) ||
	       str_eq(type, STR("goroutines")) || str_eq(type, STR("live")) ||
	       str_eq(type, STR("threadcreate"));
}

/* Replaces dashes: an old SDK for .NET has "inuse-space" for inuse_space. */
static enum status without_dashes(struct profile *p, uint32_t *io_type)
{
	CLEANUP(buf_deinit) struct buf plain;
	struct str type = profile_str(p, *io_type);
	buf_init(&plain, type.len);
	for (size_t i = 0; i < type.len; i++)
		buf_u8(&plain, (uint8_t)(type.p[i] == '-' ? '_' : type.p[i]));
	enum status s = buf_status(&plain);
	return s == OK ? profile_add_string(p, buf_view(&plain), io_type) : s;
}

static enum status finish_head(
	struct profile *p, struct profile_head *h, uint32_t name, const struct made *m)
{
	struct profile_type t = p->types.v[h->type];
	struct str type = profile_str(p, t.sample_type);
	const struct type_config *c = find_config(m, type);
	if (h->time_ns < TIME_MIN_NS)
		h->time_ns = m->from_ns;
	if (h->duration_ns == 0)
		h->duration_ns = m->duration_ns;
	enum status s = without_dashes(p, &t.sample_type);
	if (s != OK)
		return s;
	type = profile_str(p, t.sample_type);
	t.delta = !m->average && !(c && c->average) && !is_gauge(type);
	if (name)
		t.name = name;
	return profile_add_type(p, &t, &h->type);
}

enum status types_finish(struct profile *p, struct added a, const struct made *m)
{
	uint32_t name = 0;
	enum status s = OK;
	if (m->configs)
		s = profile_add_name(p, name_of(p, a.head, m), &name);
	for (uint32_t h = a.head; s == OK && h < p->heads.len; h++)
		s = finish_head(p, &p->heads.v[h], name, m);
	for (size_t i = a.sample; s == OK && i < p->samples.len; i++)
		p->samples.v[i].time_ns = p->heads.v[p->samples.v[i].head].time_ns;
	return s;
}
