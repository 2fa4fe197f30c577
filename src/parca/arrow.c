/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema v2: each row has its stack, a list view into a dictionary of locations. Rows with the same
 * stack have the same offset and size, so a stack is made once for each pair of these.
 */
#include "parca/columns.h"

struct seen_stack {
	uint64_t first;
	uint64_t count;
	uint32_t stack;
};

struct v2 {
	struct parca_decoder d;
	struct parca_rows rows;
	const struct arrow_array *stacktrace; /* NULL: no row has one */
	const struct arrow_array *locations;  /* the array to which the pairs in `seen` belong */
	VEC(struct seen_stack) seen;
	struct map index;
};

static bool seen_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct seen_stack *a = &((const struct v2 *)ctx)->seen.v[value], *b = key;
	return a->first == b->first && a->count == b->count;
}

static enum status stack_of(struct parca_rows *rows, uint64_t row, uint32_t *out)
{
	struct v2 *v2 = rows->ctx;
	struct seen_stack key = { 0 };
	*out = 0;
	if (!v2->stacktrace)
		return OK;
	struct arrow_value v = arrow_at(v2->stacktrace, row);
	if (!v.array)
		return OK;
	arrow_list(&v, &key.first, &key.count);
	if (key.count == 0)
		return OK;
	const struct arrow_array *locations = &v.array->children[0];
	if (locations != v2->locations) {
		VEC_CLEAR(&v2->seen);
		map_clear(&v2->index);
		v2->locations = locations;
	}
	uint64_t hash = hash_u64(key.first * 0x9E3779B97F4A7C15u + key.count);
	uint32_t at = map_find(&v2->index, hash, seen_equal, v2, &key);
	if (at != MAP_NONE) {
		*out = v2->seen.v[at].stack;
		return OK;
	}
	enum status s = parca_stack(&v2->d, locations, key.first, key.count, &key.stack);
	if (s != OK)
		return s;
	if (!map_insert(&v2->index, hash, (uint32_t)v2->seen.len) || !VEC_PUSH(&v2->seen, key))
		return err_set(v2->d.e, E_NOMEM, "stacks");
	*out = key.stack;
	return OK;
}

static enum status add(struct parca_rows *rows, const struct profile_sample *sample)
{
	enum status s = profile_add_sample(rows->d->out, sample);
	return s == OK ? OK : err_set(rows->d->e, s, "samples: %s", status_text(s));
}

static enum status read_batch(struct v2 *v2, const struct arrow_array *batch)
{
	struct err *e = v2->d.e;
	if (arrow_child(batch, STR("locations")))
		return err_set(e, E_INVALID, "locations of schema v1 belong to the call Write");
	if (!arrow_child(batch, STR("stacktrace")) && arrow_child(batch, STR("stacktrace_id")) &&
		batch->length)
		return err_set(e, E_INVALID,
			"column stacktrace is missing (samples of schema v1 "
			"belong to the call Write)");
	enum status s =
		parca_column(&v2->d, batch, "stacktrace", COLUMN_LIST, false, &v2->stacktrace);
	if (s == OK && v2->stacktrace)
		s = parca_check_locations(&v2->d, &arrow_leaf(v2->stacktrace->field)->children[0]);
	return s == OK ? parca_read_rows(&v2->rows, batch) : s;
}

enum status parca_arrow_decode(struct str ipc, size_t memory_bytes, struct profile *out,
	struct parca_arrow_stats *stats, struct err *e)
{
	struct err none;
	struct arrow_stream stream;
	struct arrow_array batch;
	bool more = true;
	e = e ? e : &none;
	enum status s = arrow_stream_open(&stream, ipc, memory_bytes, e);
	if (s != OK)
		return s;
	struct v2 v2 = { 0 };
	parca_decoder_init(&v2.d, out, stats, memory_bytes, e);
	v2.rows = (struct parca_rows){ &v2.d, stack_of, add, &v2 };
	size_t samples = out->samples.len;
	while (s == OK && more) {
		s = arrow_stream_next(&stream, &batch, &more, e);
		if (s == OK && more)
			s = read_batch(&v2, &batch);
	}
	if (s != OK)
		out->samples.len = samples;
	VEC_FREE(&v2.seen);
	map_deinit(&v2.index);
	parca_decoder_deinit(&v2.d);
	arrow_stream_close(&stream);
	return s;
}
