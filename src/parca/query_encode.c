/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "parca/parca.h"
#include "pb/pb.h"

void parca_types_encode(const struct parca_profile_type *types, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		size_t begun = pb_begin(out, 1);
		pb_put_str(out, 1, types[i].name);
		pb_put_str(out, 2, types[i].sample_type);
		pb_put_str(out, 3, types[i].sample_unit);
		pb_put_str(out, 4, types[i].period_type);
		pb_put_str(out, 5, types[i].period_unit);
		pb_put_bool(out, 6, types[i].delta);
		pb_end(out, begun);
	}
}

void parca_names_encode(const struct str *names, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++)
		pb_put_str_always(out, 1, names[i]);
}

static void put_time(struct buf *out, uint32_t field, int64_t ns)
{
	int64_t seconds = ns / NS_PER_SEC - (ns % NS_PER_SEC < 0);
	size_t begun = pb_begin(out, field);
	pb_put_i64(out, 1, seconds);
	pb_put_i64(out, 2, ns - seconds * NS_PER_SEC);
	pb_end(out, begun);
}

static void put_value_type(struct buf *out, uint32_t field, struct str type, struct str unit)
{
	if (type.len == 0 && unit.len == 0)
		return;
	size_t begun = pb_begin(out, field);
	pb_put_str(out, 1, type);
	pb_put_str(out, 2, unit);
	pb_end(out, begun);
}

void parca_series_encode(const struct parca_series *s, struct buf *out)
{
	size_t series = pb_begin(out, 1), begun = pb_begin(out, 1);
	for (size_t i = 0; i < s->label_count; i++) {
		size_t label = pb_begin(out, 1);
		pb_put_str(out, 1, s->labels[i].name);
		pb_put_str(out, 2, s->labels[i].value);
		pb_end(out, label);
	}
	pb_end(out, begun);
	for (size_t i = 0; i < s->sample_count; i++) {
		const struct parca_sample *sample = &s->samples[i];
		begun = pb_begin(out, 2);
		put_time(out, 1, sample->time_ns);
		pb_put_i64(out, 2, sample->value);
		pb_put_double(out, 3, sample->per_second);
		pb_put_i64(out, 4, sample->duration_ns);
		pb_put_i64(out, 5, sample->count);
		pb_end(out, begun);
	}
	put_value_type(out, 3, s->period_type, s->period_unit);
	put_value_type(out, 4, s->sample_type, s->sample_unit);
	pb_end(out, series);
}

void parca_report_encode(
	enum parca_report kind, struct str report, int64_t total, int64_t filtered, struct buf *out)
{
	static const uint8_t fields[PARCA_REPORT_COUNT] = { [PARCA_FLAMEGRAPH_FLAT] = 5,
		[PARCA_PPROF] = 6,
		[PARCA_TOP] = 7,
		[PARCA_CALLGRAPH] = 8,
		[PARCA_FLAMEGRAPH_TABLE] = 5,
		[PARCA_FLAMEGRAPH_ARROW] = 11,
		[PARCA_SOURCE] = 12,
		[PARCA_TABLE_ARROW] = 13,
		[PARCA_PROFILE_METADATA] = 14,
		[PARCA_FLAMECHART] = 11 };
	pb_put_str_always(out, fields[kind], report);
	pb_put_i64(out, 9, total);
	pb_put_i64(out, 10, filtered);
}

void parca_flamegraph_arrow_encode(
	struct str record, struct str unit, int32_t height, int64_t trimmed, struct buf *out)
{
	pb_put_str(out, 1, record);
	pb_put_str(out, 2, unit);
	pb_put_i64(out, 3, height);
	pb_put_i64(out, 4, trimmed);
}

void parca_table_arrow_encode(struct str record, struct str unit, struct buf *out)
{
	pb_put_str(out, 1, record);
	pb_put_str(out, 2, unit);
}

void parca_source_encode(struct str record, struct str source, struct str unit, struct buf *out)
{
	pb_put_str(out, 1, record);
	pb_put_str(out, 2, source);
	pb_put_str(out, 3, unit);
}

void parca_metadata_encode(const struct str *mappings, size_t mapping_count,
	const struct str *labels, size_t label_count, struct buf *out)
{
	for (size_t i = 0; i < mapping_count; i++)
		pb_put_str_always(out, 1, mappings[i]);
	for (size_t i = 0; i < label_count; i++)
		pb_put_str_always(out, 2, labels[i]);
}
