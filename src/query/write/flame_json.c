/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the columns of a flame graph as JSON, for the page and for the file that is a page of its
 * own (html.c). */
#include "query/plan/plan.h"
#include "query/write/formats.h"
#include "query/write/json.h"

/* Depths are small and alike, so they compress to a tenth of the parents. */
static void column_depth(struct buf *b, const struct query_flame *f)
{
	uint32_t depth = 0;
	query_json_key(b, "depth");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < f->count; i++) {
		if (i > 0) {
			buf_u8(b, ',');
			depth++;
			for (uint32_t at = i - 1; at != f->parent[i]; at = f->parent[at])
				depth--;
		}
		query_json_i64(b, depth);
	}
	buf_u8(b, ']');
}

/* Root and labels have no time of their own. */
static bool has_time(const struct query_flame *f, uint32_t i)
{
	return i > 0 && (f->parent[i] > 0 || f->time_ns[i] != 0);
}

/* The begin of a chart, rounded down to a millisecond. */
static int64_t begin_of(const struct query_flame *f)
{
	int64_t least = INT64_MAX;
	for (uint32_t i = 1; i < f->count; i++)
		if (has_time(f, i))
			least = MIN(least, f->time_ns[i]);
	return least == INT64_MAX ? 0 : least - least % NS_PER_MS;
}

/* In microseconds after the begin: absolute nanoseconds do not fit in a number of JavaScript. */
static void column_time(struct buf *b, const struct query_flame *f)
{
	int64_t begin = begin_of(f);
	query_json_key(b, "time");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < f->count; i++) {
		if (i > 0)
			buf_u8(b, ',');
		query_json_i64(b, has_time(f, i) ? query_sub(f->time_ns[i], begin) / 1000 : 0);
	}
	buf_u8(b, ']');
}

void query_flame_json(const struct query_flame *f, bool depth, struct buf *b)
{
	buf_u8(b, '{');
	query_json_pair_str(b, "unit", f->unit);
	query_json_pair_i64(b, "total", f->total[0]);
	query_json_pair_i64(b, "trimmed", f->trimmed);
	if (f->taken < 0) {
		query_json_key(b, "samples");
		buf_cstr(b, "null");
	} else {
		query_json_pair_i64(b, "samples", f->taken);
	}
	query_json_pair_i64(b, "pending", f->pending);
	query_json_key(b, "pending_files");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < f->pending_file_count; i++) {
		if (i > 0)
			buf_u8(b, ',');
		buf_json_str(b, f->pending_files[i]);
	}
	buf_u8(b, ']');
	query_json_key(b, "strings");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < f->string_count; i++) {
		if (i > 0)
			buf_u8(b, ',');
		buf_json_str(b, f->strings[i]);
	}
	buf_u8(b, ']');
	query_json_key(b, "nodes");
	buf_u8(b, '{');
	if (depth)
		column_depth(b, f);
	else
		query_json_column(b, "parent", f->parent, sizeof(*f->parent), f->count);
	query_json_column(b, "name", f->name, sizeof(*f->name), f->count);
	query_json_column(b, "file", f->file, sizeof(*f->file), f->count);
	query_json_column(b, "line", f->line, sizeof(*f->line), f->count);
	query_json_column(b, "binary", f->binary, sizeof(*f->binary), f->count);
	query_json_column(b, "kind", f->kind, sizeof(*f->kind), f->count);
	query_json_column(b, "inlined", f->inlined, sizeof(*f->inlined), f->count);
	query_json_column(b, "self", f->self, sizeof(*f->self), f->count);
	query_json_column(b, "total", f->total, sizeof(*f->total), f->count);
	if (f->time_ns)
		column_time(b, f);
	buf_u8(b, '}');
	if (f->time_ns)
		query_json_pair_i64(b, "begin", begin_of(f) / NS_PER_MS);
	buf_u8(b, '}');
}
