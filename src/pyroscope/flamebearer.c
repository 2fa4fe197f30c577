/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the JSON of /pyroscope/render: a flame graph and its timeline. */
#include "pyroscope/pyroscope.h"

#include <inttypes.h>

/* Steps below `below_s` seconds are rounded to `step_s`. */
static const struct {
	int64_t below_s, step_s;
} steps[] = { { 17, 15 }, { 25, 20 }, { 45, 30 }, { 90, 60 }, { 210, 120 }, { 450, 300 },
	{ 750, 600 }, { 1050, 900 }, { 1500, 1200 }, { 2700, 1800 }, { 5400, 3600 }, { 9000, 7200 },
	{ 16200, 10800 }, { 32400, 21600 }, { 86400, 43200 }, { 604800, 86400 },
	{ 1814400, 604800 }, { 3628799, 2592000 }, { INT64_MAX, 31536000 } };

#define STEPS_WANTED 1500

int64_t pyroscope_timeline_step(int64_t start_ms, int64_t end_ms)
{
	int64_t wanted = end_ms > start_ms ? (end_ms - start_ms) / STEPS_WANTED / 1000 : 0;
	size_t i = 0;
	while (wanted > steps[i].below_s)
		i++;
	return steps[i].step_s;
}

static void write_timeline(const struct pyroscope_timelines *t, const int64_t *v, struct buf *out)
{
	buf_printf(out, "{\"startTime\":%" PRId64 ",\"samples\":[", t->start_s);
	for (size_t i = 0; i < t->steps; i++)
		buf_printf(out, "%s%" PRId64, i ? "," : "", v[i]);
	buf_printf(out, "],\"durationDelta\":%" PRId64 ",\"watermarks\":null}", t->step_s);
}

static void write_timelines(const struct pyroscope_timelines *t, struct buf *out)
{
	if (t)
		write_timeline(t, t->all, out);
	else
		buf_cstr(out, "null");
	buf_cstr(out, ",\"groups\":");
	buf_cstr(out, t && t->groups ? "{" : "null");
	for (size_t i = 0; t && t->groups && i < t->group_count; i++) {
		buf_cstr(out, i ? "," : "");
		buf_json_str(out, t->groups[i].group);
		buf_cstr(out, ":");
		write_timeline(t, t->groups[i].v, out);
	}
	buf_cstr(out, t && t->groups ? "}" : "");
}

/* CPU time is given as samples at 1 GHz, since the old page divides by the sample rate. */
void pyroscope_flamebearer_write(const struct pyroscope_flame *f, struct str name, struct str unit,
	const struct pyroscope_timelines *lines, struct buf *out)
{
	static const char *const counts[] = { "inuse_objects", "alloc_objects", "goroutine",
		"samples" };
	int64_t rate = 100;
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
		if (str_eq(name, str_of(counts[i])))
			unit = STR("objects");
	if (str_eq(name, STR("cpu"))) {
		unit = STR("samples");
		rate = 1000000000;
	}
	buf_cstr(out, "{\"version\":1,\"flamebearer\":{\"names\":[");
	for (size_t i = 0; i < f->name_count; i++) {
		buf_cstr(out, i ? "," : "");
		buf_json_str(out, f->names[i]);
	}
	buf_cstr(out, "],\"levels\":[");
	for (size_t i = 0; i < f->level_count; i++) {
		buf_cstr(out, i ? ",[" : "[");
		for (size_t k = 0; k < f->levels[i].count; k++)
			buf_printf(out, "%s%" PRId64, k ? "," : "", f->levels[i].v[k]);
		buf_cstr(out, "]");
	}
	buf_printf(out, "],\"numTicks\":%" PRId64 ",\"maxSelf\":%" PRId64 "},\"metadata\":{",
		f->total, f->max_self);
	buf_printf(out, "\"format\":\"%s\",\"spyName\":\"\",\"sampleRate\":%" PRId64 ",\"units\":",
		f->sides == 2 ? "double" : "single", rate);
	buf_json_str(out, unit);
	buf_cstr(out, ",\"name\":");
	buf_json_str(out, name);
	buf_cstr(out, "},\"timeline\":");
	write_timelines(lines, out);
	buf_printf(out, ",\"heatmap\":null,\"leftTicks\":%" PRId64 ",\"rightTicks\":%" PRId64 "}",
		f->sides == 2 ? f->side_totals[0] : 0, f->sides == 2 ? f->side_totals[1] : 0);
}
